"""Names that cannot be, that are not there, or that are taken."""

from __future__ import annotations

import pytest

from tests.bad_input.attacks import (
    DELETE,
    GET,
    HEAD,
    NO_NAMESPACE,
    NO_ROUTE,
    NO_TABLE,
    NO_VIEW,
    NO_WAREHOUSE,
    POST,
    TAKEN,
    Attack,
    check_refused,
)
from tests.bad_input.victim import Victim

NS = "/v1/namespaces"
LONG = "x" * 256
COMMIT = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
NAMES = [
    Attack("no levels", POST, NS, 400, "Invalid namespace: it has no levels", body={"namespace": []}),
    Attack("an empty level", POST, NS, 400, "Invalid namespace level: it is empty", body={"namespace": [""]}),
    Attack(
        "empty below", POST, NS, 400, "Invalid namespace level: it is empty", body={"namespace": ["a", ""]}
    ),
    Attack("empty between", GET, f"{NS}/a%1F%1Fb", 400, "Invalid namespace level: it is empty"),
    Attack("separator first", GET, f"{NS}/%1Fa", 400, "Invalid namespace level: it is empty"),
    Attack("separator last", GET, f"{NS}/a%1F", 400, "Invalid namespace level: it is empty"),
    Attack("separator alone", DELETE, f"{NS}/%1F", 400, "Invalid namespace level: it is empty"),
    Attack(
        "separator in a level",
        POST,
        NS,
        400,
        "Invalid namespace level 'a\\x1fb': it contains '\\x1f'",
        body={"namespace": ["a\x1fb"]},
    ),
    Attack(
        "nul in a level",
        POST,
        NS,
        400,
        "Invalid namespace level 'a\\x00': it contains '\\x00'",
        body={"namespace": ["a\0"]},
    ),
    Attack(
        "line end in a level",
        GET,
        f"{NS}/a%0d%0aX-Evil:%201",
        400,
        "Invalid namespace level …: it contains '\\r'",
    ),
    Attack("delete character", GET, f"{NS}/a/tables/%7f", 400, "Invalid name '\\x7f': it contains '\\x7f'"),
    Attack(
        "lone surrogate in json",
        POST,
        NS,
        400,
        "Invalid body: Invalid JSON: …",
        body=b'{"namespace": ["\\ud800"]}',
    ),
    Attack(
        "surrogates in the wrong order",
        POST,
        NS,
        400,
        "Invalid body: Invalid JSON: …",
        body=b'{"namespace": ["\\udc00\\ud800"]}',
    ),
    Attack(
        "one dot",
        POST,
        NS,
        400,
        "Invalid namespace level '.': no path can hold it",
        body={"namespace": ["."]},
    ),
    Attack(
        "two dots",
        POST,
        NS,
        400,
        "Invalid namespace level '..': no path can hold it",
        body={"namespace": ["a", ".."]},
    ),
    Attack(
        "two dots in a path",
        GET,
        f"{NS}/%2e%2e/tables",
        400,
        "Invalid namespace level '..': no path can hold it",
    ),
    Attack("dot table", GET, f"{NS}/a/tables/..", 400, "Invalid name '..': no path can hold it"),
    Attack(
        "dot table made",
        POST,
        f"{NS}/a/tables",
        400,
        "Invalid name '..': no path can hold it",
        body={"name": "..", "schema": {"type": "struct", "fields": []}},
    ),
    Attack(
        "level too long",
        POST,
        NS,
        400,
        "Invalid namespace level: 256 characters are more than 255",
        body={"namespace": [LONG]},
    ),
    Attack(
        "levels too long together",
        POST,
        NS,
        400,
        "Invalid namespace: 1023 bytes are more than 1000",
        body={"namespace": ["x" * 255] * 4},
    ),
    Attack(
        "letters too long",
        POST,
        NS,
        400,
        "Invalid namespace: 1020 bytes are more than 1000",
        body={"namespace": ["😀" * 255]},
    ),
    Attack(
        "table name too long",
        GET,
        f"{NS}/a/tables/{LONG}",
        400,
        "Invalid name: 256 characters are more than 255",
    ),
    Attack("empty table name", GET, f"{NS}/a/tables/", 404, "No route …", NO_ROUTE),
    Attack(
        "empty name in a body",
        POST,
        f"{NS}/a/tables",
        400,
        "Invalid name: it is empty",
        body={"name": "", "schema": {"type": "struct", "fields": []}},
    ),
    Attack(
        "nul in a table name",
        POST,
        f"{NS}/a/register",
        400,
        "Invalid name 't\\x00': it contains '\\x00'",
        body={"name": "t\0", "metadata-location": "$METADATA"},
    ),
    Attack(
        "empty view name",
        POST,
        f"{NS}/a/register-view",
        400,
        "Invalid name: it is empty",
        body={"name": "", "metadata-location": "x"},
    ),
    Attack(
        "name is a number",
        POST,
        f"{NS}/a/tables",
        400,
        "Invalid body: name: …string",
        body={"name": 5, "schema": {"type": "struct", "fields": []}},
    ),
    Attack(
        "levels are a text",
        POST,
        NS,
        400,
        "Invalid body: namespace: Input should be a valid array",
        body={"namespace": "a"},
    ),
    Attack(
        "a level is a list", POST, NS, 400, "Invalid body: namespace[0]: …string", body={"namespace": [["a"]]}
    ),
    Attack(
        "a level is null",
        POST,
        NS,
        400,
        "Invalid body: namespace[1]: …string",
        body={"namespace": ["a", None]},
    ),
]

