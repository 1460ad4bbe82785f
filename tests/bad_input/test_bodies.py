"""Bodies that are no JSON, JSON that no parser should have to read, and JSON of the wrong shape, for every route."""

from __future__ import annotations

import json

import pytest

from tests.bad_input.attacks import PATCH, POST, Attack, check_refused
from tests.bad_input.victim import Victim
from tests.bad_input.wire import request, send

NS = "/v1/namespaces"
TABLE = f"{NS}/a/tables/v2"
NO_JSON = "Invalid body: Invalid JSON: …"
NO_OBJECT = "Invalid body: …an object"

SYNTAX = [
    Attack("no body", POST, NS, 400, "Invalid body: it is empty, a JSON object is expected"),
    Attack("empty body", POST, NS, 400, "Invalid body: it is empty, a JSON object is expected", body=b""),
    Attack("spaces", POST, NS, 400, "Invalid body: it is empty, a JSON object is expected", body=b" \n\t "),
    Attack("words", POST, NS, 400, NO_JSON, body=b"hello"),
    Attack(
        "xml",
        POST,
        NS,
        400,
        NO_JSON,
        body=b"<!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]><x>&y;</x>",
    ),
    Attack("a form", POST, NS, 400, NO_JSON, body=b"namespace=a&properties="),
    Attack("half an object", POST, NS, 400, NO_JSON, body=b'{"namespace": ["x"'),
    Attack("comma at the end", POST, NS, 400, NO_JSON, body=b'{"namespace": ["x"],}'),
    Attack("single quotes", POST, NS, 400, NO_JSON, body=b"{'namespace': ['x']}"),
    Attack("a comment", POST, NS, 400, NO_JSON, body=b'{"namespace": ["x"] /* x */}'),
    Attack("two objects", POST, NS, 400, NO_JSON, body=b'{"namespace": ["x"]}{"namespace": ["y"]}'),
    Attack("byte order mark", POST, NS, 400, NO_JSON, body=b'\xef\xbb\xbf{"namespace": ["x"]}'),
    Attack("utf-16", POST, NS, 400, NO_JSON, body='{"namespace": ["x"]}'.encode("utf-16")),
    Attack("utf-32", POST, NS, 400, NO_JSON, body='{"namespace": ["x"]}'.encode("utf-32-be")),
    Attack("latin-1", POST, NS, 400, NO_JSON, body='{"namespace": ["ä"]}'.encode("latin-1")),
    Attack("a surrogate in utf-8", POST, NS, 400, NO_JSON, body=b'{"namespace": ["\xed\xa0\x80"]}'),
    Attack("overlong utf-8", POST, NS, 400, NO_JSON, body=b'{"namespace": ["\xc0\xaf"]}'),
    Attack(
        "lone surrogate escape",
        POST,
        NS,
        400,
        NO_JSON,
        body=b'{"namespace": ["x"], "properties": {"\\udfff": "x"}}',
    ),
    Attack("raw control character", POST, NS, 400, NO_JSON, body=b'{"namespace": ["x\x01"]}'),
    Attack("raw line end in a text", POST, NS, 400, NO_JSON, body=b'{"namespace": ["x\n"]}'),
    Attack("nul behind", POST, NS, 400, NO_JSON, body=b'{"namespace": ["x"]}\x00'),
    Attack("nul alone", POST, NS, 400, NO_JSON, body=b"\x00"),
    Attack(
        "10,000 levels",
        POST,
        NS,
        400,
        "Invalid body: …recursion limit…",
        body=b'{"x": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    ),
    Attack(
        "10,000 objects",
        POST,
        NS,
        400,
        "Invalid body: …recursion limit…",
        body=b'{"x": ' * 10_000 + b"1" + b"}" * 10_000,
    ),
    Attack("100,000 brackets", POST, TABLE, 400, "Invalid body: …recursion limit…", body=b"[" * 100_000),
    Attack(
        "deep with a huge number",
        POST,
        NS,
        400,
        "Invalid body: it is nested too deeply",
        body=b'{"x": ' + b"[" * 50_000 + b"]" * 50_000 + b', "y": 99999999999999999999}',
    ),
    Attack(
        "python's nan",
        POST,
        NS,
        400,
        "Invalid body: NaN is not a JSON number",
        body=b'{"namespace": ["x"], "y": NaN}',
    ),
    Attack(
        "infinity",
        POST,
        NS,
        400,
        "Invalid body: Infinity is not a JSON number",
        body=b'{"namespace": ["x"], "y": Infinity}',
    ),
    Attack(
        "less than infinity",
        POST,
        NS,
        400,
        "Invalid body: -Infinity is not a JSON number",
        body=b'{"namespace": ["x"], "y": -Infinity}',
    ),
    Attack(
        "2^63",
        POST,
        NS,
        400,
        "Invalid body: 9223372036854775808 is not a 64-bit integer",
        body=b'{"namespace": ["x"], "y": 9223372036854775808}',
    ),
    Attack(
        "2^64",
        POST,
        NS,
        400,
        "Invalid body: 18446744073709551616 is not a 64-bit integer",
        body=b'{"namespace": ["x"], "y": 18446744073709551616}',
    ),
    Attack(
        "a number of 5,000 digits",
        POST,
        NS,
        400,
        "Invalid body: 999…999 is not a 64-bit integer",
        body=b'{"namespace": ["x"], "y": ' + b"9" * 5_000 + b"}",
    ),
    Attack(
        "1e400",
        POST,
        NS,
        400,
        "Invalid body: 1e400 is not a 64-bit number",
        body=b'{"namespace": ["x"], "y": 1e400}',
    ),
    Attack("hexadecimal", POST, NS, 400, NO_JSON, body=b'{"namespace": ["x"], "y": 0x10}'),
    Attack("leading zero", POST, NS, 400, NO_JSON, body=b'{"namespace": ["x"], "y": 01}'),
    Attack("plus", POST, NS, 400, NO_JSON, body=b'{"namespace": ["x"], "y": +1}'),
]

ROUTES_WITH_BODIES = [
    NS,
    f"{NS}/a/properties",
    f"{NS}/a/tables",
    f"{NS}/a/register",
    TABLE,
    f"{TABLE}/metrics",
    "/v1/tables/rename",
    "/v1/transactions/commit",
    f"{NS}/a/views",
    f"{NS}/a/register-view",
    f"{NS}/a/views/v",
    "/v1/views/rename",
    "/management/v1/warehouses",
    "/v1/default/namespaces/a/tables",
]
NOT_OBJECTS = [
    ("array", []),
    ("array of objects", [{}]),
    ("text", "{}"),
    ("number", 7),
    ("true", True),
    ("null", None),
]

SHAPES = [
    Attack(
        "null namespace",
        POST,
        NS,
        400,
        "Invalid body: namespace: Input should be a valid array",
        body={"namespace": None},
    ),
    Attack(
        "properties are a list",
        POST,
        NS,
        400,
        "Invalid body: properties: Input should be an object",
        body={"namespace": ["x"], "properties": ["a"]},
    ),
    Attack(
        "property is a number",
        POST,
        NS,
        400,
        "Invalid body: properties.a: Input should be a valid string",
        body={"namespace": ["x"], "properties": {"a": 1}},
    ),
    Attack(
        "property is null",
        POST,
        NS,
        400,
        "Invalid body: properties.a: Input should be a valid string",
        body={"namespace": ["x"], "properties": {"a": None}},
    ),
    Attack(
        "property is an object",
        POST,
        f"{NS}/a/properties",
        400,
        "Invalid body: updates.a: Input should be a valid string",
        body={"updates": {"a": {}}},
    ),
    Attack(
        "removals are a text",
        POST,
        f"{NS}/a/properties",
        400,
        "Invalid body: removals: Input should be a valid array",
        body={"removals": "abc"},
    ),
    Attack(
        "set and removed",
        POST,
        f"{NS}/a/properties",
        422,
        "Cannot both set and remove properties: a",
        body={"removals": ["a", "b"], "updates": {"a": "1"}},
    ),
    Attack(
        "names in snake case",
        POST,
        "/v1/transactions/commit",
        400,
        "Invalid body: table-changes: Field required",
        body={"table_changes": []},
    ),
    Attack(
        "no changes",
        POST,
        "/v1/transactions/commit",
        400,
        "Invalid body: table-changes: …at least 1 item…",
        body={"table-changes": []},
    ),
    Attack(
        "change without a table",
        POST,
        "/v1/transactions/commit",
        400,
        "Invalid body: table-changes[0].identifier: Field required",
        body={"table-changes": [{"requirements": [], "updates": []}]},
    ),
    Attack(
        "change of no table",
        POST,
        "/v1/transactions/commit",
        404,
        "Table does not exist: a.nope",
        "NoSuchTableException",
        body={
            "table-changes": [
                {
                    "identifier": {"namespace": ["a"], "name": "v2"},
                    "requirements": [],
                    "updates": [{"action": "set-properties", "updates": {"a": "b"}}],
                },
                {"identifier": {"namespace": ["a"], "name": "nope"}, "requirements": [], "updates": []},
            ]
        },
    ),
    Attack(
        "second change refused",
        POST,
        "/v1/transactions/commit",
        400,
        "Cannot remove the current schema",
        body={
            "table-changes": [
                {
                    "identifier": {"namespace": ["a"], "name": "v2"},
                    "requirements": [],
                    "updates": [{"action": "set-properties", "updates": {"a": "b"}}],
                },
                {
                    "identifier": {"namespace": ["a"], "name": "v3"},
                    "requirements": [],
                    "updates": [{"action": "remove-schemas", "schema-ids": [0]}],
                },
            ]
        },
    ),
    Attack(
        "change of a view",
        POST,
        "/v1/transactions/commit",
        404,
        "Table does not exist: a.v",
        "NoSuchTableException",
        body={
            "table-changes": [
                {"identifier": {"namespace": ["a"], "name": "v"}, "requirements": [], "updates": []}
            ]
        },
    ),
    Attack(
        "change of dots",
        POST,
        "/v1/transactions/commit",
        400,
        "Invalid name '..': no path can hold it",
        body={
            "table-changes": [
                {"identifier": {"namespace": ["a"], "name": ".."}, "requirements": [], "updates": []}
            ]
        },
    ),
    Attack(
        "no report type",
        POST,
        f"{TABLE}/metrics",
        400,
        "Invalid body: report-type: Field required",
        body={"table-name": "v2"},
    ),
    Attack(
        "report type is a list",
        POST,
        f"{TABLE}/metrics",
        400,
        "Invalid body: report-type: …string",
        body={"report-type": []},
    ),
    Attack(
        "source is a text",
        POST,
        "/v1/tables/rename",
        400,
        "Invalid body: source: …",
        body={"source": "a.t", "destination": "a.u"},
    ),
    Attack(
        "overwrite in words",
        POST,
        f"{NS}/a/register",
        400,
        "Invalid body: overwrite: Input should be a valid boolean",
        body={"name": "x", "metadata-location": "$METADATA", "overwrite": "true"},
    ),
    Attack(
        "overwrite as a number",
        POST,
        f"{NS}/a/register",
        400,
        "Invalid body: overwrite: Input should be a valid boolean",
        body={"name": "x", "metadata-location": "$METADATA", "overwrite": 1},
    ),
    Attack(
        "read-only in words",
        POST,
        f"{NS}/a/register",
        400,
        "Invalid body: read-only: Input should be a valid boolean",
        body={"name": "x", "metadata-location": "$METADATA", "read-only": "yes"},
    ),
    Attack(
        "something else is expected",
        POST,
        f"{NS}/a/register",
        409,
        "Cannot overwrite a.x: expected metadata-location elsewhere, nothing has the name",
        "CommitFailedException",
        body={
            "name": "x",
            "metadata-location": "$METADATA",
            "overwrite": True,
            "expected-metadata-location": "elsewhere",
        },
    ),
    Attack(
        "check without a location",
        POST,
        f"{NS}/a/register/check",
        400,
        "Invalid body: metadata-location: Field required",
        body={"name": "x"},
    ),
    Attack(
        "check of a location that is longer than any",
        POST,
        f"{NS}/a/register/check",
        400,
        "Invalid metadata-location: it has 100007 characters, more than 32768",
        body={"name": "x", "metadata-location": "file://" + "x" * 100_000},
    ),
    Attack(
        "check of a kind that is none",
        POST,
        f"{NS}/a/register/check",
        400,
        "Invalid body: type: Input should be 'table' or 'view'",
        body={"name": "x", "metadata-location": "$METADATA", "type": "index"},
    ),
    Attack(
        "check of a name that cannot be one",
        POST,
        f"{NS}/a/register/check",
        400,
        "…",
        body={"name": "", "metadata-location": "$METADATA"},
    ),
    Attack(
        "another location is expected of what is to be let go",
        POST,
        f"{NS}/a/tables/v2/unregister",
        409,
        "Cannot unregister a.v2: expected metadata-location elsewhere, it is at …",
        "CommitFailedException",
        headers={"X-Icetower-Expected-Metadata-Location": "elsewhere"},
    ),
    Attack(
        "no metadata location",
        POST,
        f"{NS}/a/register",
        400,
        "Invalid body: metadata-location: Field required",
        body={"name": "x"},
    ),
    Attack(
        "stage in words",
        POST,
        f"{NS}/a/tables",
        400,
        "Invalid body: stage-create: Input should be a valid boolean",
        body={"name": "x", "stage-create": "yes", "schema": {"type": "struct", "fields": []}},
    ),
    Attack(
        "name a megabyte long",
        POST,
        f"{NS}/a/tables",
        400,
        "Invalid name: 900000 characters are more than 255",
        body={"name": "x" * 900_000, "schema": {"type": "struct", "fields": []}},
    ),
    Attack(
        "key a megabyte long",
        POST,
        NS,
        400,
        "Invalid body: properties.xxx…: Input should be a valid string",
        body={"namespace": ["x"], "properties": {"x" * 900_000: 1}},
    ),
]


@pytest.mark.parametrize("attack", [*SYNTAX, *SHAPES], ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    answer = check_refused(attack, victim)

    assert len(answer.body) < 2_000, "what was sent is not sent back"


@pytest.mark.parametrize("target", ROUTES_WITH_BODIES)
@pytest.mark.parametrize("value", [value for _, value in NOT_OBJECTS], ids=[name for name, _ in NOT_OBJECTS])
def test_json_that_is_no_object_is_refused_everywhere(victim: Victim, target: str, value: object) -> None:
    check_refused(Attack("", POST, target, 400, NO_OBJECT, body=json.dumps(value).encode()), victim)


# A commit without requirements and updates is a commit that changes nothing.
@pytest.mark.parametrize(
    "target",
    [each for each in ROUTES_WITH_BODIES if not each.endswith(("/properties", "/tables/v2", "/views/v"))],
)
def test_empty_object_is_refused_where_a_field_is_needed(victim: Victim, target: str) -> None:
    check_refused(Attack("", POST, target, 400, "Invalid body: …: Field required", body={}), victim)


def test_of_two_equal_keys_the_last_one_counts(victim: Victim) -> None:
    body = b'{"removals": ["first"], "removals": ["second"], "updates": {}}'

    answer = send(victim.port, request(POST, f"{NS}/a/properties", {}, body))

    assert answer.json() == {"updated": [], "removed": [], "missing": ["second"]}


@pytest.mark.parametrize(
    ("method", "target"),
    [
        (POST, "/v1/namespaces"),
        (POST, "/v1/namespaces/a/tables/t"),
        (POST, "/v1/namespaces/a/tables/t/validate"),
        (POST, "/v1/transactions/commit"),
        (POST, "/management/v1/warehouses"),
        (PATCH, "/management/v1/warehouses/default"),
        ("PUT", "/v1/namespaces/a/tables/t/refs/main"),
    ],
)
def test_body_of_very_many_values_is_refused_everywhere(victim: Victim, method: str, target: str) -> None:
    body = b'{"unknown": [' + b"[]," * 100_000 + b"[]]}"
    check_refused(
        Attack("", method, target, 400, "Invalid body: it has more than 200000 values, …", body=body), victim
    )
