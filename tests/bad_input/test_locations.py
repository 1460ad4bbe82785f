"""Locations outside the warehouse in all spellings, and metadata files that must not be registered."""

from __future__ import annotations

import pytest

from tests.bad_input.attacks import NO_FILE, NO_NAMESPACE, POST, TAKEN, Attack, check_refused
from tests.bad_input.victim import Victim
from tests.builders.http_catalog import VIEW_VERSION

NS = "/v1/namespaces"
TABLES, VIEWS, REGISTER, REGISTER_VIEW = (
    f"{NS}/a/tables",
    f"{NS}/a/views",
    f"{NS}/a/register",
    f"{NS}/a/register-view",
)
TABLE = f"{TABLES}/v2"
COLUMNS = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
OUTSIDE = (
    "…: it is outside warehouse default, whose tables lie below $WAREHOUSE; the storage setting allowed-locations of "
    "the warehouse adds others"
)

ELSEWHERE: list[tuple[str, str, str]] = [
    ("beside the warehouse", "$OUTSIDE/x", OUTSIDE),
    ("a longer name", "$WAREHOUSE-2/x", OUTSIDE),
    ("the root of all folders", "/", OUTSIDE),
    ("a system folder", "file:///etc/cron.d/x", OUTSIDE),
    ("a bare path", "/etc/cron.d/x", OUTSIDE),
    ("dots up", "$WAREHOUSE/../outside", "…: it contains a '.' or '..' segment"),
    ("one dot", "$WAREHOUSE/./x", "…: it contains a '.' or '..' segment"),
    ("packed dots up", "$WAREHOUSE/%2e%2e/outside", "…: it contains a '.' or '..' segment"),
    ("half-packed dots up", "$WAREHOUSE/%2E./outside", "…: it contains a '.' or '..' segment"),
    ("a packed slash and dots", "$WAREHOUSE/x%2f..%2f..%2foutside", "…: it contains a '.' or '..' segment"),
    ("dots behind a backslash", "$WAREHOUSE/x\\..\\..\\outside", "…: it contains a '.' or '..' segment"),
    ("dots in the end", "$WAREHOUSE/x/..", "…: it contains a '.' or '..' segment"),
    ("another host", "file://evil.example$PATH/x", "…: Not a local file: …"),
    ("local host", "file://localhost$PATH/x", "…: Not a local file: …"),
    ("two slashes", "//evil.example/share", "…: Not a local file: …"),
    ("a relative path", "warehouse/x", "…: Not a location: …"),
    ("a file without a slash", "file:x", "…: Not a local file: …"),
    ("http", "http://169.254.169.254/latest/meta-data", OUTSIDE),
    ("https", "https://evil.example/x", OUTSIDE),
    ("a bucket", "s3://evil/x", OUTSIDE),
    ("a bucket with a password", "s3://user:secret@bucket/x", "…must not carry a user and password"),
    ("a bucket without a name", "s3:///x", "…: Not a location: …"),
    ("memory", "memory://wh/x", OUTSIDE),
    ("data", "data:text/plain,x", "…: Not a location: …"),
    ("javascript", "javascript:alert(1)", "…: Not a location: …"),
    ("nul", "$WAREHOUSE/x\0.json", "…: it contains a control character"),
    ("a line end", "$WAREHOUSE/x\ny", "…: it contains a control character"),
    ("nothing but a scheme", "file:", "…: Not a local file: …"),
    ("a shell's home", "~/x", "…: Not a location: …"),
    ("a deep place", f"$WAREHOUSE{'/b' * 1_500}", "…: its path has … segments, more than 1024"),
    (
        "a long path",
        f"$WAREHOUSE{f'/{250 * chr(98)}' * 17}",
        "…: its path has … bytes, more than the 4095 that file …",
    ),
    ("a fragment", "$WAREHOUSE/C#/x", "…: it contains '?' or '#', where PyIceberg …; choose another folder"),
    ("a query", "$WAREHOUSE/why?/x", "…: it contains '?' or '#', where PyIceberg …; choose another folder"),
    ("a variable", "${HOME}/x", "…: Not a location: …"),
]


@pytest.mark.parametrize(
    ("location", "message"), [row[1:] for row in ELSEWHERE], ids=[row[0] for row in ELSEWHERE]
)
@pytest.mark.parametrize(
    "way",
    [
        "table",
        "staged table",
        "view",
        "namespace",
        "moved table",
        "data path",
        "metadata path",
        "moved view",
        "created by commit",
        "namespace properties",
    ],
)
def test_nothing_can_lie_outside_the_warehouse(victim: Victim, way: str, location: str, message: str) -> None:
    view = {
        "name": "x",
        "schema": COLUMNS,
        "view-version": VIEW_VERSION,
        "properties": {},
        "location": location,
    }
    target, body = {
        "table": (TABLES, {"name": "x", "schema": COLUMNS, "location": location}),
        "staged table": (
            TABLES,
            {"name": "x", "schema": COLUMNS, "location": location, "stage-create": True},
        ),
        "view": (VIEWS, view),
        "namespace": (NS, {"namespace": ["x"], "properties": {"location": location}}),
        "namespace properties": (f"{NS}/a/properties", {"updates": {"location": location}}),
        "moved table": (TABLE, commit({"action": "set-location", "location": location})),
        "data path": (TABLE, commit({"action": "set-properties", "updates": {"write.data.path": location}})),
        "metadata path": (
            TABLES,
            {"name": "x", "schema": COLUMNS, "properties": {"write.metadata.path": location}},
        ),
        "moved view": (f"{VIEWS}/v", commit({"action": "set-location", "location": location})),
        "created by commit": (f"{TABLES}/x", creation(location)),
    }[way]

    check_refused(Attack("", POST, target, 400, f"Invalid {message}", body=body), victim)