ABSENT = [
    Attack("no such namespace", GET, f"{NS}/nope", 404, "Namespace does not exist: nope", NO_NAMESPACE),
    Attack("head of none", HEAD, f"{NS}/nope", 404),
    Attack("drop none", DELETE, f"{NS}/nope", 404, "Namespace does not exist: nope", NO_NAMESPACE),
    Attack(
        "children of none",
        GET,
        f"{NS}?parent=non-existing",
        404,
        "Namespace does not exist: non-existing",
        NO_NAMESPACE,
    ),
    Attack("child of none", GET, f"{NS}/a%1Fnope", 404, "Namespace does not exist: a.nope", NO_NAMESPACE),
    Attack("separator taken for a dot", GET, f"{NS}/a.b", 404, "Namespace does not exist: a.b", NO_NAMESPACE),
    Attack("tables of none", GET, f"{NS}/nope/tables", 404, "Namespace does not exist: nope", NO_NAMESPACE),
    Attack("views of none", GET, f"{NS}/nope/views", 404, "Namespace does not exist: nope", NO_NAMESPACE),
    Attack(
        "properties of none",
        POST,
        f"{NS}/nope/properties",
        404,
        "Namespace does not exist: nope",
        NO_NAMESPACE,
        body={"updates": {"a": "b"}},
    ),
    Attack("no such table", GET, f"{NS}/a/tables/nope", 404, "Table does not exist: a.nope", NO_TABLE),
    Attack("table in none", GET, f"{NS}/nope/tables/t", 404, "Table does not exist: nope.t", NO_TABLE),
    Attack("head of no table", HEAD, f"{NS}/a/tables/nope", 404),
    Attack("head of a view as a table", HEAD, f"{NS}/a/tables/v", 404),
    Attack("view as a table", GET, f"{NS}/a/tables/v", 404, "Table does not exist: a.v", NO_TABLE),
    Attack(
        "commit to a view as a table",
        POST,
        f"{NS}/a/tables/v",
        404,
        "Table does not exist: a.v",
        NO_TABLE,
        body=COMMIT,
    ),
    Attack("drop a view as a table", DELETE, f"{NS}/a/tables/v", 404, "Table does not exist: a.v", NO_TABLE),
    Attack(
        "purge a view",
        DELETE,
        f"{NS}/a/tables/v?purgeRequested=true",
        404,
        "Table does not exist: a.v",
        NO_TABLE,
    ),
    Attack(
        "unregister a view", POST, f"{NS}/a/tables/v/unregister", 404, "Table does not exist: a.v", NO_TABLE
    ),
    Attack(
        "unregister no table",
        POST,
        f"{NS}/a/tables/nope/unregister",
        404,
        "Table does not exist: a.nope",
        NO_TABLE,
    ),
    Attack("table as a view", GET, f"{NS}/a/views/t", 404, "View does not exist: a.t", NO_VIEW),
    Attack("head of a table as a view", HEAD, f"{NS}/a/views/t", 404),
    Attack(
        "replace a table as a view",
        POST,
        f"{NS}/a/views/t",
        404,
        "View does not exist: a.t",
        NO_VIEW,
        body=COMMIT,
    ),
    Attack("drop a table as a view", DELETE, f"{NS}/a/views/t", 404, "View does not exist: a.t", NO_VIEW),
    Attack("another case", GET, f"{NS}/a/tables/T", 404, "Table does not exist: a.T", NO_TABLE),
    Attack("a space behind", GET, f"{NS}/a/tables/t%20", 404, "Table does not exist: a.t ", NO_TABLE),
    Attack(
        "a slash inside",
        GET,
        f"{NS}/a%2Ftables%2Ft",
        404,
        "Namespace does not exist: a/tables/t",
        NO_NAMESPACE,
    ),
    Attack(
        "sql in a name",
        GET,
        f"{NS}/a/tables/t'%20OR%20'1'='1",
        404,
        "Table does not exist: a.t' OR '1'='1",
        NO_TABLE,
    ),
    Attack("like in a name", DELETE, f"{NS}/%25", 404, "Namespace does not exist: %", NO_NAMESPACE),
    Attack("unknown prefix", GET, "/v1/nope/namespaces", 404, "Warehouse does not exist: nope", NO_WAREHOUSE),
    Attack(
        "table of another warehouse",
        GET,
        "/v1/other/namespaces/a/tables/t",
        404,
        "Table does not exist: a.t",
        NO_TABLE,
    ),
    Attack(
        "config of no warehouse",
        GET,
        "/v1/config?warehouse=nope",
        404,
        "Warehouse does not exist: nope",
        NO_WAREHOUSE,
    ),
    Attack(
        "config of nul", GET, "/v1/config?warehouse=%00", 404, "Warehouse does not exist: …", NO_WAREHOUSE
    ),
    Attack(
        "config of a traversal",
        GET,
        "/v1/config?warehouse=../default",
        404,
        "Warehouse does not exist: ../default",
        NO_WAREHOUSE,
    ),
]

