"""Connections to Postgres that break around COMMIT: told as landed when it landed, as unknown when not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.databases import migrated_database_of
from tests.crash.crashes import SCHEMA, Client, CrashingServer, check_table
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_proxy import Break, PostgresProxy, wire_to

pytestmark = [pytest.mark.slow, pytest.mark.postgres]


@pytest.fixture
def wire(postgres_server: PostgresServer) -> Iterator[PostgresProxy]:
    with wire_to(postgres_server) as running:
        yield running


@pytest.fixture
def wired_server(
    tmp_path: Path, postgres_server: PostgresServer, wire: PostgresProxy
) -> Iterator[CrashingServer]:
    database = migrated_database_of(postgres_server)
    # Housekeeping would commit too, and meet the break instead.
    settings = {"database_url": wire.url(database), "file_deletion_interval_seconds": "3600"}
    with CrashingServer(tmp_path, settings) as server:
        yield server


def metadata_files(server: CrashingServer) -> set[Path]:
    return set((server.folder / "warehouse").rglob("*.metadata.json"))


def test_commit_whose_reply_was_lost_but_that_landed_is_success(
    wired_server: CrashingServer, wire: PostgresProxy
) -> None:
    client = Client(wired_server.url)
    client.make_table("t")
    wire.break_at("COMMIT", Break.LOSE_REPLY)

    answer = client.commit("t", "mark-1")

    assert wire.has_broken
    assert answer.status_code == 200, answer.text
    check_table(client.load("t"), {"mark-1"}, {"mark-1"})


def test_commit_whose_request_was_lost_is_unknown_and_keeps_its_file(
    wired_server: CrashingServer, wire: PostgresProxy
) -> None:
    client = Client(wired_server.url)
    client.make_table("t")
    before = metadata_files(wired_server)
    wire.break_at("COMMIT", Break.LOSE_REQUEST)

    answer = client.commit("t", "mark-1")

    assert wire.has_broken
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "CommitStateUnknownException"
    assert len(metadata_files(wired_server) - before) == 1
    check_table(client.load("t"), set(), set())
    assert client.commit("t", "mark-2").status_code == 200


def test_creation_whose_reply_was_lost_is_success(wired_server: CrashingServer, wire: PostgresProxy) -> None:
    client = Client(wired_server.url)
    client.make_table("first")
    wire.break_at("COMMIT", Break.LOSE_REPLY)

    created = client.http.post("/v1/namespaces/ns/tables", json={"name": "second", "schema": SCHEMA})

    assert wire.has_broken
    assert client.load("second")["metadata-location"] == created.json()["metadata-location"]


def test_drop_whose_reply_was_lost_is_unknown_and_not_refused(
    wired_server: CrashingServer, wire: PostgresProxy
) -> None:
    client = Client(wired_server.url)
    client.make_table("t")
    wire.break_at("COMMIT", Break.LOSE_REPLY)

    answer = client.http.delete("/v1/namespaces/ns/tables/t")

    assert wire.has_broken
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "CommitStateUnknownException"
    assert client.http.head("/v1/namespaces/ns/tables/t").status_code == 404


def test_repeated_request_after_a_lost_reply_finds_what_landed(
    wired_server: CrashingServer, wire: PostgresProxy
) -> None:
    client = Client(wired_server.url)
    client.make_table("t")
    wire.break_at("COMMIT", Break.LOSE_REPLY)
    headers = {"Idempotency-Key": "drop-once"}
    assert client.http.delete("/v1/namespaces/ns/tables/t", headers=headers).status_code == 500

    again = client.http.delete("/v1/namespaces/ns/tables/t", headers=headers)

    assert again.status_code == 204