def commit(*updates: object) -> dict[str, object]:
    """Return a commit without requirements."""
    return {"requirements": [], "updates": updates}


def creation(location: str) -> dict[str, object]:
    """Return a commit that makes a table."""
    updates = [
        {"action": "assign-uuid", "uuid": "0e4d5ad5-9d5c-4a4b-8f3f-6d1a4d3a2c11"},
        {"action": "add-schema", "schema": COLUMNS},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": location},
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}


def registering(
    name: str, location: str, status: int, message: str, kind: str = "", **fields: object
) -> Attack:
    """Return an attempt to register a metadata file as a table."""
    body = {"name": "new", "metadata-location": location, **fields}
    return Attack(name, POST, REGISTER, status, message, kind, body)


def registering_view(name: str, location: str, status: int, message: str, kind: str = "") -> Attack:
    """Return an attempt to register a metadata file as a view."""
    return Attack(
        name, POST, REGISTER_VIEW, status, message, kind, {"name": "new", "metadata-location": location}
    )


MISSING = "Failed to open input stream for file: $WAREHOUSE/…"
REGISTRATIONS = [
    registering("file outside", "$OUTSIDE/secret.json", 400, f"Invalid metadata-location {OUTSIDE}"),
    registering(
        "file reached by dots",
        "$WAREHOUSE/../outside/secret.json",
        400,
        "Invalid metadata-location …: it contains a '.' or '..' segment",
    ),
    registering("password file", "file:///etc/passwd", 400, f"Invalid metadata-location {OUTSIDE}"),
    registering("process's memory", "/proc/self/mem", 400, f"Invalid metadata-location {OUTSIDE}"),
    registering(
        "cloud's secrets", "http://169.254.169.254/latest/", 400, f"Invalid metadata-location {OUTSIDE}"
    ),
    registering("empty location", "", 400, "Invalid metadata-location '': Not a location: …"),
    registering("no file", "$WAREHOUSE/nope.json", 404, MISSING, NO_FILE),
    registering("no file, overwriting", "$WAREHOUSE/nope.json", 404, MISSING, NO_FILE, overwrite=True),
    registering("a file as a folder", "$WAREHOUSE/table.json/x", 404, MISSING, NO_FILE),
    registering("a folder", "$WAREHOUSE/folder", 404, MISSING, NO_FILE),
    registering("a folder with a slash", "$WAREHOUSE/folder/", 404, MISSING, NO_FILE),
    registering(
        "the warehouse", "$WAREHOUSE", 404, "Failed to open input stream for file: $WAREHOUSE", NO_FILE
    ),
    registering("a name too long for any disk", f"$WAREHOUSE/{'x' * 300}", 400, "…name…"),
    registering(
        "a location too long for any disk",
        "$WAREHOUSE" + "/x" * 5_000,
        400,
        "…: its path has … segments, more than 1024",
    ),
    registering(
        "an empty file",
        "$WAREHOUSE/empty.json",
        400,
        "Invalid JSON: EOF while parsing a value at line 1 column 0",
    ),
    registering("a text", "$WAREHOUSE/text.json", 400, "Invalid JSON: expected value at line 1 column 1"),
    registering("bytes", "$WAREHOUSE/binary.json", 400, "Invalid JSON: …"),
    registering("half a document", "$WAREHOUSE/cut.json", 400, "Invalid JSON: EOF while parsing …"),
    registering(
        "a hundred thousand brackets", "$WAREHOUSE/deep.json", 400, "Invalid JSON: recursion limit exceeded …"
    ),
    registering("half a gzip", "$WAREHOUSE/cut.gz.metadata.json", 400, "The file is gzip but ends too early"),
    registering(
        "gzip by name only",
        "$WAREHOUSE/unpacked.gz.metadata.json",
        400,
        "The file is named as gzip but cannot be unpacked: …",
    ),
    registering(
        "a gzip bomb",
        "$WAREHOUSE/bomb.gz.metadata.json",
        400,
        "The file is gzip and unpacks to more than 16777216 bytes",
    ),
    registering(
        "gzip behind gzip",
        "$WAREHOUSE/tail.gz.metadata.json",
        400,
        "The file is gzip with something else behind it",
    ),
    registering("version 0", "$WAREHOUSE/v0.json", 400, "Cannot read unsupported version 0…"),
    registering("version 4", "$WAREHOUSE/v4.json", 400, "Cannot read unsupported version 4…"),
    registering(
        "version in words", "$WAREHOUSE/v-text.json", 400, "format-version: Input should be a valid integer"
    ),
    registering(
        "no uuid",
        "$WAREHOUSE/no-uuid.json",
        400,
        "Cannot read metadata: table-uuid is missing, which v2 needs",
    ),
    registering("a uuid that is none", "$WAREHOUSE/odd-uuid.json", 400, "table-uuid: not a UUID: …"),
    registering("no schemas", "$WAREHOUSE/no-schemas.json", 400, "Cannot read metadata: schemas is missing…"),
    registering(
        "no current schema",
        "$WAREHOUSE/no-current-schema.json",
        400,
        "Cannot find schema with current-schema-id=7 from schemas",
    ),
    registering(
        "no current snapshot",
        "$WAREHOUSE/no-snapshot.json",
        400,
        "Cannot find current snapshot with id 7 in snapshots",
    ),
    registering(
        "dangling tag",
        "$WAREHOUSE/dangling.json",
        400,
        "Snapshot 7 of reference x does not exist in the list of snapshots",
    ),
    registering(
        "broken old spec",
        "$WAREHOUSE/v1-broken-spec.json",
        400,
        "partition-spec.fields[0].name: Field required",
    ),
    registering("table that lies outside", "$WAREHOUSE/outside.json", 400, f"Invalid location {OUTSIDE}"),
    registering(
        "table that writes outside",
        "$WAREHOUSE/writes-outside.json",
        400,
        f"Invalid location in table property write.data.path {OUTSIDE}",
    ),
    registering("a view", "$WAREHOUSE/view.json", 400, "It is the metadata of a view, not of a table"),
    registering("a view's own file", "$VIEW_METADATA", 400, "It is the metadata of a view, not of a table"),
    Attack(
        "onto a table",
        POST,
        REGISTER,
        409,
        "Table already exists: a.t",
        TAKEN,
        {"name": "t", "metadata-location": "$METADATA"},
    ),
    Attack(
        "onto a view",
        POST,
        REGISTER,
        409,
        "View with same name already exists: a.v",
        TAKEN,
        {"name": "v", "metadata-location": "$METADATA"},
    ),
    Attack(
        "over a view",
        POST,
        REGISTER,
        409,
        "View with same name already exists: a.v",
        TAKEN,
        {"name": "v", "metadata-location": "$METADATA", "overwrite": True},
    ),
    Attack(
        "into no namespace",
        POST,
        f"{NS}/nope/register",
        404,
        "Namespace does not exist: nope",
        NO_NAMESPACE,
        {"name": "t", "metadata-location": "$METADATA"},
    ),
    Attack(
        "in another warehouse",
        POST,
        "/v1/other/namespaces/elsewhere/register",
        400,
        "Invalid metadata-location …: it is outside warehouse other…",
        body={"name": "t", "metadata-location": "$METADATA"},
    ),
    registering_view("view outside", "$OUTSIDE/secret.json", 400, f"Invalid metadata-location {OUTSIDE}"),
    registering_view(
        "view that is a table", "$METADATA", 400, "It is the metadata of a table, not of a view"
    ),
    registering_view("view of version 2", "$WAREHOUSE/view-v2.json", 400, "format-version: …"),
    registering_view(
        "view without its version",
        "$WAREHOUSE/view-no-version.json",
        400,
        "Cannot find current version 7 in view versions",
    ),
    registering_view(
        "view that lies outside", "$WAREHOUSE/view-outside.json", 400, f"Invalid location {OUTSIDE}"
    ),
    registering_view("no view file", "$WAREHOUSE/nope.json", 404, MISSING, NO_FILE),
    Attack(
        "view onto a table",
        POST,
        REGISTER_VIEW,
        409,
        "Table with same name already exists: a.t",
        TAKEN,
        {"name": "t", "metadata-location": "$VIEW_METADATA"},
    ),
    Attack(
        "view onto a view",
        POST,
        REGISTER_VIEW,
        409,
        "View already exists: a.v",
        TAKEN,
        {"name": "v", "metadata-location": "$VIEW_METADATA"},
    ),
]


@pytest.mark.parametrize("attack", REGISTRATIONS, ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    answer = check_refused(attack, victim)

    assert b"root:" not in answer.body, "a file's content is not sent back"


def test_secret_outside_stays_outside_through_a_link(victim: Victim) -> None:
    """A link inside the warehouse is the operator's business, and is followed; clients cannot make one."""
    link = victim.warehouse / "link.json"
    link.symlink_to(victim.folder / "outside" / "nothing-there.json")

    check_refused(registering("", "$WAREHOUSE/link.json", 404, MISSING, NO_FILE), victim)

    link.unlink()
