"""How the calls are put: paths, prefix, bodies, and values made of the answers."""

from __future__ import annotations

import json

import httpx
import pytest

from app.client.catalog import RemoteCatalog
from app.client.http.failures import AnswerNotUnderstood, CatalogRefused, CatalogUnreachable
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.unit.client.scripted_server import ScriptedServer, ok, refusal

CONFIG = {"defaults": {"a": "1", "b": "1"}, "overrides": {"prefix": "the%2Fprefix", "b": "2", "c": None}}
SALES = Namespace(("eu.west", "sales"))
ORDERS = TableIdentifier(SALES, "or/ders +é")
SALES_PATH = "/v1/the%2Fprefix/namespaces/eu.west%1Fsales"
ORDERS_PATH = f"{SALES_PATH}/tables/or%2Fders%20%2B%C3%A9"
TABLE = {"metadata-location": "file:/x", "metadata": {"format-version": 2}, "config": {"k": "v"}, "new": 1}
VIEW = {"metadata-location": "file:/v", "metadata": {"format-version": 1}}


def connect(*answers: httpx.Response) -> tuple[RemoteCatalog, ScriptedServer]:
    server = ScriptedServer([ok(CONFIG), *answers])
    return RemoteCatalog("http://scripted.example", "w h", transport=server.transport), server


def path_of(request: httpx.Request) -> str:
    return request.url.raw_path.decode()


def body_of(request: httpx.Request) -> object:
    return json.loads(request.content)


def test_connecting_asks_for_the_configuration_and_merges_it() -> None:
    catalog, server = connect()

    assert dict(server.requests[0].url.params) == {"warehouse": "w h"}
    assert catalog.properties == {"a": "1", "b": "2", "warehouse": "w h", "prefix": "the%2Fprefix"}


def test_without_a_warehouse_or_a_prefix_there_is_none() -> None:
    server = ScriptedServer([ok({"defaults": {}, "overrides": {}}), ok({"namespaces": []})])

    with RemoteCatalog("http://scripted.example/", transport=server.transport) as catalog:
        assert list(catalog.namespaces.list()) == []

    assert path_of(server.requests[0]) == "/v1/config"
    assert path_of(server.requests[1]) == "/v1/namespaces?pageToken=&pageSize=1000"


def test_server_that_goes_on_elsewhere_is_followed() -> None:
    elsewhere = {"defaults": {"uri": "http://no"}, "overrides": {"uri": "http://elsewhere.example/base/"}}
    for config, url in (
        (elsewhere, "http://elsewhere.example/base/v1/namespaces"),
        ({**elsewhere, "overrides": {"uri": None}}, "http://scripted.example/at/v1/namespaces"),
    ):
        server = ScriptedServer([ok(config), ok({"namespaces": []})])
        with RemoteCatalog("http://scripted.example/at/", transport=server.transport) as catalog:
            assert list(catalog.namespaces.list()) == []

        assert str(server.requests[1].url).partition("?")[0] == url


def test_password_of_an_address_is_not_shown_after_the_configuration_either() -> None:
    server = ScriptedServer(
        [ok(CONFIG), refusal(404, "NoSuchTableException", ""), httpx.Response(200, text="?")]
    )
    uri = "http://me:hunter2@scripted.example"

    with RemoteCatalog(uri, transport=server.transport) as catalog:
        with pytest.raises(CatalogRefused):
            catalog.tables.load(ORDERS)
        with pytest.raises(AnswerNotUnderstood) as failed:
            catalog.tables.load(ORDERS)

    assert "scripted.example" in str(failed.value)
    assert "hunter2" not in str(failed.value)
    assert "hunter2" not in str(server.requests[2].url)


@pytest.mark.parametrize("elsewhere", ["nonsense", "file:///etc/passwd", "http://a:99999/"])
def test_server_that_goes_on_nowhere_is_refused(elsewhere: str) -> None:
    server = ScriptedServer([ok({"defaults": {}, "overrides": {"uri": elsewhere}})])

    with pytest.raises(CatalogUnreachable):
        RemoteCatalog("http://scripted.example", transport=server.transport)


def test_an_unknown_warehouse_is_refused_on_connecting() -> None:
    server = ScriptedServer([refusal(404, "NoSuchWarehouseException", "Warehouse does not exist: x")])

    with pytest.raises(CatalogRefused, match="Warehouse does not exist: x"):
        RemoteCatalog("http://scripted.example", "x", transport=server.transport)


