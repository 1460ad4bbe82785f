"""Bulkheads: a store or a row that does not answer slows down no other warehouse, and no other table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest

from app.fileio.network.circuit import SILENT_CALLS
from app.setting_types import DatabaseUrl
from tests.builders.databases import migrated_database_of
from tests.builders.http_catalog import (
    SCHEMA,
    error_of,
    http_catalog,
    make_namespace,
    make_table,
    set_properties,
)
from tests.servers.postgres import PostgresServer
from tests.servers.sick_s3 import Health, SickS3

CROWD = 24
FULL = 4
"""Requests that one table gets to a store: its share of 16 threads."""
OF_CONNECTIONS = {"pointers": 5, "namespaces": 3}
"""Changes that may each hold one of ten connections: of tables of one warehouse, and in one namespace."""
ROUNDS = 3
SOON_S = 8
"""Less than a lock is waited for."""


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[httpx.Client]:
    """A catalog that keeps nothing in memory, with a table on local disk."""
    # Nothing is kept, so that every load asks the store.
    nothing_kept: dict[str, Any] = {"metadata_cache_bytes": 0, "metadata_recheck_seconds": 0.0}
    with http_catalog(tmp_path, threads=16, **nothing_kept) as client:
        make_namespace(client, "ns")
        make_table(client, "ns", "t")
        yield client


@pytest.fixture
def stores() -> Iterator[tuple[SickS3, SickS3]]:
    with SickS3().running() as sick, SickS3().running() as well:
        yield sick, well


def make_warehouse(client: httpx.Client, name: str, store: SickS3) -> None:
    storage = store.storage | {"s3.request-timeout": "60"}
    body = {"name": name, "root-location": f"s3://{name}/tables", "storage": storage}
    assert client.post("/management/v1/warehouses", json=body).status_code == 200
    assert client.post(f"/v1/{name}/namespaces", json={"namespace": ["ns"]}).status_code == 200
    table = {"name": "t", "schema": SCHEMA}
    assert client.post(f"/v1/{name}/namespaces/ns/tables", json=table).status_code == 200


@contextmanager
def crowd(send: Callable[[], httpx.Response], count: int = CROWD) -> Iterator[list[Future[httpx.Response]]]:
    """Send the same request many times at once; the block goes on while the answers are awaited."""
    with ThreadPoolExecutor(count) as senders:
        yield [senders.submit(send) for _ in range(count)]


def all_is_well(client: httpx.Client, *prefixes: str) -> None:
    """Use everything that has nothing to do with what is sick."""
    for _ in range(ROUNDS):
        answers = [client.get("/health"), client.get("/v1/config"), client.get("/metrics")]
        for prefix in prefixes:
            table = f"{prefix}/namespaces/ns/tables/t"
            answers += [client.get(table), client.post(table, json=set_properties(a="b"))]
            answers += [client.get(f"{prefix}/namespaces"), client.get(f"{prefix}/namespaces/ns/tables")]
        assert [answer.status_code for answer in answers] == [200] * len(answers)


@pytest.mark.parametrize("health", ["hangs", "trickles"])
def test_a_sick_store_leaves_the_other_warehouses_alone(
    catalog: httpx.Client, stores: tuple[SickS3, SickS3], health: Health
) -> None:
    sick, well = stores
    make_warehouse(catalog, "sick", sick)
    make_warehouse(catalog, "well", well)

    sick.fall_ill(health)
    with crowd(lambda: catalog.get("/v1/sick/namespaces/ns/tables/t")) as answers:
        sick.wait_for_held(1)  # the others that found room wait for this one
        all_is_well(catalog, "/v1", "/v1/well")
        assert not any(answer.done() for answer in answers)
        sick.recover()

    assert {answer.result().status_code for answer in answers} <= {200, 503}
    assert catalog.get("/v1/sick/namespaces/ns/tables/t").status_code == 200


def test_a_sick_store_has_no_more_room_by_many_names(
    catalog: httpx.Client, stores: tuple[SickS3, SickS3]
) -> None:
    """Each location in a warehouse is a prefix that leads to it."""
    sick, _ = stores
    make_warehouse(catalog, "sick", sick)
    numbers = iter(range(CROWD))

    def load() -> httpx.Response:
        prefix = quote(f"s3://sick/tables/{next(numbers)}", safe="")
        return catalog.get(f"/v1/{prefix}/namespaces/ns/tables/t")

    sick.fall_ill("hangs")
    with crowd(load) as answers:
        sick.wait_for_held(1)
        all_is_well(catalog, "/v1")
        assert not any(answer.done() for answer in answers)
        sick.recover()

    assert {answer.result().status_code for answer in answers} <= {200, 503}


@pytest.mark.parametrize("health", ["hangs", "trickles"])
def test_writes_that_hang_leave_the_writes_of_other_stores_alone(
    catalog: httpx.Client, stores: tuple[SickS3, SickS3], health: Health
) -> None:
    """The library writes in a few threads of its own, which all stores share."""
    sick, well = stores
    make_warehouse(catalog, "sick", sick)
    make_warehouse(catalog, "well", well)
    numbers = iter(range(100))

    def create() -> httpx.Response:
        # Each in a namespace of its own, so that the whole share of the warehouse is taken.
        name = f"ns{next(numbers)}"
        assert catalog.post("/v1/sick/namespaces", json={"namespace": [name]}).status_code == 200
        return catalog.post(f"/v1/sick/namespaces/{name}/tables", json={"name": "new", "schema": SCHEMA})

    sick.fall_ill(health)
    with crowd(create) as answers:
        sick.wait_for_held(2 * FULL)
        all_is_well(catalog, "/v1", "/v1/well")
        assert not any(answer.done() for answer in answers)
        sick.recover()

    assert {answer.result().status_code for answer in answers} <= {200, 503}


def test_a_store_that_stays_silent_is_refused_at_once(tmp_path: Path, stores: tuple[SickS3, SickS3]) -> None:
    sick, _ = stores
    with http_catalog(tmp_path) as patient:
        make_warehouse(patient, "sick", sick)
    with http_catalog(tmp_path, store_answer_seconds=0.5, metadata_cache_bytes=0) as catalog:
        sick.fall_ill("trickles")
        for _ in range(SILENT_CALLS):
            assert catalog.get("/v1/sick/namespaces/ns/tables/t").status_code == 503
        asked = sick.requests
        refused = catalog.get("/v1/sick/namespaces/ns/tables/t")

    status, kind, message = error_of(refused)
    assert (status, kind) == (503, "ServiceUnavailableException")
    assert "has not answered" in message
    assert "no whole answer after 0.5 s" in message
    assert refused.headers["retry-after"]
    assert sick.requests == asked


@contextmanager
def a_locked_row(
    folder: Path, postgres_server: PostgresServer
) -> Iterator[tuple[httpx.Client, str, psycopg.Connection[Any]]]:
    """Hand out a catalog with tables `t` and `locked`, its database, and who has locked the row of `locked`."""
    url = postgres_server.url(migrated_database_of(postgres_server))
    with ExitStack() as held:
        client = held.enter_context(http_catalog(folder, threads=16, database_url=DatabaseUrl(url)))
        make_namespace(client, "ns")
        for name in ("t", "locked"):
            make_table(client, "ns", name)
        lock = held.enter_context(psycopg.connect(url.replace("postgresql+psycopg", "postgresql")))
        lock.execute("SELECT * FROM pointers WHERE name = 'locked' FOR UPDATE")
        yield client, url, lock


@pytest.mark.postgres
def test_a_locked_row_leaves_the_other_tables_alone(tmp_path: Path, postgres_server: PostgresServer) -> None:
    with a_locked_row(tmp_path, postgres_server) as (client, url, lock):
        with crowd(lambda: commit(client, "locked")) as answers:
            # One waits for the row, and the others of its table for that one.
            wait_for_locks(url, 1)
            all_is_well(client, "/v1")
            assert not any(answer.done() for answer in answers)
            lock.rollback()

        assert [answer.result().status_code for answer in answers] == [200] * CROWD


@pytest.mark.postgres
@pytest.mark.parametrize("what", ["pointers", "namespaces"])
def test_many_that_wait_for_locks_leave_connections_to_the_others(
    tmp_path: Path, postgres_server: PostgresServer, what: str
) -> None:
    """Each waits for a lock of its own, whether they come in a convoy with one thread or each with its own."""
    url = postgres_server.url(migrated_database_of(postgres_server))
    with ExitStack() as held:
        client = held.enter_context(http_catalog(tmp_path, threads=3 * CROWD, database_url=DatabaseUrl(url)))
        for namespace in ("ns", "locked"):
            make_namespace(client, namespace)
        make_table(client, "ns", "t")
        for number in range(CROWD):
            make_table(client, "locked", f"t{number}")
        numbers = iter(range(CROWD))
        lock = held.enter_context(psycopg.connect(url.replace("postgresql+psycopg", "postgresql")))
        locked = {
            "pointers": "SELECT * FROM pointers WHERE name <> 't' FOR UPDATE",
            "namespaces": "SELECT * FROM namespaces WHERE key = 'locked' FOR UPDATE",
        }
        lock.execute(locked[what])

        def send() -> httpx.Response:
            number = next(numbers)
            if what == "pointers":
                return client.post(f"/v1/namespaces/locked/tables/t{number}", json=set_properties(a="b"))
            new = {"name": f"new{number}", "schema": SCHEMA}
            return client.post("/v1/namespaces/locked/tables", json=new)

        with crowd(send) as answers:
            wait_for_locks(url, OF_CONNECTIONS[what])
            since_s = time.monotonic()
            all_is_well(client, "/v1")
            assert time.monotonic() - since_s < SOON_S
            assert not any(answer.done() for answer in answers)
            lock.rollback()

        assert [answer.result().status_code for answer in answers] == [200] * CROWD


def commit_together(client: httpx.Client, table: str) -> httpx.Response:
    change = {"identifier": {"namespace": ["ns"], "name": table}, **set_properties(a="b")}
    return client.post("/v1/transactions/commit", json={"table-changes": [change]})


def rename_there_and_back(client: httpx.Client, table: str) -> httpx.Response:
    name, other = ({"namespace": ["ns"], "name": each} for each in (table, f"{table} 2"))
    there = client.post("/v1/tables/rename", json={"source": name, "destination": other})
    if there.status_code != 204:
        return there
    return client.post("/v1/tables/rename", json={"source": other, "destination": name})


@pytest.mark.postgres
@pytest.mark.parametrize("change", [commit_together, rename_there_and_back])
def test_changes_named_in_bodies_that_wait_for_a_row_leave_those_of_other_tables_alone(
    tmp_path: Path, postgres_server: PostgresServer, change: Callable[[httpx.Client, str], httpx.Response]
) -> None:
    with a_locked_row(tmp_path, postgres_server) as (client, url, lock):
        with crowd(lambda: change(client, "locked")) as answers:
            wait_for_locks(url, 1)
            for _ in range(ROUNDS):
                assert change(client, "t").status_code == 204
            assert not any(answer.done() for answer in answers)
            lock.rollback()

        # Of renames at the same time the later ones find the table under its other name.
        assert 204 in {answer.result().status_code for answer in answers} <= {204, 404, 409}


def commit(client: httpx.Client, table: str) -> httpx.Response:
    return client.post(f"/v1/namespaces/ns/tables/{table}", json=set_properties(a="b"))


def wait_for_locks(url: str, count: int) -> None:
    """Wait until so many sessions wait for a lock."""
    pause = threading.Event()
    with psycopg.connect(url.replace("postgresql+psycopg", "postgresql"), autocommit=True) as session:
        for _ in range(600):
            row: Any = session.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            ).fetchone()
            if row[0] >= count:
                return
            pause.wait(0.05)
    raise AssertionError("too few sessions wait")
