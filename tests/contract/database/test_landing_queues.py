"""Queues of writers: what every server on one database sees of them."""

from __future__ import annotations

from app.database.connections.database import Database
from app.database.landing_queues import LandingQueues
from tests.contract.database.races import run_together
from tests.contract.database.stores import Stores


def test_table_has_no_queue_at_first(database: Database) -> None:
    found = LandingQueues(database).load(1)

    assert (found.version, found.content) == (0, None)
    assert found.now_ms > 1_700_000_000_000


def test_queue_is_found_as_it_was_put(database: Database) -> None:
    queues = LandingQueues(database)

    assert queues.put(1, queues.load(1), "first", is_reserved=False)
    assert queues.put(1, queues.load(1), "second", is_reserved=False)

    found = queues.load(1)
    assert (found.version, found.content) == (2, "second")
    assert queues.load(2).content is None


def test_only_one_of_two_servers_changes_what_both_saw(database: Database) -> None:
    queues = LandingQueues(database)
    for expected in ("first", "second"):
        seen = queues.load(1)
        assert queues.put(1, seen, expected, is_reserved=False)
        assert not queues.put(1, seen, "late", is_reserved=False)
        assert queues.load(1).content == expected


def test_racing_servers_lose_no_change(database: Database) -> None:
    queues = LandingQueues(database)

    def count() -> None:
        for _ in range(5):
            while True:
                seen = queues.load(1)
                if queues.put(1, seen, str(int(seen.content or "0") + 1), is_reserved=False):
                    break

    run_together([count] * 4)

    assert queues.load(1).content == "20"


def test_pointer_says_whether_slots_are_reserved(stores: Stores, database: Database) -> None:
    queues = LandingQueues(database)
    stores.add_namespace("ns")
    pointer = stores.add("ns.t")
    assert not pointer.is_reserved

    queues.put(pointer.id, queues.load(pointer.id), "1", is_reserved=True)
    assert stores.there("ns.t").is_reserved

    queues.put(pointer.id, queues.load(pointer.id), "2", is_reserved=False)
    assert not stores.there("ns.t").is_reserved


def test_old_queues_are_deleted(database: Database) -> None:
    queues = LandingQueues(database)
    queues.put(1, queues.load(1), "1", is_reserved=False)

    assert queues.delete_old(60_000) == 0
    assert queues.delete_old(-60_000) == 1
    assert queues.load(1).content is None
