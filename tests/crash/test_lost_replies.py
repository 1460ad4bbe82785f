"""Connections to Postgres that break around COMMIT: told as landed when it landed, as unknown when not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.conftest import migrated
from tests.crash.crashes import Client, CrashingServer, check_table
from tests.servers.cutting_proxy import CuttingProxy, cutting_proxy
from tests.servers.postgres import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.postgres]


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[CuttingProxy]:
    with cutting_proxy(str(postgres_server.directory / ".s.PGSQL.5432")) as running:
        yield running


@pytest.fixture
def proxied_server(
    tmp_path: Path, postgres_server: PostgresServer, proxy: CuttingProxy
) -> Iterator[CrashingServer]:
    database = postgres_server.create_database()
    migrated(postgres_server.url(database))
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}"
    # Housekeeping would commit too, and meet the cut instead.
    settings = {"database_url": url, "file_deletion_interval_seconds": "3600"}
    with CrashingServer(tmp_path, settings) as server:
        yield server


def metadata_files(server: CrashingServer) -> set[Path]:
    return set((server.folder / "warehouse").rglob("*.metadata.json"))


def test_commit_whose_reply_was_lost_but_that_landed_is_success(
    proxied_server: CrashingServer, proxy: CuttingProxy
) -> None:
    client = Client(proxied_server.url)
    client.make_table("t")
    proxy.arm("reply")

    answer = client.commit("t", "mark-1")

    assert proxy.cuts == 1
    assert answer.status_code == 200, answer.text
    check_table(client.load("t"), {"mark-1"}, {"mark-1"})


def test_commit_whose_request_was_lost_is_unknown_and_keeps_its_file(
    proxied_server: CrashingServer, proxy: CuttingProxy
) -> None:
    client = Client(proxied_server.url)
    client.make_table("t")
    before = metadata_files(proxied_server)
    proxy.arm("request")

    answer = client.commit("t", "mark-1")

    assert proxy.cuts == 1
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "CommitStateUnknownException"
    assert len(metadata_files(proxied_server) - before) == 1
    check_table(client.load("t"), set(), set())
    assert client.commit("t", "mark-2").status_code == 200


def test_creation_whose_reply_was_lost_is_success(
    proxied_server: CrashingServer, proxy: CuttingProxy
) -> None:
    client = Client(proxied_server.url)
    client.make_table("first")
    proxy.arm("reply")

    created = client.make_table("second")

    assert proxy.cuts == 1
    assert client.load("second")["metadata-location"] == created["metadata-location"]


def test_drop_whose_reply_was_lost_is_unknown_and_not_refused(
    proxied_server: CrashingServer, proxy: CuttingProxy
) -> None:
    client = Client(proxied_server.url)
    client.make_table("t")
    proxy.arm("reply")

    answer = client.http.delete("/v1/namespaces/ns/tables/t")

    assert proxy.cuts == 1
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "CommitStateUnknownException"
    assert client.http.head("/v1/namespaces/ns/tables/t").status_code == 404


def test_repeated_request_after_a_lost_reply_finds_what_landed(
    proxied_server: CrashingServer, proxy: CuttingProxy
) -> None:
    client = Client(proxied_server.url)
    client.make_table("t")
    proxy.arm("reply")
    headers = {"Idempotency-Key": "drop-once"}
    assert client.http.delete("/v1/namespaces/ns/tables/t", headers=headers).status_code == 500

    again = client.http.delete("/v1/namespaces/ns/tables/t", headers=headers)

    assert again.status_code == 204
