"""Writers that do what Iceberg's Java client does, against two servers on one database."""

from __future__ import annotations

import httpx
import pytest

from tests.builders.contending_writers import Orders, run_writers
from tests.concurrency.writers import load, make_tables

WRITERS = 24


def herd(servers: list[str], *, latency_s: float = 0.0, shares_connections: bool = False) -> Orders:
    return Orders(
        servers,
        "/v1/namespaces/ns/tables/t",
        WRITERS,
        seconds=60,
        latency_s=latency_s,
        rounds=2,
        shares_connections=shares_connections,
    )


def test_no_writer_of_a_herd_gives_up(servers: list[str]) -> None:
    make_tables(servers[0], "t")

    found = run_writers(herd(servers))
    seen = [httpx.get(f"{server}/v1/namespaces/ns/tables/t/tower").json() for server in servers]

    assert (found.gave_up, found.landed) == (0, 2 * WRITERS)
    assert sum(each["landed"] for each in seen) == 2 * WRITERS + 1
    assert sum(each["gave-up"] for each in seen) == 0
    assert sum(each["loads-held"] for each in seen) > 0
    assert found.attempts < 2 * found.landed, "most writers lose in the first round only"
    given = sum(each["slots-given"] for each in seen)
    ended = sum(each[f"slots-{end}"] for each in seen for end in ("used", "lost", "passed"))
    assert given >= ended
    metadata = load(servers[0], "t")
    numbers = [snapshot["sequence-number"] for snapshot in metadata["snapshots"]]
    assert sorted(numbers) == list(range(1, 2 * WRITERS + 1))
    head = next(
        item for item in metadata["snapshots"] if item["snapshot-id"] == metadata["current-snapshot-id"]
    )
    assert head["summary"]["total-data-files"] == str(2 * WRITERS)


@pytest.mark.parametrize("latency_s", [0.0, 0.01], ids=["near", "far"])
def test_no_thread_of_one_client_gives_up(servers: list[str], latency_s: float) -> None:
    # Its next attempt comes on another connection, and often to the other server.
    make_tables(servers[0], "t")

    found = run_writers(herd(servers, latency_s=latency_s, shares_connections=True))

    assert (found.gave_up, found.landed) == (0, 2 * WRITERS)
