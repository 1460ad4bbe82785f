"""Whether a server lives and can work: answered beside a database that is locked, that hangs, and that is gone."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.builders.databases import migrated_database_of
from tests.servers.icetower import icetower_process
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_proxy import PostgresProxy

pytestmark = [pytest.mark.slow, pytest.mark.postgres]
CROWD = 60
PATIENCE_S = 8.0
"""More than `/ready` waits, and less than a lock or a statement is waited for."""


@pytest.fixture
def server(
    tmp_path: Path, postgres_server: PostgresServer, postgres_wire: PostgresProxy
) -> Iterator[tuple[str, str]]:
    """A server that reaches its database through a wire, and the URL of that database without one."""
    database = migrated_database_of(postgres_server)
    settings = {"database_url": postgres_wire.url(database), "threads": "8", "log_level": "error"}
    with icetower_process(tmp_path, **settings) as url:
        yield url, postgres_server.url(database).replace("postgresql+psycopg", "postgresql")


def check_that_it_lives_and_cannot_work(url: str, cause: AbstractContextManager[object]) -> None:
    """Ask all that a person or an orchestrator asks, beside a crowd that waits for the database."""
    paths = ("/v1/config", "/v1/namespaces/ns/tables/t", "/v1/namespaces")
    with ThreadPoolExecutor(CROWD) as senders:
        with cause, httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
            crowd = [
                senders.submit(httpx.get, url + paths[number % 3], timeout=120) for number in range(CROWD)
            ]
            for _ in range(2):
                ready = client.get("/ready")
                assert ready.status_code == 503
                database = ready.json()["parts"]["database"]
                assert not database["ok"]
                assert database["why"]
                assert client.get("/health").status_code == client.get("/metrics").status_code == 200
        assert {answer.result().status_code for answer in crowd} <= {200, 404, 503}
    assert httpx.get(f"{url}/ready", timeout=60).status_code == 200


@contextmanager
def locked(database: str) -> Iterator[None]:
    with psycopg.connect(database) as session:
        session.execute("LOCK TABLE warehouses IN ACCESS EXCLUSIVE MODE")
        yield


def test_a_locked_table_of_warehouses(server: tuple[str, str]) -> None:
    url, database = server

    check_that_it_lives_and_cannot_work(url, locked(database))


def test_a_database_that_hangs(server: tuple[str, str], postgres_wire: PostgresProxy) -> None:
    url, _ = server

    check_that_it_lives_and_cannot_work(url, postgres_wire.silent())


def test_a_database_that_is_gone(server: tuple[str, str], postgres_wire: PostgresProxy) -> None:
    url, _ = server

    check_that_it_lives_and_cannot_work(url, postgres_wire.cut_off())
