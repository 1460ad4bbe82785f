"""Orphans are marked all or none, however many they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from app.database.deletions.old_rows import OldRows
from app.database.deletions.orphan_runs import TOGETHER, OrphanBatch, OrphanRuns
from app.database.pointers.pointer import Pointer
from app.database.schema.rows import orphan_batches
from app.errors import CommitStateUnknown, DatabaseUnavailable, IdempotencyKeyTaken
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


def rows_of_batches(stores: Stores) -> int:
    number = select(func.count()).select_from(orphan_batches)
    return stores.database.read(lambda connection: int(connection.scalars(number).one()))


class Killed(Exception):
    """Stands for the end of a server: nothing is taken back."""


class LostReplies:
    """The writes of a database that does not confirm one of them."""

    def __init__(self, stores: Stores, lost: int, monkeypatch: pytest.MonkeyPatch, *, is_done: bool) -> None:
        self._write, self._left, self._is_done = stores.database.write, lost, is_done
        monkeypatch.setattr(stores.database, "write", self.write)

    def write(self, work: Callable[[Connection], Any]) -> Any:
        self._left -= 1
        if self._left != 0:
            return self._write(work)

        def undone(connection: Connection) -> None:
            work(connection)
            raise CommitStateUnknown("The database did not confirm the change")

        self._write(work if self._is_done else undone)
        raise CommitStateUnknown("The database did not confirm the change")


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
        raise Killed

    with pytest.raises(Killed):
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


def test_of_two_that_are_marked_at_a_time_one_is_queued_and_nothing_is_left_of_the_other(
    stores: Stores, runs: OrphanRuns
) -> None:
    def overtaken() -> Iterator[OrphanBatch]:
        yield from batches(MANY - 1)
        assert runs.mark(table(stores), "[]", 0, NOW_MS, batches(1))
        yield from batches(MANY)[-1:]

    assert not runs.mark(table(stores), "{}", 0, NOW_MS, overtaken(), claim())

    assert [(run.report, run.state) for run in runs.of_table(table(stores).uuid, 10)] == [("[]", "queued")]
    assert stores.file_deletions.counts() == {"queued": 1}
    assert rows_of_batches(stores) == 1
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_a_request_that_was_answered_before_marks_nothing(stores: Stores, runs: OrphanRuns) -> None:
    stores.idempotency_keys.record(claim(), 200, "")

    with pytest.raises(IdempotencyKeyTaken):
        runs.mark(table(stores), "{}", 0, NOW_MS, batches(MANY), claim())

    assert stores.file_deletions.counts() == {}
    assert rows_of_batches(stores) == 0


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("lost", [1, 2])
def test_where_a_part_is_not_confirmed_nothing_is_marked_and_the_next_marking_goes_on(
    stores: Stores, runs: OrphanRuns, monkeypatch: pytest.MonkeyPatch, lost: int, is_done: bool
) -> None:
    LostReplies(stores, lost, monkeypatch, is_done=is_done)

    with pytest.raises(DatabaseUnavailable, match="no orphans are marked"):
        runs.mark(table(stores), "{}", 0, NOW_MS, batches(MANY), claim())

    assert stores.file_deletions.counts() == {}
    assert rows_of_batches(stores) == 0
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None
    assert runs.mark(table(stores), "{}", 0, NOW_MS, batches(MANY), claim())
    entry = stores.file_deletions.lease(1_000)
    assert entry is not None
    assert runs.waiting(entry.id) == batches(MANY)


def test_of_what_was_not_confirmed_nothing_of_another_run_is_taken_back(
    stores: Stores, runs: OrphanRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite gives the number of what it has not made to the next one."""
    stores.add("a.u")
    write = stores.database.write

    def overtaken(work: Callable[[Connection], Any]) -> Any:
        monkeypatch.setattr(stores.database, "write", write)
        LostReplies(stores, 1, monkeypatch, is_done=False)
        try:
            stores.database.write(work)
        finally:
            monkeypatch.setattr(stores.database, "write", write)
            assert runs.mark(stores.there("a.u"), "{}", 0, NOW_MS, batches(MANY))

    monkeypatch.setattr(stores.database, "write", overtaken)
    with pytest.raises(DatabaseUnavailable, match="no orphans are marked"):
        runs.mark(table(stores), "{}", 0, NOW_MS, batches(MANY), claim())

    assert stores.file_deletions.counts() == {"queued": 1}
    assert rows_of_batches(stores) == MANY


@pytest.mark.parametrize(("number", "lost"), [(1, 1), (MANY, 3)])
def test_what_was_marked_without_being_confirmed_is_found(
    stores: Stores, runs: OrphanRuns, monkeypatch: pytest.MonkeyPatch, number: int, lost: int
) -> None:
    LostReplies(stores, lost, monkeypatch, is_done=True)

    assert runs.mark(table(stores), "{}", 0, NOW_MS, batches(number), claim())

    entry = stores.file_deletions.lease(1_000)
    assert entry is not None
    assert runs.waiting(entry.id) == batches(number)
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is not None


@pytest.mark.parametrize(("number", "lost"), [(1, 1), (MANY, 3)])
def test_what_was_neither_confirmed_nor_marked_can_be_marked_again(
    stores: Stores, runs: OrphanRuns, monkeypatch: pytest.MonkeyPatch, number: int, lost: int
) -> None:
    LostReplies(stores, lost, monkeypatch, is_done=False)

    with pytest.raises(DatabaseUnavailable, match="no orphans are marked"):
        runs.mark(table(stores), "{}", 0, NOW_MS, batches(number), claim())

    assert rows_of_batches(stores) == 0
    assert stores.file_deletions.lease(1_000) is None
    assert runs.mark(table(stores), "{}", 0, NOW_MS, batches(number), claim())


def test_what_was_written_down_is_taken_back_where_the_rest_cannot_be(
    stores: Stores, runs: OrphanRuns
) -> None:
    def failing() -> Iterator[OrphanBatch]:
        yield from batches(MANY - 1)
        raise DatabaseUnavailable("gone")

    with pytest.raises(DatabaseUnavailable, match="gone"):
        runs.mark(table(stores), "{}", 0, NOW_MS, failing(), claim())

    assert stores.file_deletions.counts() == {}
    assert rows_of_batches(stores) == 0


def test_who_has_lost_a_run_notes_no_progress(stores: Stores, runs: OrphanRuns) -> None:
    assert runs.mark(table(stores), "{}", 0, NOW_MS, batches(2))
    lost = stores.file_deletions.lease(0)
    held = stores.file_deletions.lease(60_000)
    assert lost is not None
    assert held is not None

    assert not runs.batch_done(lost, 0, 2, 7)
    assert [batch.number for batch in runs.waiting(held.id)] == [0, 1]
    assert runs.batch_done(held, 0, 2, 7)
    assert [batch.number for batch in runs.waiting(held.id)] == [1]


def test_rows_of_what_was_not_marked_to_the_end_go_when_they_are_old(
    stores: Stores, runs: OrphanRuns
) -> None:
    def broken_off() -> Iterator[OrphanBatch]:
        yield from batches(MANY)
        raise Killed

    with pytest.raises(Killed):
        runs.mark(table(stores), "{}", 0, NOW_MS, broken_off())
    (run,) = runs.of_table(table(stores).uuid, 10)

    OldRows(stores.database).delete(-60_000)

    assert runs.waiting(run.id) == []
    assert stores.file_deletions.counts() == {}