def test_namespaces() -> None:
    catalog, server = connect(
        ok({"namespaces": [["a", "b"]]}),
        ok({"namespace": ["a"], "properties": {"k": "v"}}),
        ok({"namespace": ["a"]}),
        httpx.Response(204),
        ok({"updated": ["k"], "removed": [], "missing": ["z"]}),
        httpx.Response(204),
    )

    assert list(catalog.namespaces.list(SALES)) == [Namespace(("a", "b"))]
    assert catalog.namespaces.create(SALES, {"k": "v"}) == {"k": "v"}
    assert catalog.namespaces.load(SALES) == {}
    assert catalog.namespaces.exists(SALES)
    assert catalog.namespaces.update_properties(SALES, {"k": "v"}, ["z"]).missing == ["z"]
    catalog.namespaces.drop(SALES)

    listing, created, *rest = server.requests[1:]
    assert listing.url.params["parent"] == "eu.west\x1fsales"
    assert body_of(created) == {"namespace": ["eu.west", "sales"], "properties": {"k": "v"}}
    assert [(request.method, path_of(request)) for request in rest] == [
        ("GET", SALES_PATH),
        ("HEAD", SALES_PATH),
        ("POST", f"{SALES_PATH}/properties"),
        ("DELETE", SALES_PATH),
    ]


def test_tables() -> None:
    staged: dict[str, object] = {"metadata": {}}
    listed = {"identifiers": [{"namespace": ["a"], "name": "t"}]}
    catalog, server = connect(
        ok(listed),
        ok(staged),
        ok(TABLE),
        httpx.Response(404),
        ok(TABLE),
        ok(TABLE),
        ok(TABLE),
        *[httpx.Response(204)] * 2,
    )
    tables = catalog.tables

    assert list(tables.list(SALES)) == [TableIdentifier(Namespace(("a",)), "t")]
    assert tables.create(ORDERS, {"type": "struct"}, location="s3://x", stage=True).metadata_location is None
    loaded = tables.load(ORDERS, "refs")
    assert (loaded.metadata_location, loaded.metadata, loaded.config) == (
        "file:/x",
        {"format-version": 2},
        {"k": "v"},
    )
    assert not tables.exists(ORDERS)
    tables.commit(ORDERS, [{"action": "x"}], [{"type": "y"}])
    tables.register(ORDERS, "file:/m", overwrite=True)
    tables.unregister(ORDERS)
    tables.rename(ORDERS, TableIdentifier(SALES, "b"))
    tables.drop(ORDERS, purge=True)

    assert [(request.method, path_of(request)) for request in server.requests[2:]] == [
        ("POST", f"{SALES_PATH}/tables"),
        ("GET", f"{ORDERS_PATH}?snapshots=refs"),
        ("HEAD", ORDERS_PATH),
        ("POST", ORDERS_PATH),
        ("POST", f"{SALES_PATH}/register"),
        ("POST", f"{ORDERS_PATH}/unregister"),
        ("POST", "/v1/the%2Fprefix/tables/rename"),
        ("DELETE", f"{ORDERS_PATH}?purgeRequested=true"),
    ]
    named = {"namespace": ["eu.west", "sales"], "name": "or/ders +é"}
    assert body_of(server.requests[2]) == {
        "name": "or/ders +é",
        "schema": {"type": "struct"},
        "stage-create": True,
        "properties": {},
        "location": "s3://x",
    }
    assert body_of(server.requests[5]) == {
        "identifier": named,
        "updates": [{"action": "x"}],
        "requirements": [{"type": "y"}],
    }
    assert body_of(server.requests[8]) == {"source": named, "destination": {**named, "name": "b"}}


def test_views() -> None:
    catalog, server = connect(
        ok({"identifiers": []}),
        ok(VIEW),
        ok(VIEW),
        httpx.Response(204),
        ok(VIEW),
        ok(VIEW),
        *[httpx.Response(204)] * 2,
    )
    views, view_path = catalog.views, ORDERS_PATH.replace("tables", "views")

    assert list(views.list(SALES)) == []
    assert views.create(ORDERS, {}, {}, location="s3://x").metadata_location == "file:/v"
    assert views.load(ORDERS).metadata == {"format-version": 1}
    assert views.exists(ORDERS)
    views.commit(ORDERS, [])
    views.register(ORDERS, "file:/m")
    views.rename(ORDERS, ORDERS)
    views.drop(ORDERS)

    assert [(request.method, path_of(request)) for request in server.requests[2:]] == [
        ("POST", f"{SALES_PATH}/views"),
        ("GET", view_path),
        ("HEAD", view_path),
        ("POST", view_path),
        ("POST", f"{SALES_PATH}/register-view"),
        ("POST", "/v1/the%2Fprefix/views/rename"),
        ("DELETE", view_path),
    ]


@pytest.mark.parametrize(
    ("name", "encoded"), [(".", "%2E"), ("..", "%2E%2E"), ("...", "..."), ("a.b", "a.b")]
)
def test_names_of_dots_are_not_taken_for_steps_in_the_path(name: str, encoded: str) -> None:
    catalog, server = connect(ok(TABLE))

    catalog.tables.load(TableIdentifier(Namespace((name,)), name))

    asked = path_of(server.requests[1])
    assert asked == f"/v1/the%2Fprefix/namespaces/{encoded}/tables/{encoded}?snapshots=all"
