"""The calls about history, branches and tags: paths, queries, pages."""

from __future__ import annotations

import json

from app.client.table.history import HistoryCalls
from app.client.table.refs import RefCalls
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.unit.client.scripted_server import ScriptedServer, ok

ORDERS = TableIdentifier(Namespace(("eu", "sales")), "orders")
TABLE = "/v1/wh/namespaces/eu%1Fsales/tables/orders"


def test_pages_are_turned_to_the_last() -> None:
    server = ScriptedServer(
        [
            ok({"snapshots": [{"snapshot-id": 2}], "next-page-token": "t"}),
            ok({"snapshots": [{"snapshot-id": 1}]}),
            ok({"snapshot-id": 2, "files": [{"file-path": "a"}], "next-page-token": "u"}),
            ok({"snapshot-id": 2, "files": [{"file-path": "b"}]}),
            ok({"current": [{"snapshot-id": 2}], "events": [{"sequence": 2}], "next-page-token": "v"}),
            ok({"events": [{"sequence": 1}]}),
            ok({"relation": "same", "files": [{"change": "added"}], "next-page-token": "w"}),
            ok({"files": [{"change": "removed"}]}),
        ]
    )
    history = HistoryCalls(server.calls(), "v1/wh")

    assert [item["snapshot-id"] for item in history.snapshots(ORDERS)] == [2, 1]
    assert [item["file-path"] for item in history.files(ORDERS, "a/b", {"type": "true"})] == ["a", "b"]
    found = history.history(ORDERS)
    assert ([item["sequence"] for item in found.events], len(found.current)) == ([2, 1], 1)
    diff = history.diff(ORDERS, "1", None)
    assert diff == {"relation": "same", "files": [{"change": "added"}, {"change": "removed"}]}
    paths = [request.url.raw_path.decode() for request in server.requests]
    assert paths[0] == f"{TABLE}/snapshots?pageToken=&pageSize=1000"
    assert paths[2].startswith(
        f"{TABLE}/snapshots/a%2Fb/files?filter=%7B%22type%22%3A+%22true%22%7D&pageToken="
    )
    assert paths[3].endswith("pageToken=u&pageSize=1000")
    assert paths[6] == f"{TABLE}/diff?from=1&pageToken=&pageSize=1000"


def test_refs_are_listed_changed_and_removed_with_a_key_each() -> None:
    ref = {"name": "audit", "type": "branch", "snapshot-id": 5, "timestamp-ms": 1}
    receipt = {"ref": "audit", "changed": True, "snapshot-id-after": 6, "metadata-location-after": "m"}
    server = ScriptedServer([ok({"refs": [ref]}), ok(receipt), ok(receipt), ok(receipt)])
    refs = RefCalls(server.calls(), "v1/wh")

    assert [(found.name, found.model_extra) for found in refs.list(ORDERS)] == [
        ("audit", {"timestamp-ms": 1})
    ]
    assert refs.change(ORDERS, "a/b", {"rollback-to": 5}).snapshot_after == 6
    refs.remove(ORDERS, "audit")
    refs.remove(ORDERS, "audit", expected=6)

    asked = [(request.method, request.url.raw_path.decode()) for request in server.requests]
    assert asked == [
        ("GET", f"{TABLE}/refs"),
        ("PUT", f"{TABLE}/refs/a%2Fb"),
        ("DELETE", f"{TABLE}/refs/audit"),
        ("DELETE", f"{TABLE}/refs/audit?expected-snapshot-id=6"),
    ]
    assert json.loads(server.requests[1].content) == {"rollback-to": 5}
    assert all("idempotency-key" in request.headers for request in server.requests[1:])
