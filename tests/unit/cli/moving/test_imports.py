"""`icetower import …` and `icetower export` against a real server."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.moving.reports import MoveState
from app.moving.sources import Entry, SourceFailed
from app.moving.terms import Mode, Terms
from tests.builders.moves import Moves
from tests.servers.guarded import CLIENT_ID, SECRET, guarded
from tests.unit.cli.conftest import SCHEMA, Icetower
from tests.unit.moving.test_sql_source import V0


@pytest.fixture
def orders(catalog: RemoteCatalog, namespace: str) -> str:
    """Return where the metadata file of an empty table is that no catalog has any more."""
    identifier = TableIdentifier(Namespace((namespace,)), "orders")
    catalog.tables.create(identifier, SCHEMA)
    location = catalog.tables.unregister(identifier).metadata_location
    assert location is not None
    return location


@pytest.fixture
def old(folder: Path, namespace: str, orders: str) -> str:
    """Return the URL of a SQL catalog with that table, and one whose file is gone."""
    with closing(sqlite3.connect(folder / "old.db", isolation_level=None)) as database:
        database.executescript(V0)
        for name, location in (("orders", orders), ("lost", f"{orders}.gone")):
            row = ("prod", f"{namespace}_old", name, location, None)
            database.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?)", row)
    return f"sqlite:///{folder / 'old.db'}"


def test_dry_run_says_what_would_be_done_and_writes_nothing(
    icetower: Icetower, old: str, folder: Path, namespace: str
) -> None:
    done = icetower("import", "sql", old, "--dry-run")

    assert done.status == 1
    assert "would be moved" in done.out
    assert "metadata file is gone" in done.out or "gone" in done.out
    assert done.out.endswith("2 names: 1 would be moved, 1 refused.\n")
    assert not (folder / "icetower-import.ndjson").exists()


def test_import_moves_what_it_can_and_its_status_says_that_something_is_left(
    icetower: Icetower, old: str, folder: Path, namespace: str, catalog: RemoteCatalog
) -> None:
    done = icetower("import", "sql", old, "--rename", f"{namespace}_old={namespace}")

    assert done.status == 1
    assert done.out == "2 names: 1 moved, 1 refused.\n"
    assert f"WARNING  {namespace}_old.lost refused: " in done.err
    assert catalog.tables.exists(TableIdentifier(Namespace((namespace,)), "orders"))
    lines = [json.loads(line) for line in (folder / "icetower-import.ndjson").read_text().splitlines()]
    assert lines[0]["source"] == f"{old}#prod"
    states = {(line["entry"]["name"][1], line["state"]) for line in lines[1:]}
    assert states == {("orders", "begun"), ("orders", "done"), ("lost", "refused")}
    assert {line["mode"] for line in lines[1:]} == {"adopt"}

    again = icetower("import", "sql", old, "--regex", ".*[.]orders", "--json")
    assert (again.status, again.json) == (0, {"summary": {}, "entries": []})
    recheck = icetower("import", "sql", old, "--recheck", "--regex", ".*[.]orders")
    assert (recheck.status, recheck.out) == (0, "1 name looked at, 0 changed.\n")
    recheck = icetower("import", "sql", old, "--recheck")
    assert recheck.status == 1
    assert "lost: it was not moved" in recheck.err
    assert recheck.out == "2 names looked at, 1 changed.\n"


def test_table_that_was_named_and_is_not_there_fails(icetower: Icetower, old: str) -> None:
    done = icetower("import", "sql", old, "--identifiers", "a.nothing")

    assert done.status == 1
    assert "a.nothing failed: " in done.err


def test_folder_is_found_by_its_metadata_file(
    icetower: Icetower, orders: str, namespace: str, catalog: RemoteCatalog
) -> None:
    place = orders.partition("/metadata/")[0]
    done = icetower("import", "folder", place, "--namespace", namespace, "--json", "--mode", "look-on")

    assert done.status == 0
    assert done.err.startswith("WARNING  No catalog was asked: ")
    (entry,) = done.json["entries"]
    assert (entry["state"], entry["mode"], entry["location"]) == ("done", "look-on", orders)
    assert catalog.tables.load(_identifier(entry)).metadata["properties"]["gc.enabled"] == "false"


def test_where_a_table_stays_at_its_source_nothing_is_said_to_move(
    icetower: Icetower, orders: str, namespace: str
) -> None:
    place = orders.partition("/metadata/")[0]
    arguments = ("import", "folder", place, "--namespace", namespace, "--mode", "look-on")

    would, done, again = (icetower(*arguments, *more) for more in (["--dry-run"], [], []))

    assert would.out.endswith("1 name: 1 would be registered.\n")
    assert done.out == "1 name: 1 registered.\n"
    assert again.out == "1 name: 1 registered before.\n"


def test_links_that_are_passed_over_are_named(icetower: Icetower, orders: str, folder: Path) -> None:
    place = folder / "table"
    place.mkdir()
    (place / "metadata").symlink_to(Path(orders.removeprefix("file://")).parent)

    for command in (("folder", str(place), "--namespace", "a"), ("parquet", str(place), "a.b")):
        done = icetower("import", *command)
        assert f"are not followed, and what is behind them is left out: file://{place}/metadata" in done.err


def test_recheck_of_a_folder_knows_commits_of_the_table_that_was_moved(
    icetower: Icetower, orders: str, namespace: str, catalog: RemoteCatalog
) -> None:
    place = orders.partition("/metadata/")[0]
    wanted = ("import", "folder", place, "--namespace", namespace)
    (entry,) = icetower(*wanted, "--json").json["entries"]
    assert icetower(*wanted, "--recheck").out == "1 name looked at, 0 changed.\n"
    catalog.tables.commit(_identifier(entry), [{"action": "set-properties", "updates": {"a": "b"}}])

    assert icetower(*wanted, "--recheck").out == "1 name looked at, 0 changed.\n"

    own = catalog.tables.unregister(_identifier(entry)).metadata_location
    moved_on = icetower(*wanted, "--recheck")
    assert moved_on.status == 1
    assert f"the source has moved on: from {orders} to {own}" in moved_on.err


def _identifier(entry: dict[str, list[str]]) -> TableIdentifier:
    *levels, name = entry["target"]
    return TableIdentifier(Namespace(tuple(levels)), name)


def test_export_to_the_same_server_is_refused_as_a_twin_and_can_be_allowed(
    icetower: Icetower, server_url: str, table: str, namespace: str
) -> None:
    arguments = ("export", server_url, "--identifiers", table, "--rename", f"{namespace}={namespace}_new")
    refused = icetower(*arguments, "--dry-run")
    assert refused.status == 1
    assert "is the same table" in refused.out
    assert "Both catalogs have the tables afterwards" in refused.err

    done = icetower(
        *arguments, "--allow", "same-uuid", "--allow", "location-shared", "--allow", "files-missing"
    )
    assert (done.status, done.out) == (0, "1 name: 1 registered.\n")


def test_table_without_a_uuid_is_given_one_when_all_else_is_done(
    icetower: Icetower, orders: str, folder: Path, namespace: str, catalog: RemoteCatalog
) -> None:
    path = Path(orders.removeprefix("file://"))
    document = json.loads(path.read_bytes())
    del document["table-uuid"], document["last-sequence-number"]
    nameless = path.with_name("00007-old.metadata.json")
    nameless.write_text(
        json.dumps({**document, "format-version": 1, "schema": document["schemas"][0], "partition-spec": []})
    )
    with closing(sqlite3.connect(folder / "old.db", isolation_level=None)) as database:
        database.executescript(V0)
        database.execute(
            "INSERT INTO iceberg_tables VALUES ('prod', ?, 'orders', ?, NULL)",
            (namespace, f"file://{nameless}"),
        )

    done = icetower("import", "sql", f"sqlite:///{folder / 'old.db'}", "--json")

    (entry,) = done.json["entries"]
    assert (done.status, entry["codes"]) == (0, ["no-uuid"])
    found = catalog.tables.load(_identifier(entry))
    assert found.metadata["table-uuid"] == entry["uuid"]
    assert found.metadata["format-version"] == 1
    assert found.metadata_location is not None
    assert "/00008-" in found.metadata_location
    assert found.metadata["metadata-log"][-1]["metadata-file"] == f"file://{nameless}"


class _Lying:
    """A source that names another table's metadata file once its own has been looked at."""

    name, warnings, drop_obstacle, shows_default_locations, has_entries = "lying", (), None, False, True

    def __init__(
        self, entry: Entry, *locations: str, dropped_at: str | None = None, keeps_it: bool = False
    ) -> None:
        self._entry, self._locations = entry, list(locations)
        self._dropped_at, self._keeps_it = dropped_at, keeps_it

    def namespaces(self) -> Iterator[Namespace]:
        yield self._entry.identifier.namespace

    def properties(self, namespace: Namespace) -> Mapping[str, str]:
        return {}

    def entries(self, namespace: Namespace) -> Iterator[Entry]:
        yield self._entry

    def find_location(self, entry: Entry) -> str | None:
        return self._locations.pop(0) if len(self._locations) > 1 else self._locations[0]

    def find_uuid(self, entry: Entry) -> str | None:
        return None

    def identity(self, entry: Entry, location: str) -> str | None:
        return None

    def drop(self, entry: Entry, location: str) -> str | None:
        if self._keeps_it:
            raise SourceFailed("it is protected")
        return self._dropped_at or location

    def mark(self, entry: Entry, properties: Mapping[str, str]) -> bool:
        return False


