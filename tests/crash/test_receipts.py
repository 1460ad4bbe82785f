"""A client whose connection broke asks what became of its commit: after kills, and after lost replies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.builders.databases import migrated
from tests.crash.crashes import Client, CrashingServer
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_proxy import Break, PostgresProxy, wire_to

pytestmark = pytest.mark.slow
HEADERS = {"Idempotency-Key": "mine", "X-Request-Id": "my-request"}
QUERIES = ({"idempotency-key": "mine"}, {"request-id": "my-request"})
TABLE = "/v1/namespaces/ns/tables/t"
BODY = {"updates": [{"action": "set-properties", "updates": {"mark-1": "here"}}]}


def receipts(client: Client) -> list[dict[str, Any]]:
    """Return what is answered to each way of asking."""
    return [client.http.get("/v1/commits", params=query).json() for query in QUERIES]


@pytest.mark.parametrize(("step", "lands"), [("before_put", False), ("after_put", True)])
def test_client_of_a_killed_server_finds_out(server: CrashingServer, step: str, *, lands: bool) -> None:
    client = Client(server.url)
    client.make_table("t")
    server.arm(step)
    with pytest.raises(httpx.TransportError):
        client.http.post(TABLE, json=BODY, headers=HEADERS)
    server.wait_until_dead()
    server.start()

    by_key, by_request = receipts(client)

    loaded = client.load("t")
    assert ("mark-1" in loaded["metadata"]["properties"]) is lands
    if not lands:
        assert by_key["error"]["message"].startswith("No commit with Idempotency-Key 'mine' has landed")
        assert by_request["error"]["message"].startswith(
            "No commit with X-Request-Id 'my-request' has landed"
        )
        assert client.http.post(TABLE, json=BODY, headers=HEADERS).status_code == 200
        by_key, by_request = receipts(client)
        loaded = client.load("t")
    assert by_key == by_request
    (receipt,) = by_key["commits"]
    assert receipt["outcome"] == "landed"
    assert receipt["changes"][0]["metadata-location-after"] == loaded["metadata-location"]
    assert client.http.get(f"/v1/commits/{receipt['commit-id']}").json() == receipt


@pytest.fixture
def wire(own_postgres_server: PostgresServer) -> Iterator[PostgresProxy]:
    with wire_to(own_postgres_server) as running:
        yield running


@pytest.fixture
def wired_server(
    tmp_path: Path, own_postgres_server: PostgresServer, wire: PostgresProxy
) -> Iterator[CrashingServer]:
    database = own_postgres_server.create_database()
    migrated(own_postgres_server.url(database))
    settings = {"database_url": wire.url(database), "file_deletion_interval_seconds": "3600"}
    with CrashingServer(tmp_path, settings) as server:
        yield server


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("how", "outcome"),
    [(Break.LOSE_REPLY, "landed"), (Break.LOSE_REQUEST, "failed")],
    ids=["reply", "request"],
)
def test_an_unknown_outcome_is_answered_at_once(
    wired_server: CrashingServer, wire: PostgresProxy, how: Break, outcome: str
) -> None:
    """The drop of a table: nothing but its receipt says what became of it."""
    client = Client(wired_server.url)
    client.make_table("t")
    wire.break_at("COMMIT", how)
    answer = client.http.delete(TABLE, headers=HEADERS)
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "CommitStateUnknownException"

    receipt = client.http.get(f"/v1/commits/{answer.headers['x-icetower-commit-id']}").json()

    assert receipt["outcome"] == outcome
    assert receipts(client) == [{"commits": [receipt]}] * 2
    assert client.http.head(TABLE).status_code == (404 if outcome == "landed" else 204)


@pytest.mark.postgres
@pytest.mark.parametrize("lands", [True, False])
def test_a_question_waits_for_the_lost_transaction(
    wired_server: CrashingServer, wire: PostgresProxy, *, lands: bool
) -> None:
    client, asking = Client(wired_server.url), Client(wired_server.url)
    client.make_table("t")
    wire.break_at("COMMIT", Break.HOLD)
    with ThreadPoolExecutor(2) as pool:
        dropping = pool.submit(client.http.delete, TABLE, headers=HEADERS)
        while not wire.has_broken:
            threading.Event().wait(0.01)
        question = pool.submit(receipts, asking)
        (wire.release if lands else wire.lose_held)()
        assert dropping.result().status_code == 500
        question.result()

    by_key, by_request = receipts(asking)

    assert by_key == by_request
    assert by_key["commits"][0]["outcome"] == ("landed" if lands else "failed")


@pytest.mark.postgres
def test_question_is_answered_once_the_database_is_back(
    wired_server: CrashingServer, wire: PostgresProxy, own_postgres_server: PostgresServer
) -> None:
    client = Client(wired_server.url)
    client.make_table("t")
    wire.break_at("COMMIT", Break.LOSE_REPLY)
    assert client.http.delete(TABLE, headers=HEADERS).status_code == 500
    own_postgres_server.kill()
    away = client.http.get("/v1/commits", params=QUERIES[0])
    assert (away.status_code, "retry-after" in away.headers) == (503, True)

    own_postgres_server.start()

    (receipt,) = client.http.get("/v1/commits", params=QUERIES[0]).json()["commits"]
    assert receipt["outcome"] == "landed"
