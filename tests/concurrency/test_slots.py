"""Writers that do what Iceberg's Java client does, against two servers on one database."""

from __future__ import annotations

import httpx

from tests.builders.contending_writers import Orders, run_writers
from tests.concurrency.writers import load, make_tables

WRITERS = 24


def test_no_writer_of_a_herd_gives_up(servers: list[str]) -> None:
    make_tables(servers[0], "t")
    orders = Orders(servers, "/v1/namespaces/ns/tables/t", WRITERS, seconds=60, latency_s=0.0, rounds=2)

    found = run_writers(orders)
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