@pytest.mark.parametrize("lies_when", ["registering", "dropping"])
def test_source_that_moves_on_to_a_table_of_the_target_is_refused(
    catalog: RemoteCatalog, table: str, namespace: str, server_url: str, tmp_path: Path, lies_when: str
) -> None:
    own = TableIdentifier(Namespace((namespace,)), "moved")
    catalog.tables.create(own, SCHEMA)
    honest = catalog.tables.unregister(own).metadata_location
    victim = catalog.tables.load(TableIdentifier(Namespace((namespace,)), "orders")).metadata_location
    assert honest is not None
    assert victim is not None
    source = (
        _Lying(Entry(own), honest, victim)
        if lies_when == "registering"
        else _Lying(Entry(own), honest, dropped_at=victim)
    )
    moves = Moves(server_url, tmp_path / "report")

    assert moves.run(source) == {str(own): MoveState.FAILED}

    assert f"the source has moved on to {victim}: " in (moves.lines[str(own)].reason or "")
    registered = catalog.tables.load(own) if catalog.tables.exists(own) else None
    assert registered is None or registered.metadata_location == honest


def test_table_that_the_source_does_not_let_go_is_said_to_be_in_both(
    catalog: RemoteCatalog, namespace: str, server_url: str, tmp_path: Path
) -> None:
    name = TableIdentifier(Namespace((namespace,)), "moved")
    catalog.tables.create(name, SCHEMA)
    location = catalog.tables.unregister(name).metadata_location
    assert location is not None
    moves = Moves(server_url, tmp_path / "report")

    assert moves.run(_Lying(Entry(name), location, keeps_it=True)) == {str(name): MoveState.FAILED}
    assert f"it is protected. {name} is registered by now" in (moves.lines[str(name)].reason or "")

    assert moves.run(_Lying(Entry(name), location)) == {str(name): MoveState.DONE}


