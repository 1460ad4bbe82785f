"""Receipts over HTTP: every change has a commit id, and can be asked for."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import orjson
import pytest

from app.api.description import description
from app.main import create_app
from app.telemetry import LogLines
from tests.builders.http_catalog import (
    SCHEMA,
    VIEW_VERSION,
    error_of,
    http_catalog,
    make_namespace,
    make_table,
    make_view,
    served,
    set_properties,
    settings_in,
)
from tests.unit.api.routes.table.test_refs import append

HEADER = "x-icetower-commit-id"
UNKNOWN_ID = "0fffffffffff" + "0" * 20


def receipt_of(api: httpx.Client, answer: httpx.Response) -> dict[str, Any]:
    found = api.get(f"/v1/commits/{answer.headers[HEADER]}")
    assert found.status_code == 200, found.text
    receipt: dict[str, Any] = found.json()
    assert receipt["commit-id"] == answer.headers[HEADER]
    return receipt


def mutations(api: httpx.Client, ns: str) -> dict[str, tuple[str, str, Any]]:
    """Return a request of each kind that succeeds, by the operation and event that its receipt has."""
    for name in ("t", "dropped", "purged", "renamed", "freed"):
        make_table(api, ns, name)
    location = make_table(api, ns, "registered")["metadata-location"]
    for name in ("v", "gone", "old"):
        make_view(api, ns, name)
    at, view = f"/v1/namespaces/{ns}", {"name": "new_view", "schema": SCHEMA, "view-version": VIEW_VERSION}
    change = {"identifier": {"namespace": [ns], "name": "t"}, **set_properties(c="d")}
    append(api, ns)

    def names(source: str, destination: str) -> dict[str, Any]:
        pairs = {"source": source, "destination": destination}
        return {key: {"namespace": [ns], "name": name} for key, name in pairs.items()}

    return {
        "create-namespace created": ("POST", "/v1/namespaces", {"namespace": [ns, "new"]}),
        "update-properties updated": ("POST", f"{at}/properties", {"updates": {"a": "b"}}),
        "drop-namespace dropped": ("DELETE", f"{at}%1Fnew", None),
        "create-table created": ("POST", f"{at}/tables", {"name": "new", "schema": SCHEMA}),
        "commit-table committed": ("POST", f"{at}/tables/t", set_properties(a="b")),
        "commit-transaction committed": ("POST", "/v1/transactions/commit", {"table-changes": [change]}),
        "change-ref committed": ("PUT", f"{at}/tables/t/refs/audit", {}),
        "remove-ref committed": ("DELETE", f"{at}/tables/t/refs/audit", None),
        "expire-snapshots unchanged": ("POST", f"{at}/tables/t/expire", {}),
        "rename-table renamed": ("POST", "/v1/tables/rename", names("renamed", "renamed2")),
        "unregister-table unregistered": ("POST", f"{at}/tables/freed/unregister", None),
        "drop-table dropped": ("DELETE", f"{at}/tables/dropped", None),
        "register-table registered": (
            "POST",
            f"{at}/register",
            {"name": "again", "metadata-location": location},
        ),
        "create-view created": ("POST", f"{at}/views", {**view, "properties": {}}),
        "replace-view committed": ("POST", f"{at}/views/v", set_properties(a="b")),
        "rename-view renamed": ("POST", "/v1/views/rename", names("old", "older")),
        "drop-view dropped": ("DELETE", f"{at}/views/gone", None),
    }


def test_every_change_has_a_receipt(api: httpx.Client, ns: str) -> None:
    for wanted, (method, path, body) in mutations(api, ns).items():
        answer = api.request(method, path, json=body)
        assert answer.status_code < 300, (wanted, answer.text)

        receipt = receipt_of(api, answer)

        events = {change["event"] for change in receipt.get("changes", ())} or {receipt["outcome"]}
        assert f"{receipt['operation']} {' '.join(events)}" == wanted
        assert receipt["outcome"] == ("unchanged" if "unchanged" in wanted else "landed")


def test_every_operation_that_changes_something_has_a_commit_id_when_it_is_refused(api: httpx.Client) -> None:
    """What is asked for is in no warehouse: each is refused, with a receipt or as no mutation."""
    asks = re.compile(
        r"/(plan|tasks|metrics|validate|conflicts|orphans|maintenance|check)\b"
    )  # marking orphans changes no table
    for path, item in description()["paths"].items():
        for method in item.keys() & {"post", "put", "patch", "delete"}:
            target = re.sub(r"{[a-z-]+}", "none", path.replace("{prefix}", "no-such"))
            answer = api.request(method, target, content=b"{", headers={"X-Request-Id": f"{method}{target}"})
            assert answer.status_code >= 400 or asks.search(path), (method, path)
            assert (HEADER in answer.headers) is not bool(asks.search(path)), (method, path)


def test_receipt_is_found_however_the_path_has_named_the_warehouse(api: httpx.Client, ns: str) -> None:
    location = make_table(api, ns, "t")["metadata"]["location"]
    table = f"namespaces/{ns}/tables/t"
    refused = {"requirements": [{"type": "assert-create"}], "updates": []}
    for prefix in ("default", quote(location, safe=""), "default@2020-01-01"):
        answer = api.post(f"/v1/{prefix}/{table}", json=refused)
        assert 400 <= answer.status_code < 500, answer.text
        assert receipt_of(api, answer)["outcome"] == "failed"


def test_request_at_work_is_known_however_the_path_has_named_the_warehouse(tmp_path: Path) -> None:
    found: list[httpx.Response] = []

    def ask(step: str) -> None:
        if step == "before_put" and asked:
            found.append(other.get(f"/v1/commits?request-id={asked[0]}"))

    asked: list[str] = []
    with http_catalog(tmp_path, step=ask) as api, httpx.Client(base_url=api.base_url) as other:
        make_namespace(api, "ns")
        location = make_table(api, "ns", "t")["metadata"]["location"]
        asked.append("mine")
        at = f"/v1/{quote(location, safe='')}/namespaces/ns/tables/t"
        answer = api.post(at, json=set_properties(a="b"), headers={"X-Request-Id": "mine"})

        assert answer.status_code == 200, answer.text
        (receipt,) = found[0].json()["commits"]
        assert receipt["outcome"] == "in-progress"
        assert receipt_of(api, answer)["outcome"] == "landed"


def test_receipt_of_a_commit_says_as_what_it_landed(api: httpx.Client, ns: str) -> None:
    table = make_table(api, ns, "t")
    headers = {"X-Request-Id": f"{ns}-mine", "Idempotency-Key": f"{ns}-key"}
    snapshot = {
        "snapshot-id": 77,
        "sequence-number": 1,
        "timestamp-ms": table["metadata"]["last-updated-ms"],
        "manifest-list": "file:///none.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    updates: list[dict[str, Any]] = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 77},
    ]
    body = {"requirements": [], "updates": updates}
    answer = api.post(f"/v1/namespaces/{ns}/tables/t", json=body, headers=headers)
    assert answer.status_code == 200, answer.text

    receipt = receipt_of(api, answer)

    assert receipt["changes"] == [
        {
            "kind": "table",
            "event": "committed",
            "namespace": [ns],
            "name": "t",
            "metadata-location-before": table["metadata-location"],
            "metadata-location-after": answer.json()["metadata-location"],
            "metadata-version": 1,
            "snapshot-ids": [77],
            "current-snapshot-id": 77,
        }
    ]
    assert (receipt["rebased"], receipt["landed-together"], receipt["author"]) == (False, 1, "anonymous")
    for asked in ({"idempotency-key": f"{ns}-key"}, {"request-id": f"{ns}-mine"}):
        assert api.get("/v1/default/commits", params=asked).json() == {"commits": [receipt]}


def test_receipt_of_a_refusal_says_who_came_first(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    won = append(api, ns)
    requirement = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
    body = {"requirements": [requirement], "updates": set_properties(a="b")["updates"]}
    answer = api.post(f"/v1/namespaces/{ns}/tables/t", json=body)
    assert answer.status_code == 409

    receipt = receipt_of(api, answer)

    assert receipt["outcome"] == "failed"
    assert receipt["error"] == answer.json()["error"]
    assert [item["snapshot-id"] for item in receipt["error"]["conflict"]["snapshots"]] == [won]
    assert "changes" not in receipt


def test_repeated_request_is_answered_with_the_commit_id_of_the_first(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    path, key = f"/v1/namespaces/{ns}/tables/t", {"Idempotency-Key": f"{ns}-once"}
    refused = {"Idempotency-Key": f"{ns}-refused"}
    landed, again = [api.post(path, json=set_properties(a="b"), headers=key) for _ in range(2)]
    bad, worse = [api.post(f"{path}gone", json=set_properties(a="b"), headers=refused) for _ in range(2)]

    assert again.headers["idempotent-replayed"] == worse.headers["idempotent-replayed"] == "true"
    assert again.headers[HEADER] == landed.headers[HEADER]
    assert worse.headers[HEADER] == bad.headers[HEADER]
    (receipt,) = api.get("/v1/commits", params={"idempotency-key": f"{ns}-once"}).json()["commits"]
    assert receipt == receipt_of(api, again)


def test_receipt_of_a_nested_namespace_names_those_that_were_made_for_it(api: httpx.Client, ns: str) -> None:
    at = "/v1/namespaces"
    made = api.post(at, json={"namespace": [ns, "a", "b"]})
    for name in ("a%1Fb", "a"):
        api.delete(f"{at}/{ns}%1F{name}").raise_for_status()
    back = api.post("/v1/undrop", json={"namespace": [ns, "a", "b"]})

    assert [(change["event"], change["namespace"]) for change in receipt_of(api, made)["changes"]] == [
        ("created", [ns, "a"]),
        ("created", [ns, "a", "b"]),
    ]
    assert [(change["event"], change["namespace"]) for change in receipt_of(api, back)["changes"]] == [
        ("created", [ns, "a"]),
        ("undropped", [ns, "a", "b"]),
    ]


def test_request_that_has_nothing_to_change_is_unchanged(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    at, name = f"/v1/namespaces/{ns}", {"namespace": [ns], "name": "t"}
    api.post(f"{at}/properties", json={"updates": {"a": "b"}}).raise_for_status()
    asked: list[tuple[str, Any]] = [
        (f"{at}/tables/t", {"requirements": [], "updates": []}),
        (f"{at}/properties", {"updates": {"a": "b"}, "removals": ["absent"]}),
        ("/v1/tables/rename", {"source": name, "destination": name}),
    ]

    receipts = [receipt_of(api, api.post(path, json=body)) for path, body in asked]

    assert [(receipt["outcome"], "changes" in receipt) for receipt in receipts] == [("unchanged", False)] * 3


def test_changes_of_namespaces_in_folders_have_receipts(api: httpx.Client, ns: str, tmp_path: Path) -> None:
    body = {"name": ns, "root-location": f"file://{tmp_path}/folders", "layout": "hadoop"}
    api.post("/management/v1/warehouses", json=body).raise_for_status()
    at = f"/v1/{ns}/namespaces"

    made = api.post(at, json={"namespace": ["a", "b"]})
    removed = api.post(f"{at}/a/properties", json={"removals": ["x"]})

    made_receipt, removed_receipt = [
        api.get(f"/v1/{ns}/commits/{answer.headers[HEADER]}").json() for answer in (made, removed)
    ]
    assert [change["namespace"] for change in made_receipt["changes"]] == [["a"], ["a", "b"]]
    assert removed_receipt["outcome"] == "unchanged"


def test_what_changes_nothing_has_no_commit_id(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    path = f"/v1/namespaces/{ns}/tables/t"
    answers = [
        api.get(path),
        api.head(path),
        api.post(f"{path}/validate", json=set_properties(a="b")),
        api.post(f"{path}/plan", json={}),
        api.get(f"/v1/commits/{UNKNOWN_ID}"),
    ]

    assert [HEADER in answer.headers for answer in answers] == [False] * 5


def test_receipts_of_another_warehouse_are_not_found(api: httpx.Client, ns: str, tmp_path: Path) -> None:
    body = {"name": ns, "root-location": str(tmp_path)}
    assert api.post("/management/v1/warehouses", json=body).status_code == 200
    key = {"Idempotency-Key": f"{ns}-here"}
    here = api.post("/v1/namespaces", json={"namespace": [f"{ns}x"]}, headers=key)

    elsewhere = api.get(f"/v1/{ns}/commits/{here.headers[HEADER]}")
    by_key = api.get(f"/v1/{ns}/commits", params={"idempotency-key": f"{ns}-here"})

    assert elsewhere.status_code == by_key.status_code == 404


def test_changes_of_warehouses_have_receipts(api: httpx.Client, ns: str, tmp_path: Path) -> None:
    path, body = "/management/v1/warehouses", {"name": f"w{ns}", "root-location": str(tmp_path)}
    answers = [
        api.post(path, json=body),
        api.patch(f"{path}/w{ns}", json={"default-properties": {"a": "b"}}),
        api.delete(f"{path}/w{ns}"),
    ]

    events = [receipt_of(api, answer)["changes"] for answer in answers]

    assert events == [
        [{"kind": "warehouse", "event": event, "name": f"w{ns}"}]
        for event in ("created", "updated", "dropped")
    ]
    refused = api.delete(f"{path}/w{ns}")
    assert receipt_of(api, refused)["error"]["type"] == "NoSuchWarehouseException"


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        (
            "/v1/commits/01A204AD7F62360F1F0C5515D02B9184",
            (
                400,
                "BadRequestException",
                (
                    "Invalid commit id '01A204AD7F62360F1F0C5515D02B9184': it must be 32 lower-case hexadecimal digits"
                ),
            ),
        ),
        (
            "/v1/commits/short",
            (
                400,
                "BadRequestException",
                "Invalid commit id 'short': it must be 32 lower-case hexadecimal digits",
            ),
        ),
        (
            f"/v1/commits/{UNKNOWN_ID}",
            (
                404,
                "NoSuchCommitException",
                f"Commit {UNKNOWN_ID} has not landed, and no server is known to be at work on it",
            ),
        ),
        (
            f"/v1/commits/{'0' * 32}",
            (
                404,
                "NoSuchCommitException",
                f"Commit {'0' * 32} is not known: receipts are deleted after 90 days",
            ),
        ),
        (
            "/v1/commits?idempotency-key=none",
            (
                404,
                "NoSuchCommitException",
                "No commit with Idempotency-Key 'none' has landed, and no server is known to be at work on one",
            ),
        ),
        (
            "/v1/commits?request-id=none",
            (
                404,
                "NoSuchCommitException",
                "No commit with X-Request-Id 'none' has landed, and no server is known to be at work on one",
            ),
        ),
        (
            "/v1/commits",
            (
                400,
                "BadRequestException",
                "Ask for commits by idempotency-key, request-id or job: exactly one of them",
            ),
        ),
        (
            "/v1/commits?request-id=a&idempotency-key=b",
            (
                400,
                "BadRequestException",
                "Ask for commits by idempotency-key, request-id or job: exactly one of them",
            ),
        ),
        (
            f"/v1/commits?request-id={'x' * 256}",
            (
                400,
                "BadRequestException",
                "Invalid request-id: it must be 1 to 255 printable ASCII characters",
            ),
        ),
        (
            "/v1/commits?idempotency-key=",
            (
                400,
                "BadRequestException",
                "Invalid idempotency-key: it must be 1 to 255 printable ASCII characters",
            ),
        ),
        (
            "/v1/commits?idempotency-key=%00",
            (
                400,
                "BadRequestException",
                "Invalid idempotency-key: it must be 1 to 255 printable ASCII characters",
            ),
        ),
        (
            "/v1/no-such/commits?request-id=none",
            (404, "NoSuchWarehouseException", "Warehouse does not exist: no-such"),
        ),
    ],
)
def test_what_is_not_there_is_refused_exactly(
    api: httpx.Client, path: str, refusal: tuple[int, str, str]
) -> None:
    assert error_of(api.get(path)) == refusal


def test_keys_of_others_are_not_found_and_not_shown(
    api: httpx.Client, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, request = {"idempotency-key": f"{ns}-secret"}, {"request-id": f"{ns}-mine"}
    headers = {"Idempotency-Key": f"{ns}-secret", "X-Request-Id": f"{ns}-mine"}
    landed = api.post("/v1/namespaces", json={"namespace": [f"{ns}x"]}, headers=headers)
    refused = api.post("/v1/namespaces", json={"namespace": [""]}, headers={"Idempotency-Key": f"{ns}-two"})
    monkeypatch.setattr("app.api.entrance.front_door.principal_of", lambda _headers: "mallory")

    for asked in (key, request, {"idempotency-key": f"{ns}-two"}):
        assert api.get("/v1/commits", params=asked).status_code == 404
    for answer in (landed, refused):
        receipt = receipt_of(api, answer)
        assert receipt["author"] == "anonymous"
        assert "idempotency-key" not in receipt


def test_log_line_of_a_change_has_its_commit_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO()
    lines = LogLines(stream)
    monkeypatch.setattr("app.api.entrance.front_door.log_lines", lines)
    with http_catalog(tmp_path, log_level="info") as api:
        refused = api.delete("/v1/namespaces/none")
        made = api.post("/v1/namespaces", json={"namespace": ["a"]})
        api.get("/v1/namespaces/a")
    lines.flush()

    logged = [orjson.loads(line) for line in stream.getvalue().splitlines()]

    assert [line.get("commit_id") for line in logged] == [refused.headers[HEADER], made.headers[HEADER], None]


def test_request_at_work_is_in_progress_and_then_landed(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def look(name: str) -> None:
        if name in ("before_put", "after_put") and asking:
            seen.append(asking[0]())

    asking: list[Callable[[], Any]] = []
    with http_catalog(tmp_path, step=look) as api:
        make_namespace(api, "a")
        make_table(api, "a", "t")
        url = api.base_url.copy_with(path="/v1/commits", query=b"request-id=mine")
        asking.append(lambda: httpx.get(url).json()["commits"][0])
        api.post("/v1/namespaces/a/tables/t", json=set_properties(a="b"), headers={"X-Request-Id": "mine"})

        assert [receipt["outcome"] for receipt in seen] == ["in-progress", "landed"]


def test_what_is_kept_in_memory_reaches_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal is known to a server that was started afterwards."""
    settings = settings_in(tmp_path)
    monkeypatch.setattr("app.catalog.context.seen.receipt_book.WRITE_SECONDS", 3600)
    with served(create_app(settings), settings) as api:
        answer = api.post("/v1/namespaces", json={"namespace": []})
        before = receipt_of(api, answer)

    with served(create_app(settings), settings) as api:
        after = receipt_of(api, answer)

    assert before == after


def test_requests_of_a_job_are_found_for_everyone(
    api: httpx.Client, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = "0123456789abcdef" * 2
    make_table(api, ns, "t")
    for key in ("a", "b"):
        path = f"/v1/namespaces/{ns}/tables/t"
        answer = api.post(path, json=set_properties(**{key: "1"}), headers={"X-Icetower-Job": job})
        assert answer.status_code == 200, answer.text
    monkeypatch.setattr("app.api.entrance.front_door.principal_of", lambda _headers: "maintainer")

    found = api.get("/v1/commits", params={"job": job}).json()["commits"]

    assert [(receipt["outcome"], receipt["job"]) for receipt in found] == [("landed", job)] * 2
    none = api.get("/v1/commits", params={"job": "f" * 32})
    assert none.status_code == 404
    assert none.json()["error"]["message"].startswith("No commit with job 'ffff")
    both = api.get("/v1/commits", params={"job": job, "request-id": "a"})
    assert both.status_code == 400
