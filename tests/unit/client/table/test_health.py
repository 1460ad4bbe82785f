"""The calls about health: paths, queries, pages."""

from __future__ import annotations

from app.client.table.health import HealthCalls
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.unit.client.scripted_server import ScriptedServer, ok

ORDERS = TableIdentifier(Namespace(("eu", "sales")), "orders")


def test_states_are_asked_for_and_pages_turned() -> None:
    server = ScriptedServer(
        [
            ok({"severity": "ok"}),
            ok({"columns": []}),
            ok({"tables": [{"table": "a"}], "next-page-token": "t"}),
            ok({"tables": [{"table": "b"}]}),
        ]
    )
    health = HealthCalls(server.calls(), "v1/wh")

    assert health.table(ORDERS, snapshot_id=7) == {"severity": "ok"}
    assert health.profile(ORDERS, ref="audit") == {"columns": []}
    assert [[table["table"] for table in page.tables] for page in health.warehouse()] == [["a"], ["b"]]

    paths = [request.url.raw_path.decode() for request in server.requests]
    assert paths == [
        "/v1/wh/namespaces/eu%1Fsales/tables/orders/health?snapshot-id=7",
        "/v1/wh/namespaces/eu%1Fsales/tables/orders/profile?ref=audit",
        "/v1/wh/health?pageToken=&pageSize=1000",
        "/v1/wh/health?pageToken=t&pageSize=1000",
    ]