@pytest.mark.parametrize("is_successor", [False, True])
def test_table_without_a_uuid_is_followed_by_its_log_alone(
    orders: str,
    namespace: str,
    catalog: RemoteCatalog,
    server_url: str,
    tmp_path: Path,
    *,
    is_successor: bool,
) -> None:
    """One that has the name at the source by now may be another table, and the first one may be here alone."""
    first = Path(orders.removeprefix("file://"))
    document = json.loads(first.read_bytes())
    del document["table-uuid"], document["last-sequence-number"]
    document |= {"format-version": 1, "schema": document["schemas"][0], "partition-spec": []}
    paths = [first.with_name(f"0000{number}-old.metadata.json") for number in (7, 8)]
    log = [{"timestamp-ms": document["last-updated-ms"], "metadata-file": f"file://{paths[0]}"}]
    paths[0].write_text(json.dumps(document))
    paths[1].write_text(json.dumps(document | {"metadata-log": log if is_successor else []}))
    name = TableIdentifier(Namespace((namespace,)), "nameless")
    moves = Moves(server_url, tmp_path / "report")

    assert moves.run(_Lying(Entry(name), f"file://{paths[0]}"), Terms(Mode.KEEP)) == {
        str(name): MoveState.DONE
    }
    again = moves.run(_Lying(Entry(name), f"file://{paths[1]}"), Terms(Mode.KEEP))

    assert again == {str(name): MoveState.DONE if is_successor else MoveState.REFUSED}
    assert catalog.tables.load(name).metadata_location == f"file://{paths[is_successor]}"


