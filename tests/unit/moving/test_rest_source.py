from __future__ import annotations

from collections.abc import Sequence

import httpx
import pytest

from app.client.catalog import RemoteCatalog
from app.client.http.failures import CallFailed
from app.client.http.http_calls import Retries
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.moving.rest_source import RestSource
from app.moving.sources import Entry, SourceFailed, SourceMoved
from tests.unit.client.scripted_server import ScriptedServer, ok, refusal

A = Namespace(("a",))
ORDERS = Entry(TableIdentifier(A, "orders"))
BIG = Entry(TableIdentifier(A, "big"), "view")
CONFIG = ok({"defaults": {}, "overrides": {}})


def source(
    *answers: httpx.Response, endpoints: Sequence[str] | None = None, retries: int = 0
) -> tuple[RestSource, ScriptedServer]:
    more = {} if endpoints is None else {"endpoints": endpoints}
    server = ScriptedServer([ok({"defaults": {}, "overrides": {}, **more}), *answers])
    catalog = RemoteCatalog(
        "http://old.example",
        retries=Retries(most=retries, sleep=lambda _seconds: None),
        transport=server.transport,
        headers={"Authorization": "Bearer t"},
    )
    return RestSource(catalog, "old"), server


def table(location: str | None, **properties: str) -> httpx.Response:
    return ok({"metadata-location": location, "metadata": {"table-uuid": "u", "properties": properties}})


def test_namespaces_are_walked_page_by_page() -> None:
    found, server = source(
        ok({"namespaces": [["a"]], "next-page-token": "2"}),
        ok({"namespaces": [["a", "in"]]}),
        ok({"namespaces": []}),
        ok({"namespaces": [["b"]]}),
        # A server of one level that ignores the parent.
        ok({"namespaces": [["a"], ["b"]]}),
    )

    assert list(found.namespaces()) == [A, Namespace(("a", "in")), Namespace(("b",))]
    assert {request.headers["Authorization"] for request in server.requests} == {"Bearer t"}


def test_a_namespace_that_is_dropped_meanwhile_keeps_no_others_waiting() -> None:
    first, second, third, fourth = (refusal(404, "NoSuchNamespaceException") for _ in range(4))
    found, _ = source(ok({"namespaces": [["a"], ["b"]]}), first, ok({"namespaces": []}), second)

    assert list(found.namespaces()) == [A, Namespace(("b",))]
    assert list(found.entries(A)) == []
    identifiers = {"identifiers": [{"namespace": ["a"], "name": "orders"}]}
    views = ["GET /v1/{prefix}/namespaces/{namespace}/views"]
    between, _ = source(ok(identifiers), fourth, endpoints=views)
    assert list(between.entries(A)) == [ORDERS]
    nothing, _ = source(third)
    with pytest.raises(CallFailed):
        list(nothing.namespaces())


def test_server_without_views_has_none() -> None:
    identifiers = {"identifiers": [{"namespace": ["a"], "name": "orders"}]}
    found, _ = source(ok(identifiers), refusal(404))
    assert list(found.entries(A)) == [ORDERS]
    found, server = source(ok(identifiers), endpoints=["GET /v1/{prefix}/namespaces"])
    assert list(found.entries(A)) == [ORDERS]
    assert len(server.requests) == 2


def test_table_without_a_metadata_location_is_refused_with_the_reason() -> None:
    found, _ = source(table(None), refusal(404))

    with pytest.raises(SourceFailed, match=r"old does not say where the metadata file of a\.orders is"):
        found.find_location(ORDERS)
    assert found.find_location(ORDERS) is None


def test_foreign_server_is_asked_again_before_an_entry_is_dropped() -> None:
    found, server = source(table("s3://b/2"), table("s3://b/1"), httpx.Response(204), refusal(404))

    with pytest.raises(SourceMoved):
        found.drop(ORDERS, "s3://b/1")
    assert found.drop(ORDERS, "s3://b/1") == "s3://b/1"
    assert server.requests[-1].url.query == b"purgeRequested=false"
    assert found.drop(ORDERS, "s3://b/1") is None


@pytest.mark.parametrize(
    "lost", [refusal(502), refusal(504), refusal(500), httpx.Response(502, text="<html>")]
)
def test_drop_whose_answer_is_lost_is_not_sent_again_and_looked_for(lost: httpx.Response) -> None:
    """A table that was made under the name meanwhile would be dropped, and is nowhere else."""
    found, server = source(table("s3://b/1"), lost, refusal(404), retries=3)
    assert found.drop(ORDERS, "s3://b/1") == "s3://b/1"
    assert [request.method for request in server.requests[1:]] == ["GET", "DELETE", "GET"]

    found, server = source(table("s3://b/1"), lost, table("s3://b/anew"), retries=3)
    with pytest.raises(CallFailed):
        found.drop(ORDERS, "s3://b/1")
    assert [request.method for request in server.requests[1:]] == ["GET", "DELETE", "GET"]


def test_table_whose_file_is_missing_is_there_all_the_same() -> None:
    missing = refusal(404, "NotFoundException", "Failed to open input stream for file: s3://b/1")
    found, _ = source(missing, missing)

    with pytest.raises(SourceFailed, match=r"old does not find the metadata file of a\.orders: .* s3://b/1"):
        found.find_location(ORDERS)
    with pytest.raises(SourceFailed, match="does not find the metadata file"):
        found.drop(ORDERS, "s3://b/1")


def test_view_is_let_go_only_from_where_it_was_read() -> None:
    unregister = "POST /v1/{prefix}/namespaces/{namespace}/views/{view}/unregister"
    view = ok({"metadata-location": "s3://b/1", "metadata": {"view-uuid": "u"}})
    found, server = source(refusal(409), view, endpoints=[unregister])

    with pytest.raises(SourceMoved):
        found.drop(BIG, "s3://b/1")
    assert found.drop(BIG, "s3://b/1") == "s3://b/1"
    sent = server.requests[-1]
    assert (sent.method, sent.url.path.rpartition("/")[2]) == ("POST", "unregister")
    assert sent.headers["X-Icetower-Expected-Metadata-Location"] == "s3%3A%2F%2Fb%2F1"


def test_table_is_marked_once() -> None:
    found, server = source(table("x"), table("y"), table("y", moved="new"))

    assert found.mark(ORDERS, {"moved": "new"})
    assert found.mark(ORDERS, {"moved": "new"})
    assert [request.method for request in server.requests] == ["GET", "GET", "POST", "GET"]
    assert b"assert-table-uuid" in server.requests[2].content


def test_namespaces_without_end_are_refused() -> None:
    deeper = [ok({"namespaces": [["a"] * depth]}) for depth in range(1, 510)]
    found, _ = source(*deeper)

    with pytest.raises(SourceFailed, match="more than 500 levels"):
        list(found.namespaces())


def test_properties_and_log_of_another_form_are_none() -> None:
    strange = {"table-uuid": "u", "properties": [1], "metadata-log": ["x", {"metadata-file": 5}, {}]}
    found, server = source(ok({"metadata-location": "m1", "metadata": strange}), ok({"metadata": {}}))

    assert found.mark(ORDERS, {"k": "v"})
    assert server.requests[-1].method == "POST"
