"""The queue of file deletions: each entry has one worker, and none is forgotten."""

from __future__ import annotations

import pytest

from app.database.file_deletions import Deletion, FinalState
from app.database.pointers import PointerKind
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
