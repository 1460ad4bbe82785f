"""Orphans are marked all or none, however many they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.database.deletions.old_rows import OldRows
from app.database.deletions.orphan_runs import TOGETHER, OrphanBatch, OrphanRuns
from app.database.pointers.pointer import Pointer
from app.errors import DatabaseUnavailable, IdempotencyKeyTaken
from tests.contract.database.stores import NOW_MS, Stores, claim

MANY = 2 * TOGETHER + 1


@pytest.fixture
def runs(stores: Stores) -> OrphanRuns:
    stores.add_namespace("a")
    stores.add("a.t")
    return OrphanRuns(stores.database)


def table(stores: Stores) -> Pointer:
    return stores.there("a.t")


def batches(number: int) -> list[OrphanBatch]:
    return [OrphanBatch(each, f"files {each}", 2, 7) for each in range(number)]


@pytest.mark.parametrize("number", [1, TOGETHER, MANY])
def test_all_that_is_marked_is_queued(stores: Stores, runs: OrphanRuns, number: int) -> None:
    assert runs.mark(table(stores), "{}", 0, NOW_MS, batches(number))

    (run,) = runs.of_table(table(stores).uuid, 10)
    assert (run.state, run.marked_files, run.error, run.finished_ms) == ("queued", 2 * number, None, None)
    assert runs.waiting(run.id) == batches(number)
    entry = stores.file_deletions.lease(1_000)
    assert entry is not None
    assert (entry.id, entry.kind, entry.expired) == (run.id, "orphans", "{}")


def test_marked_orphans_stay_for_their_time_from_the_end_of_marking(stores: Stores, runs: OrphanRuns) -> None:
    assert runs.mark(table(stores), "{}", 60_000, NOW_MS, batches(MANY))

    assert stores.file_deletions.lease(1_000) is None
    stores.move_queue(60_000)
    assert stores.file_deletions.lease(1_000) is not None


def test_others_write_while_very_many_are_marked(stores: Stores, runs: OrphanRuns) -> None:
    """On SQLite they would wait for as long as the transaction takes, and then be refused."""

    def writing() -> Iterator[OrphanBatch]:
        for batch in batches(MANY):
            if batch.number == 2 * TOGETHER:
                assert stores.add("a.other").id > 0
                assert stores.file_deletions.lease(1_000) is None, "nothing is queued yet"
            yield batch

    assert runs.mark(table(stores), "{}", 0, NOW_MS, writing())

    assert stores.file_deletions.lease(1_000) is not None


def test_what_was_not_marked_to_the_end_is_not_deleted(stores: Stores, runs: OrphanRuns) -> None:
    def broken_off() -> Iterator[OrphanBatch]:
        yield from batches(MANY)
        raise DatabaseUnavailable("The database does not answer")

    with pytest.raises(DatabaseUnavailable):
        runs.mark(table(stores), "{}", 0, NOW_MS, broken_off())

    assert stores.file_deletions.lease(1_000) is None
    (run,) = runs.of_table(table(stores).uuid, 10)
    assert (run.state, run.error) == (
        "kept",
        "Not all of them were written down, so none is deleted; mark them again",
    )
    assert runs.mark(table(stores), "{}", 0, NOW_MS, batches(1)), "they are marked anew"
    assert [each.state for each in runs.of_table(table(stores).uuid, 10)] == ["queued", "kept"]


@pytest.mark.parametrize("number", [1, MANY])
def test_while_orphans_of_a_table_wait_no_others_of_it_are_marked(
    stores: Stores, runs: OrphanRuns, number: int
) -> None:
    assert runs.mark(table(stores), "{}", 0, NOW_MS, batches(1))

    assert not runs.mark(table(stores), "{}", 0, NOW_MS, batches(number), claim())

    assert len(runs.of_table(table(stores).uuid, 10)) == 1
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_of_two_that_are_marked_at_a_time_one_is_queued(stores: Stores, runs: OrphanRuns) -> None:
    def overtaken() -> Iterator[OrphanBatch]:
        yield from batches(MANY - 1)
        assert runs.mark(table(stores), "[]", 0, NOW_MS, batches(1))
        yield from batches(MANY)[-1:]

    assert not runs.mark(table(stores), "{}", 0, NOW_MS, overtaken(), claim())

    found = {run.report: run.state for run in runs.of_table(table(stores).uuid, 10)}
    assert found == {"{}": "kept", "[]": "queued"}
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_a_request_that_was_answered_before_marks_nothing(stores: Stores, runs: OrphanRuns) -> None:
    stores.idempotency_keys.record(claim(), 200, "")

    with pytest.raises(IdempotencyKeyTaken):
        runs.mark(table(stores), "{}", 0, NOW_MS, batches(MANY), claim())

    assert stores.file_deletions.lease(1_000) is None


def test_rows_of_what_was_not_marked_to_the_end_go_when_they_are_old(
    stores: Stores, runs: OrphanRuns
) -> None:
    def broken_off() -> Iterator[OrphanBatch]:
        yield from batches(MANY)
        raise DatabaseUnavailable("The database does not answer")

    with pytest.raises(DatabaseUnavailable):
        runs.mark(table(stores), "{}", 0, NOW_MS, broken_off())
    (run,) = runs.of_table(table(stores).uuid, 10)

    OldRows(stores.database).delete(-60_000)

    assert runs.waiting(run.id) == []
    assert stores.file_deletions.counts() == {}
