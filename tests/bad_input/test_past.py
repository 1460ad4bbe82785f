"""Warehouses as they were, what was dropped, restoring: odd times, odd bodies, and every route at a past prefix."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import yaml

from tests.architecture.source_files import ROOT
from tests.bad_input.attacks import GET, NO_WAREHOUSE, POST, Attack, check_refused
from tests.bad_input.victim import Victim
from tests.builders.claimed_files import ClaimingWriter
from tests.builders.http_catalog import (
    SCHEMA,
    VIEW_VERSION,
    http_catalog,
    make_namespace,
    make_table,
    make_view,
    set_properties,
)

UNREADABLE = "Invalid time …: write a date or a time such as 2026-11-20T10:00:00Z, or epoch milliseconds"
TOO_OLD = "Invalid time …: it is …, and history is kept since …; the setting history_days says for how long"
FUTURE = "Invalid time …: it is in the future; now is …"
NO_SUCH = "Nothing that was dropped can come back under …"
ODD_TIMES: Mapping[str, tuple[int, str, str]] = {
    "@": (404, "Warehouse does not exist: @", NO_WAREHOUSE),
    "@@": (404, "Warehouse does not exist: @", NO_WAREHOUSE),
    "@1795400000000": (404, "Warehouse does not exist: @1795400000000", NO_WAREHOUSE),
    "default@": (400, UNREADABLE, ""),
    "default@2026": (400, TOO_OLD, ""),
    "default@0": (400, TOO_OLD, ""),
    "default@-1": (400, UNREADABLE, ""),
    "default@+5": (400, UNREADABLE, ""),
    "default@1e3": (400, UNREADABLE, ""),
    "default@٣": (400, UNREADABLE, ""),
    "default@999999999999999": (400, FUTURE, ""),
    f"default@{'1' * 200}": (400, UNREADABLE, ""),
    "default@%40": (400, UNREADABLE, ""),
    "default@ ": (400, UNREADABLE, ""),
    "default@2000-01-01T24:00:00Z": (400, UNREADABLE, ""),
    "default@2016-12-31T23:59:60Z": (400, UNREADABLE, ""),
    "default@2000-02-30": (400, UNREADABLE, ""),
    "default@2000-01-01T10:00:00+99:99": (400, UNREADABLE, ""),
    "default@2000-W01": (400, UNREADABLE, ""),
    "default@20000101T100000Z": (400, UNREADABLE, ""),
    "default@0000-01-01": (400, UNREADABLE, ""),
    "default@0001-01-01": (400, TOO_OLD, ""),
    "default@9999-12-31": (400, FUTURE, ""),
    "default@9999-12-31T23:59:59-23:59": (400, FUTURE, ""),
    "default@0001-01-01T00:00:00+23:59": (400, "Invalid time …", ""),
    "default@10000-01-01": (400, UNREADABLE, ""),
    "default@1000@1000": (404, "Warehouse does not exist: default@1000", NO_WAREHOUSE),
    "nosuch@2026-11-20": (404, "Warehouse does not exist: nosuch", NO_WAREHOUSE),
    "$WAREHOUSE@yesterday": (404, "Warehouse does not exist: …", NO_WAREHOUSE),
    "$WAREHOUSE@0": (400, TOO_OLD, ""),
}


def spelled(odd: str) -> str:
    return quote(odd, safe="$")


@pytest.mark.parametrize("odd", ODD_TIMES)
@pytest.mark.parametrize("target", ["/v1/{}/namespaces", "/v1/config?warehouse={}"])
def test_odd_time_is_refused(victim: Victim, odd: str, target: str) -> None:
    status, message, kind = ODD_TIMES[odd]
    name = odd.replace("$WAREHOUSE", victim.names["WAREHOUSE"])
    check_refused(Attack(odd, GET, target.format(quote(name, safe="")), status, message, kind), victim)


BODIES: list[tuple[str, Any, int, str]] = [
    ("empty", {}, 400, "Invalid body: give either an id, or a namespace with or without a name"),
    ("a list", [], 400, "Invalid body: Input should be an object"),
    ("id as text", {"id": "1"}, 400, "Invalid body: id: Input should be a valid integer"),
    ("id as a switch", {"id": True}, 400, "Invalid body: id: Input should be a valid integer"),
    ("negative id", {"id": -1}, 404, NO_SUCH),
    ("large id", {"id": 2**63}, 400, "Invalid body: 9223372036854775808 is not a 64-bit integer"),
    ("both", {"id": 1, "namespace": ["a"]}, 400, "Invalid body: give either an id, or …"),
    ("id and name", {"id": 1, "name": "t"}, 400, "Invalid body: name goes with namespace, not with id"),
    ("namespace as text", {"namespace": "a"}, 400, "Invalid body: namespace: Input should be a valid array"),
    ("no levels", {"namespace": []}, 400, "Invalid namespace: it has no levels"),
    ("empty level", {"namespace": [""]}, 400, "Invalid namespace level: it is empty"),
    ("separator", {"namespace": ["a\x1fb"]}, 400, "Invalid namespace level …: it contains '\\x1f'"),
    ("empty name", {"namespace": ["a"], "name": ""}, 400, "Invalid name: it is empty"),
    ("nul", {"namespace": ["a"], "name": "t\x00"}, 400, "Invalid name …: it contains '\\x00'"),
    ("long name", {"namespace": ["a"], "name": "t" * 300}, 400, "Invalid name: 300 characters are more …"),
    ("never dropped", {"namespace": ["a"], "name": "t"}, 404, NO_SUCH),
]
UNDROPS: list[tuple[str, Any, int, str]] = [
    ("as text", {"id": 1, "as": "x"}, 400, "Invalid body: as: Input should be an object"),
    ("as null", {"id": 1, "as": None}, 400, "Invalid body: as: Input should be an object"),
    ("switch as text", {"id": 1, "create-namespace": "yes"}, 400, "Invalid body: create-namespace: …boolean"),
]
RESTORES: list[tuple[str, Any, int, str]] = [
    ("no time", {"tables": []}, 400, "Invalid body: at: Field required"),
    ("time as a number", {"at": 1, "tables": []}, 400, "Invalid body: at: Input should be a valid string"),
    ("no tables", {"at": "$NOW"}, 400, "Invalid body: tables: Field required"),
    ("none", {"at": "$NOW", "tables": []}, 400, "Invalid tables: give 1 to 1000 tables to restore, not 0"),
    ("twice", {"at": "$NOW", "tables": ["t", "t"]}, 400, "Invalid tables: a.t is given twice"),
    ("too many", {"at": "$NOW", "tables": [str(n) for n in range(1001)]}, 400, "…not 1001"),
    ("a view", {"at": "$NOW", "tables": ["v"]}, 404, "Table does not exist: a.v at …"),
    ("no such", {"at": "$NOW", "tables": ["nosuch"]}, 404, "Table does not exist: a.nosuch at …"),
    ("before creation", {"at": "$BEFORE", "tables": ["t"]}, 404, "Table does not exist: a.t at …"),
    ("odd time", {"at": "yesterday", "tables": ["t"]}, 400, UNREADABLE),
    ("future", {"at": "9999-01-01", "tables": ["t"]}, 400, FUTURE),
    ("a warehouse", {"at": "default@0", "tables": ["t"]}, 400, UNREADABLE),
    ("dry-run as text", {"at": "$NOW", "tables": ["t"], "dry-run": "no"}, 400, "Invalid body: dry-run: …"),
]


@pytest.mark.parametrize("path", ["undrop", "dropped/purge"])
@pytest.mark.parametrize(("name", "body", "status", "message"), BODIES)
def test_body_for_what_was_dropped(
    victim: Victim, path: str, name: str, body: Any, status: int, message: str
) -> None:
    kind = "NoSuchDroppedException" if status == 404 else ""
    check_refused(Attack(name, POST, f"/v1/{path}", status, message, kind, body=body), victim)


@pytest.mark.parametrize(("name", "body", "status", "message"), UNDROPS)
def test_body_of_an_undrop(victim: Victim, name: str, body: Any, status: int, message: str) -> None:
    check_refused(Attack(name, POST, "/v1/undrop", status, message, body=body), victim)


@pytest.mark.parametrize(("name", "body", "status", "message"), RESTORES)
def test_body_of_a_restoration(victim: Victim, name: str, body: Any, status: int, message: str) -> None:
    now_ms = int(time.time() * 1000)
    times = {"$NOW": str(now_ms), "$BEFORE": str(now_ms - 3_600_000)}
    sent = {**body, "at": times.get(body["at"], body["at"])} if "at" in body else body
    if "tables" in body:
        sent = {**sent, "tables": [{"namespace": ["a"], "name": each} for each in body["tables"]]}
    kind = "NoSuchTableException" if status == 404 else ""
    check_refused(Attack(name, POST, "/v1/restore", status, message, kind, body=sent), victim)


@pytest.mark.parametrize("where", ["default-properties", "override-properties"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("icetower.undrop.keep-ms", "-1"),
        ("icetower.undrop.keep-ms", ""),
        ("icetower.undrop.keep-ms", "1e3"),
        ("icetower.undrop.keep-ms", "٣"),
        ("icetower.undrop.keep-ms", "9223372036854775807"),
        ("icetower.undrop.keep-ms", "99999999999999999999999"),
        ("icetower.undrop.purge-waits", "yes"),
        ("icetower.undrop.purge-waits", ""),
        ("icetower.as-of.metadata-keep-ms", "-5"),
        ("icetower.protected", "maybe"),
    ],
)
def test_nonsense_is_not_set_on_a_warehouse(victim: Victim, where: str, key: str, value: str) -> None:
    body = {where: {key: value}}
    target = "/management/v1/warehouses/default"
    attack = Attack(f"{key}={value}", "PATCH", target, 400, f"Warehouse property {key} must be …", body=body)
    check_refused(attack, victim)


# What follows has a catalog of its own: its past is what matters.


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, str]]:
    """A catalog that has changed since, and the prefix of how it was."""
    with http_catalog(tmp_path_factory.mktemp("past")) as client:
        make_namespace(client, "a")
        writer = ClaimingWriter(client, "s")
        writer.commit([writer.file(1), writer.file(2)])
        make_table(client, "a", "t")
        make_view(client, "a", "v")
        at_ms = last_event_ms(client)
        client.post("/v1/namespaces/a/tables/t", json=set_properties(k="1"))
        yield client, f"/v1/default@{at_ms}"


def last_event_ms(client: httpx.Client) -> int:
    """Return a time that stands for all that has happened, and for nothing that follows."""
    now_ms = int(time.time() * 1000)
    while int(time.time() * 1000) <= now_ms:
        continue
    return now_ms


FILLED = {"namespace": "a", "table": "t", "view": "v", "ref": "main", "snapshot": "1"}
OF_T: dict[str, Any] = {"namespace": ["a"], "name": "t"}
VALID: Mapping[str, Any] = {
    "/namespaces": {"namespace": ["z"]},
    "/namespaces/a/tables": {"name": "n", "schema": SCHEMA},
    "/namespaces/a/register": {"name": "n", "metadata-location": "memory://x"},
    "/namespaces/a/register/check": {"name": "n", "metadata-location": "memory://x"},
    "/namespaces/a/adopt": {"name": "n", "location": "memory://x"},
    "/namespaces/a/views": {"name": "n", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}},
    "/namespaces/a/register-view": {"name": "n", "metadata-location": "memory://x"},
    "/tables/rename": {"source": OF_T, "destination": {"namespace": ["a"], "name": "x"}},
    "/views/rename": {"source": {**OF_T, "name": "v"}, "destination": {"namespace": ["a"], "name": "x"}},
    "/transactions/commit": {"table-changes": [{"identifier": OF_T, "requirements": [], "updates": []}]},
    "/transactions/validate": {"table-changes": [{"identifier": OF_T, "requirements": [], "updates": []}]},
    "/undrop": {"id": 1},
    "/dropped/purge": {"id": 1},
    "/restore": {"at": "2026-01-01", "tables": [OF_T]},
    "/namespaces/a/tables/t/append": {"files": [{"file-path": "memory://x"}]},
    "/namespaces/a/tables/t/conflicts": {"operation": {"kind": "append"}},
    "/namespaces/a/tables/t/maintenance/jobs": {"job": "expire-snapshots"},
    "/namespaces/a/tables/t/maintenance/jobs/x/end": {"state": "done"},
    "/namespaces/a/properties": {"updates": {"a": "b"}},
}
READING = re.compile(r"/(plan|plan/x|tasks|metrics)$")


def described() -> list[tuple[str, str]]:
    """Return each operation on a warehouse of openapi.yaml."""
    document = yaml.safe_load((ROOT / "openapi.yaml").read_text(encoding="utf-8"))
    return [
        (method.upper(), path)
        for path, operations in document["paths"].items()
        if path.startswith("/v1/{prefix}/")
        for method in operations
        if method in {"get", "head", "post", "put", "patch", "delete"}
    ]


@pytest.mark.parametrize(("method", "path"), described())
def test_operation_at_a_past_prefix(past: tuple[httpx.Client, str], method: str, path: str) -> None:
    client, prefix = past
    place = re.sub(r"{([^}]+)}", lambda match: FILLED.get(match[1], "x"), path.removeprefix("/v1/{prefix}"))
    before = client.get("/v1/commits").json()
    advertised = client.get(f"/v1/config?warehouse={prefix.removeprefix('/v1/')}").json()["endpoints"]

    body = None if method in {"GET", "HEAD", "DELETE"} else VALID.get(place, {})
    answer = client.request(method, prefix + place, json=body)

    assert answer.status_code < 500, answer.text
    if f"{method} {path}" in advertised:
        assert answer.status_code != 403, answer.text
    else:
        assert answer.status_code == 403, answer.text
        assert "shows the past and is read-only" in answer.json()["error"]["message"]
    if method not in {"GET", "HEAD"} and not READING.search(place):
        assert answer.status_code == 403, answer.text
    assert client.get("/v1/commits").json() == before, "nothing was changed"


def test_answers_about_what_is_gone_are_described(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as client:
        make_namespace(client, "a")
        made = [make_table(client, "a", "t"), make_view(client, "a", "v")]
        prefix = f"/v1/default@{last_event_ms(client)}"
        for loaded in made:
            Path(loaded["metadata-location"].removeprefix("file://")).unlink()

        gone = set()
        for method, path in described():
            place = re.sub(r"{([^}]+)}", lambda match: FILLED.get(match[1], "x"), path)
            body = None if method in {"GET", "HEAD", "DELETE"} else VALID.get(place.removeprefix("/v1/x"), {})
            answer = client.request(method, prefix + place.removeprefix("/v1/x"), json=body)
            if answer.status_code == 410:
                gone.add((method, path))

    document = yaml.safe_load((ROOT / "openapi.yaml").read_text(encoding="utf-8"))["paths"]
    assert len(gone) > 10
    assert [it for it in sorted(gone) if "410" not in document[it[1]][it[0].lower()]["responses"]] == []


def test_tags_of_the_past(past: tuple[httpx.Client, str]) -> None:
    client, prefix = past
    then, now = client.get(f"{prefix}/namespaces/a/tables/t"), client.get("/v1/namespaces/a/tables/t")

    assert then.headers["etag"] != now.headers["etag"]
    for tag, statuses in ((then.headers["etag"], (304, 200)), (now.headers["etag"], (200, 304))):
        headers = {"if-none-match": tag}
        asked = (f"{prefix}/namespaces/a/tables/t", "/v1/namespaces/a/tables/t")
        assert tuple(client.get(path, headers=headers).status_code for path in asked) == statuses


@pytest.mark.parametrize("path", ["namespaces/a/tables", "namespaces/a/tables/s/history"])
def test_page_tokens_of_another_time(past: tuple[httpx.Client, str], path: str) -> None:
    client, prefix = past
    later = f"/v1/default@{last_event_ms(client)}"
    tokens = {
        at: client.get(f"{at}/{path}?pageSize=1").json()["next-page-token"] for at in (prefix, later, "/v1")
    }

    for at in tokens:
        for of, token in tokens.items():
            answer = client.get(f"{at}/{path}?pageSize=1&pageToken={token}")
            assert answer.status_code == (200 if at == of else 400), answer.text


def test_snapshots_that_no_ref_names_are_left_out(past: tuple[httpx.Client, str]) -> None:
    client, prefix = past
    path = f"{prefix}/namespaces/a/tables/s"

    with_all, with_refs = client.get(path), client.get(f"{path}?snapshots=refs")

    assert with_all.json()["metadata"]["refs"] == with_refs.json()["metadata"]["refs"]
    assert with_refs.json()["metadata"]["properties"]["gc.enabled"] == "false"
    assert client.get(f"{path}?snapshots=odd").status_code == 400


def test_scan_of_what_is_gone_says_so(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as client:
        make_namespace(client, "a")
        writer = ClaimingWriter(client, "s")
        writer.commit([writer.file(1)])
        prefix = f"/v1/default@{last_event_ms(client)}"
        plan, load = (
            f"{prefix}{writer.path.removeprefix('/v1')}/plan",
            prefix + writer.path.removeprefix("/v1"),
        )
        assert len(client.post(plan, json={}).json()["file-scan-tasks"]) == 1

        Path(writer.location.removeprefix("file://"), "metadata", "list.avro").unlink()

        for answer in (client.get(load), client.post(plan, json={})):
            assert answer.status_code == 410
            assert "the files of that snapshot have been deleted since" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["undrop", "dropped/purge"])
def test_request_that_is_sent_again_has_an_equal_answer(tmp_path: Path, path: str) -> None:
    with http_catalog(tmp_path) as client:
        make_namespace(client, "ä")
        make_table(client, quote("ä"), "t")
        client.delete(f"/v1/namespaces/{quote('ä')}/tables/t")
        headers = {"idempotency-key": str(uuid.uuid4())}
        body = {"namespace": ["ä"], "name": "t"}

        first, second = (client.post(f"/v1/{path}", json=body, headers=headers) for _ in range(2))

        assert (first.status_code, first.content) == (200, second.content)
        assert client.post(f"/v1/{path}", json=body).status_code == 404


def test_empty_name_is_not_the_old_one(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as client:
        make_namespace(client, "a")
        make_table(client, "a", "t")
        client.delete("/v1/namespaces/a/tables/t")

        answer = client.post("/v1/undrop", json={**OF_T, "as": {"name": ""}})

        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == "Invalid name: it is empty"
        assert len(client.get("/v1/dropped").json()["dropped"]) == 1


@pytest.mark.parametrize("value", ["true", "TRUE", " True"])
def test_protection_in_any_case(tmp_path: Path, value: str) -> None:
    with http_catalog(tmp_path) as client:
        make_namespace(client, "a")
        make_table(client, "a", "t")
        other = make_table(client, "a", "u")["metadata-location"]
        path = "/v1/namespaces/a/tables/t"
        client.post(path, json=set_properties(**{"icetower.protected": value})).raise_for_status()
        before = client.get(path).json()

        attempts = [
            client.delete(path),
            client.delete(f"{path}?purgeRequested=true"),
            client.post(f"{path}/unregister"),
            client.post("/v1/tables/rename", json={"source": OF_T, "destination": {**OF_T, "name": "x"}}),
            client.post(
                "/v1/namespaces/a/register",
                json={"name": "t", "metadata-location": other, "overwrite": True},
            ),
        ]

        assert [answer.status_code for answer in attempts] == [403] * 5
        staged = {"name": "t", "schema": SCHEMA, "stage-create": True}
        assert client.post("/v1/namespaces/a/tables", json=staged).status_code == 409
        assert client.get(path).json() == before


def test_warehouse_takes_what_could_come_back_along(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as client:
        management = "/management/v1/warehouses"
        body = {"name": "other", "root-location": f"file://{tmp_path}/other"}
        client.post(management, json=body).raise_for_status()
        client.post("/v1/other/namespaces", json={"namespace": ["n"]}).raise_for_status()
        client.post("/v1/other/namespaces/n/tables", json={"name": "t", "schema": SCHEMA}).raise_for_status()
        assert client.delete(f"{management}/other").status_code == 409
        client.delete("/v1/other/namespaces/n/tables/t")
        client.delete("/v1/other/namespaces/n")
        ids = [each["id"] for each in client.get("/v1/other/dropped").json()["dropped"]]

        elsewhere = [client.post("/v1/undrop", json={"id": each}).status_code for each in ids]
        assert client.delete(f"{management}/other").status_code == 204
        client.post(management, json=body).raise_for_status()

        assert elsewhere == [404, 404]
        assert client.get("/v1/other/dropped").json() == {"dropped": []}
        assert [client.post("/v1/other/undrop", json={"id": each}).status_code for each in ids] == [404, 404]


def test_restoration_of_many_tables(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as client:
        make_namespace(client, "a")
        names = [f"t{number}" for number in range(100)]
        for name in names:
            make_table(client, "a", name)
        at_ms = last_event_ms(client)
        for name in names:
            client.post(f"/v1/namespaces/a/tables/{name}", json=set_properties(k="1")).raise_for_status()
        tables = [{"namespace": ["a"], "name": name} for name in names]

        answer = client.post("/v1/restore", content=json.dumps({"at": str(at_ms), "tables": tables}))

        assert answer.status_code == 200, answer.text
        left = [client.get(f"/v1/namespaces/a/tables/{name}").json()["metadata"] for name in names]
        assert [each for each in left if "k" in each["properties"]] == []
