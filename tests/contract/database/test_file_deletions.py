"""The queue of file deletions: each entry has one worker, and none is forgotten."""

from __future__ import annotations

import pytest

from app.database.file_deletions import Deletion, FinalState
from app.database.pointers.left_files import QueuedExpiry
from app.database.pointers.moves import Advance
from app.database.pointers.pointer import PointerKind
from app.database.pointers.pointers import PutOutcome
from app.engine.model.ids import Location, TableUuid
from tests.contract.database.races import run_together
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, name


@pytest.fixture
def queued(stores: Stores) -> Stores:
    """Three tables, dropped with purge, the oldest first."""
    stores.add_namespace("a")
    for each in ("a.t1", "a.t2", "a.t3"):
        stores.add(each)
        stores.pointers.drop(stores.id, name(each), PointerKind.TABLE, AUTHOR, deletion=True)
    return stores


def lease(stores: Stores, now_ms: int = NOW_MS) -> Deletion:
    found = stores.file_deletions.lease(now_ms, 1000)
    assert found is not None
    return found


def test_the_oldest_entry_is_leased_first_and_by_one_only(queued: Stores) -> None:
    leased = [lease(queued).identifier for _ in range(3)]

    assert leased == ["a.t1", "a.t2", "a.t3"]
    assert queued.file_deletions.lease(NOW_MS, 1000) is None


def test_an_empty_queue_has_nothing_to_lease(stores: Stores) -> None:
    assert stores.file_deletions.lease(NOW_MS, 1000) is None
    assert stores.file_deletions.counts() == {}


def test_an_entry_is_not_due_before_its_time(queued: Stores) -> None:
    assert queued.file_deletions.lease(NOW_MS - 1, 1000) is None


def test_a_lease_that_ran_out_is_given_again(queued: Stores) -> None:
    first = lease(queued)

    again = lease(queued, NOW_MS + 1000)

    assert (again.id, first.attempts, again.attempts) == (first.id, 1, 2)


@pytest.mark.parametrize("state", ["done", "failed", "kept"])
def test_a_finished_entry_does_not_come_back(queued: Stores, state: FinalState) -> None:
    leased = lease(queued)

    queued.file_deletions.finish(leased.id, state, NOW_MS)
    queued.file_deletions.finish(leased.id, "done", NOW_MS)
    queued.file_deletions.postpone(leased.id, "too late", NOW_MS)

    assert queued.file_deletions.counts() == {state: 1, "queued": 2}
    assert lease(queued, NOW_MS + 5000).identifier == "a.t2"


def test_a_postponed_entry_comes_back_when_it_is_due(queued: Stores) -> None:
    leased = lease(queued)

    queued.file_deletions.postpone(leased.id, "the store said slow down", NOW_MS + 500)

    assert lease(queued, NOW_MS + 499).identifier == "a.t2"
    assert lease(queued, NOW_MS + 500).id == leased.id


def test_workers_at_the_same_moment_lease_different_entries(queued: Stores) -> None:
    outcomes = run_together([lambda: queued.file_deletions.lease(NOW_MS, 1000)] * 8)

    leased = [outcome.id for outcome in outcomes if outcome is not None]
    assert len(leased) == len(set(leased))
    rest = [queued.file_deletions.lease(NOW_MS, 1000) for _ in range(3)]
    assert len(leased) + sum(each is not None for each in rest) == 3


def test_expiry_is_queued_by_the_commit_that_makes_it(stores: Stores) -> None:
    stores.add_namespace("a")
    pointer = stores.add("a.t", uuid="u")

    assert stores.expire("a.t", "1.json", NOW_MS + 500) is PutOutcome.ADVANCED

    assert stores.file_deletions.lease(NOW_MS + 499, 1000) is None
    leased = lease(stores, NOW_MS + 500)
    assert (leased.kind, leased.pointer_id, leased.metadata_location) == ("expire", pointer.id, "1.json")
    assert leased.expired == '{"snapshots":[]}'
    assert stores.there("a.t").metadata_location == "1.json"


def test_expiry_that_loses_its_race_queues_nothing(stores: Stores) -> None:
    stores.add_namespace("a")
    seen = stores.add("a.t")
    stores.advance(seen, "other.json")
    move = Advance(seen, Location("mine.json"), seen.uuid, expiry=QueuedExpiry("{}", NOW_MS))

    assert stores.pointers.check_and_put([move], AUTHOR) is PutOutcome.MOVED

    assert stores.file_deletions.counts() == {}


def test_expiry_without_files_is_remembered_and_done(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.add("a.t", uuid="u")

    stores.expire("a.t", "1.json", None)

    assert stores.file_deletions.counts() == {"done": 1}
    assert stores.file_deletions.find_expired(TableUuid("u"), Location("1.json")) == '{"snapshots":[]}'
    assert stores.file_deletions.find_expired(TableUuid("u"), Location("2.json")) is None
    assert stores.file_deletions.find_expired(TableUuid("v"), Location("1.json")) is None


def test_lease_that_is_renewed_is_not_given_again(queued: Stores) -> None:
    first = lease(queued)

    queued.file_deletions.renew(first.id, NOW_MS + 5000)

    assert lease(queued, NOW_MS + 1000).identifier == "a.t2"
    assert lease(queued, NOW_MS + 5000).id == first.id


def test_table_dropped_with_purge_is_known_as_such(queued: Stores) -> None:
    assert queued.file_deletions.is_purged(TableUuid("uuid of a.t1"))
    assert not queued.file_deletions.is_purged(TableUuid("another"))

    for _ in range(3):
        queued.file_deletions.finish(lease(queued).id, "failed", NOW_MS)

    assert not queued.file_deletions.is_purged(TableUuid("uuid of a.t1"))