STANDING = [
    Attack("namespace again", POST, NS, 409, "Namespace already exists: a", TAKEN, body={"namespace": ["a"]}),
    Attack(
        "drop with tables",
        DELETE,
        f"{NS}/a",
        409,
        "Namespace a is not empty. It contains …",
        "NamespaceNotEmptyException",
    ),
    Attack(
        "table onto itself again",
        POST,
        f"{NS}/a/tables",
        409,
        "Table already exists: a.t",
        TAKEN,
        body={"name": "t", "schema": {"type": "struct", "fields": []}},
    ),
    Attack(
        "table onto a view",
        POST,
        f"{NS}/a/tables",
        409,
        "View with same name already exists: a.v",
        TAKEN,
        body={"name": "v", "schema": {"type": "struct", "fields": []}},
    ),
    Attack(
        "staged onto a table",
        POST,
        f"{NS}/a/tables",
        409,
        "Table already exists: a.t",
        TAKEN,
        body={"name": "t", "stage-create": True, "schema": {"type": "struct", "fields": []}},
    ),
    Attack(
        "rename onto a view",
        POST,
        "/v1/tables/rename",
        409,
        "Cannot rename a.t to a.v. View already exists",
        TAKEN,
        body={"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "v"}},
    ),
    Attack(
        "rename a view onto a table",
        POST,
        "/v1/views/rename",
        409,
        "Cannot rename a.v to a.t. Table already exists",
        TAKEN,
        body={"source": {"namespace": ["a"], "name": "v"}, "destination": {"namespace": ["a"], "name": "t"}},
    ),
    Attack(
        "rename nothing",
        POST,
        "/v1/tables/rename",
        404,
        "Table does not exist: a.nope",
        NO_TABLE,
        body={
            "source": {"namespace": ["a"], "name": "nope"},
            "destination": {"namespace": ["a"], "name": "x"},
        },
    ),
    Attack(
        "rename a view as a table",
        POST,
        "/v1/tables/rename",
        404,
        "Table does not exist: a.v",
        NO_TABLE,
        body={"source": {"namespace": ["a"], "name": "v"}, "destination": {"namespace": ["a"], "name": "x"}},
    ),
    Attack(
        "rename into nowhere",
        POST,
        "/v1/tables/rename",
        404,
        "Namespace does not exist: nope",
        NO_NAMESPACE,
        body={
            "source": {"namespace": ["a"], "name": "t"},
            "destination": {"namespace": ["nope"], "name": "t"},
        },
    ),
    Attack(
        "rename to dots",
        POST,
        "/v1/tables/rename",
        400,
        "Invalid name '..': no path can hold it",
        body={"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": ".."}},
    ),
    Attack(
        "rename to no levels",
        POST,
        "/v1/tables/rename",
        400,
        "Invalid namespace: it has no levels",
        body={"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": [], "name": "x"}},
    ),
    Attack(
        "rename halves",
        POST,
        "/v1/tables/rename",
        400,
        "Invalid body: destination: Field required",
        body={"source": {"namespace": ["a"], "name": "t"}},
    ),
]


@pytest.mark.parametrize("attack", [*NAMES, *ABSENT, *STANDING], ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)


def test_properties_hold_any_text(victim: Victim) -> None:
    odd = {
        "": "empty",
        "nul": "a\0b",
        "\0": "nul",
        "line": "\r\n",
        "bidi": "\u202e",
        "😀": "\ufffe",
        "quote": "'\"\\;--",
        "x": "y" * 100_000,
    }

    victim.client.post(NS, json={"namespace": ["odd"], "properties": odd}).raise_for_status()

    properties = victim.client.get(f"{NS}/odd").json()["properties"]
    assert properties == odd | {"location": properties["location"]}
    victim.client.delete(f"{NS}/odd").raise_for_status()