def test_report_that_cannot_be_written_is_said_in_one_line(
    icetower: Icetower, old: str, folder: Path
) -> None:
    for path in ("/dev/full", "nowhere/report", "."):
        failed = icetower("import", "sql", old, "--report", path)
        assert failed.status == 1
        assert failed.err.count("\n") == 1


def test_a_run_that_finds_nothing_to_move_leaves_no_report_in_the_way_of_another_one(
    icetower: Icetower, old: str, folder: Path
) -> None:
    assert icetower("import", "folder", "absent", "--namespace", "a").status == 1
    assert list(folder.glob("*.ndjson")) == []

    assert icetower("import", "sql", old).out.startswith("2 names: ")


def test_a_recheck_without_a_report_is_refused(icetower: Icetower, old: str, folder: Path) -> None:
    done = icetower("import", "sql", old, "--recheck", "--report", "reprot.ndjson")

    assert (done.status, done.out) == (1, "")
    assert "There is no report reprot.ndjson" in done.err
    assert list(folder.glob("*.ndjson")) == []


@pytest.mark.parametrize(
    "option", ["token=t\u00f6ken", "header.x y=secret", "header.x=se\ncret", "header.=secret"]
)
def test_header_that_cannot_be_sent_is_wrong_usage(icetower: Icetower, option: str) -> None:
    failed = icetower("import", "rest", "http://127.0.0.1:1", "-p", option)

    assert failed.status == 2
    assert "cannot be sent" in failed.err
    assert option.partition("=")[2] not in failed.err


@pytest.mark.parametrize(
    ("command", "token_uri"), [("import", "http"), ("export", None), ("export", "/v1/oauth/tokens")]
)
def test_catalog_behind_oauth2_is_logged_into_as_often_as_needed(
    icetower: Icetower,
    server_url: str,
    table: str,
    namespace: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    token_uri: str | None,
) -> None:
    monkeypatch.setenv("OLD_LOGIN", f"{CLIENT_ID}:{SECRET}")
    with guarded(server_url) as guard:
        guard.calls_per_token = 3
        at = (
            []
            if token_uri is None
            else ["-p", f"oauth2-server-uri={token_uri.replace('http', guard.token_uri)}"]
        )
        done = icetower(
            *(["import", "rest"] if command == "import" else ["export"]), guard.uri, *at,
            "-p", "credential=env:OLD_LOGIN", "-p", "scope=PRINCIPAL_ROLE:ALL", "-p", "header.X-Realm=eu",
            "--identifiers", table, "--rename", f"{namespace}={namespace}_new", "--json",
            "--allow", "same-uuid", "--allow", "location-shared", "--allow", "files-missing",
            *(["--mode", "look-on"] if command == "import" else []),
        )  # fmt: skip

    assert (done.status, done.json["summary"]) == (0, {"done": 1})
    assert guard.given > 1
    assert {tuple(form.values()) for form in guard.asked} == {
        ("client_credentials", CLIENT_ID, SECRET, "PRINCIPAL_ROLE:ALL")
    }
    assert {headers["X-Realm"] for headers in guard.headers} == {"eu"}
    texts = [done.out, done.err, *(path.read_text() for path in folder.iterdir())]
    assert not any(SECRET in text or "token-" in text for text in texts)


def test_headers_for_a_catalog_are_not_sent_to_a_token_endpoint_elsewhere(
    icetower: Icetower, server_url: str
) -> None:
    with guarded() as elsewhere, guarded(server_url) as guard:
        done = icetower(
            "import", "rest", guard.uri, "-p", f"credential={CLIENT_ID}:{SECRET}", "-p", "header.X-Key=abc",
            "-p", f"oauth2-server-uri={elsewhere.token_uri}", "--dry-run",
        )  # fmt: skip

    assert done.err == "Error: no\n"  # It takes only tokens of its own.
    assert "X-Key" not in elsewhere.headers[0]
    assert guard.asked == []


def test_login_that_fails_ends_the_command_with_one_line(icetower: Icetower) -> None:
    with guarded() as guard:
        failed = icetower("export", guard.uri, "-p", f"credential={CLIENT_ID}:geheim")

    assert failed.status == 1
    assert f"Error: Cannot log in at {guard.token_uri}: invalid_client" in failed.err
    assert "geheim" not in failed.err


def test_secret_that_goes_without_encryption_is_warned_of(icetower: Icetower) -> None:
    failed = icetower(
        "import", "rest", "http://127.0.0.1:1", "-p", "credential=a:geheim",
        "-p", "oauth2-server-uri=http://nowhere.invalid/token",
    )  # fmt: skip

    assert failed.status == 1
    assert "The secret goes to http://nowhere.invalid/token without encryption" in failed.err
    assert "Cannot log in at http://nowhere.invalid/token" in failed.err
    assert "geheim" not in failed.err


def test_password_of_a_source_is_in_no_report(icetower: Icetower, server_url: str, folder: Path) -> None:
    secret = server_url.replace("//", "//anna:geheim@")

    icetower("import", "rest", secret, "--uri", secret, "--mode", "fence", "-i", "absent.t")

    text = (folder / "icetower-import.ndjson").read_text()
    assert "geheim" not in text
    assert server_url in text


def test_a_source_that_is_not_there_is_named_without_advice_about_the_target(icetower: Icetower) -> None:
    failed = icetower("import", "rest", "http://127.0.0.1:1/", "--dry-run")

    assert failed.status == 1
    assert "Cannot reach a catalog at http://127.0.0.1:1: " in failed.err
    assert "--uri" not in failed.err


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("import", ["--mode", "adopt"]),
        ("import", ["--mode", "fence"]),
        ("import", ["--mode", "look-on"]),
        ("export", ["--unregister"]),
    ],
)
def test_a_catalog_that_is_source_and_target_keeps_what_it_has(
    icetower: Icetower,
    catalog: RemoteCatalog,
    table: str,
    view: str,
    namespace: str,
    server_url: str,
    command: str,
    options: list[str],
) -> None:
    """Whatever its address is called: a table that is let go there would be nowhere."""
    orders, big = (TableIdentifier(Namespace((namespace,)), name) for name in ("orders", "big"))
    before = catalog.tables.load(orders), catalog.views.load(big)
    itself = server_url.replace("127.0.0.1", "localhost")
    arguments = ["import", "rest", itself] if command == "import" else ["export", itself]

    done = icetower(*arguments, *options, "--regex", f"{namespace}[.].*")

    assert done.status == 1
    assert done.out == "2 names: 2 refused.\n"
    assert f"{table} refused: " in done.err
    assert f"{view} is the entry itself: source and target are one warehouse" in done.err
    assert (catalog.tables.load(orders), catalog.views.load(big)) == before
    catalog.tables.commit(orders, [{"action": "set-properties", "updates": {"a": "b"}}])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--from-warehouse", ""], "warehouse is empty"),
        (["--allow", "same-uiud"], "same-uiud is no finding that can be allowed"),
    ],
)
def test_options_that_make_no_sense_are_refused(icetower: Icetower, options: list[str], said: str) -> None:
    refused = icetower("import", "rest", "http://127.0.0.1:9", "--dry-run", *options)

    assert refused.status == 2
    assert said in " ".join(refused.err.replace("│", " ").split())


def test_tables_of_a_folder_are_found_by_the_link_that_their_locations_have(
    icetower: Icetower, folder: Path, namespace: str
) -> None:
    (folder / "real").mkdir()
    (folder / "link").symlink_to("real")
    catalog = SqlCatalog("x", uri="sqlite:///:memory:", warehouse=f"file://{folder}/link")
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    table.append(pa.table({"id": [2]}))

    (entry,) = icetower("import", "folder", "link", "--dry-run", "--json").json["entries"]
    assert entry["source_location"] == table.metadata_location
