"""The queue of file deletions: each entry has one worker, and none is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, update

from app.database.deletions.file_deletions import Deletion, FileDeletions, FinalState, Purge
from app.database.deletions.orphan_runs import OrphanBatch, OrphanRuns
from app.database.pointers.left_files import QueuedExpiry, TakenIn
from app.database.pointers.moves import Advance, Creation
from app.database.pointers.pointer import PointerKind
from app.database.pointers.pointers import PutOutcome
from app.database.pointers.recoverable import PURGE_NOW
from app.database.schema.rows import file_deletions
from app.engine.model.ids import Location, TableUuid
from app.errors import FilesBeingDeleted
from tests.contract.database.races import run_together
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, name


@pytest.fixture
def queued(stores: Stores) -> Stores:
    """Three tables, dropped with purge, the oldest first."""
    stores.add_namespace("a")
    for each in ("a.t1", "a.t2", "a.t3"):
        stores.add(each)
        stores.pointers.drop(stores.id, name(each), PointerKind.TABLE, AUTHOR, recovery=PURGE_NOW)
    return stores


LEASE_MS = 60_000


def lease(stores: Stores) -> Deletion:
    found = stores.file_deletions.lease(LEASE_MS)
    assert found is not None
    return found


def test_the_oldest_entry_is_leased_first_and_by_one_only(queued: Stores) -> None:
    leased = [lease(queued).identifier for _ in range(3)]

    assert leased == ["a.t1", "a.t2", "a.t3"]
    assert queued.file_deletions.lease(LEASE_MS) is None


def test_an_empty_queue_has_nothing_to_lease(stores: Stores) -> None:
    assert stores.file_deletions.lease(LEASE_MS) is None
    assert stores.file_deletions.counts() == {}


def test_a_lease_that_ran_out_is_given_again(queued: Stores) -> None:
    first = lease(queued)

    queued.move_queue(LEASE_MS)

    assert lease(queued).id == first.id


def test_a_lease_from_before_the_clock_was_set_back_does_not_hold(queued: Stores) -> None:
    first = lease(queued)
    assert queued.file_deletions.hold(first, LEASE_MS + LEASE_MS // 2)
    assert lease(queued).id != first.id

    assert queued.file_deletions.hold(first, 100 * LEASE_MS)

    assert lease(queued).id == first.id


@pytest.mark.parametrize("state", ["done", "failed", "kept"])
def test_a_finished_entry_does_not_come_back(queued: Stores, state: FinalState) -> None:
    leased = lease(queued)

    queued.file_deletions.finish(leased, state)
    queued.file_deletions.finish(leased, "done")
    queued.file_deletions.postpone(leased, 0, "too late")

    assert queued.file_deletions.counts() == {state: 1, "queued": 2}
    queued.move_queue(LEASE_MS)
    assert lease(queued).identifier == "a.t2"


def test_a_postponed_entry_comes_back_when_it_is_due(queued: Stores) -> None:
    leased = lease(queued)

    queued.file_deletions.postpone(leased, LEASE_MS, "the store said slow down")

    for behind in ("a.t2", "a.t3"):
        other = lease(queued)
        assert other.identifier == behind
        queued.file_deletions.finish(other, "done")
    assert queued.file_deletions.lease(LEASE_MS) is None
    queued.move_queue(LEASE_MS)
    again = lease(queued)
    assert (again.id, leased.attempts, again.attempts) == (leased.id, 0, 1)


def test_leases_are_not_counted_as_failures(queued: Stores) -> None:
    for _ in range(3):
        assert lease(queued).attempts == 0
        queued.move_queue(LEASE_MS)


def test_a_warehouse_with_very_many_entries_keeps_no_other_one_waiting(queued: Stores) -> None:
    other = queued.warehouses.create("other", "file:///other", created_ms=NOW_MS)
    elsewhere = replace(queued, warehouse=other)
    elsewhere.add_namespace("a")
    elsewhere.add("a.t")
    elsewhere.pointers.drop(other.id, name("a.t"), PointerKind.TABLE, AUTHOR, recovery=PURGE_NOW)
    first = lease(queued)

    found = queued.file_deletions.lease(LEASE_MS, besides=[first.warehouse_id])

    assert found is not None
    assert found.warehouse_id == other.id
    assert queued.file_deletions.lease(LEASE_MS, besides=[first.warehouse_id, other.id]) is None
    assert lease(queued).identifier == "a.t2"


def test_workers_at_the_same_moment_lease_different_entries(queued: Stores) -> None:
    outcomes = run_together([lambda: queued.file_deletions.lease(LEASE_MS)] * 8)

    leased = [outcome.id for outcome in outcomes if outcome is not None]
    assert len(leased) == len(set(leased))
    rest = [queued.file_deletions.lease(LEASE_MS) for _ in range(3)]
    assert len(leased) + sum(each is not None for each in rest) == 3


def test_expiry_is_queued_by_the_commit_that_makes_it(stores: Stores) -> None:
    stores.add_namespace("a")
    pointer = stores.add("a.t", uuid="u")

    assert stores.expire("a.t", "1.json", LEASE_MS) is PutOutcome.ADVANCED

    assert stores.file_deletions.lease(LEASE_MS) is None
    stores.move_queue(LEASE_MS)
    leased = lease(stores)
    assert (leased.kind, leased.pointer_id, leased.metadata_location) == ("expire", pointer.id, "1.json")
    assert leased.expired == '{"snapshots":[]}'
    assert stores.there("a.t").metadata_location == "1.json"


def test_expiry_that_loses_its_race_queues_nothing(stores: Stores) -> None:
    stores.add_namespace("a")
    seen = stores.add("a.t")
    stores.advance(seen, "other.json")
    move = Advance(seen, Location("mine.json"), seen.uuid, expiry=QueuedExpiry("{}", 0))

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

    assert queued.file_deletions.hold(first, 3 * LEASE_MS)
    queued.move_queue(2 * LEASE_MS)

    assert lease(queued).identifier == "a.t2"
    queued.move_queue(LEASE_MS)
    again = lease(queued)
    assert again.id == first.id
    assert queued.file_deletions.finish(again, "done")
    assert not queued.file_deletions.hold(again, LEASE_MS)


def test_a_lease_that_ran_out_holds_until_another_worker_has_the_entry(queued: Stores) -> None:
    first = lease(queued)
    queued.move_queue(2 * LEASE_MS)

    assert queued.file_deletions.hold(first, LEASE_MS)

    assert lease(queued).identifier == "a.t2"
    assert queued.file_deletions.finish(first, "done")


def test_a_lease_that_must_be_unbroken_is_not_held_once_it_ran_out(queued: Stores) -> None:
    first = lease(queued)
    queued.move_queue(LEASE_MS // 2)
    assert queued.file_deletions.hold(first, LEASE_MS, must_be_unbroken=True)

    queued.move_queue(LEASE_MS)

    assert not queued.file_deletions.hold(first, LEASE_MS, must_be_unbroken=True)
    assert lease(queued).id == first.id


def row(stores: Stores, entry: Deletion) -> Sequence[Any]:
    """Return all that the queue knows of an entry."""
    query = select(file_deletions).where(file_deletions.c.id == entry.id)
    return stores.database.read(lambda connection: connection.execute(query).one())


LATE: dict[str, Callable[[FileDeletions, Deletion], object]] = {
    "hold": lambda queue, entry: queue.hold(entry, 100 * LEASE_MS),
    "release": lambda queue, entry: queue.release(entry),
    "begin": lambda queue, entry: queue.begin(entry, None),
    "finish": lambda queue, entry: queue.finish(entry, "failed", "too late"),
    "postpone": lambda queue, entry: queue.postpone(entry, 100 * LEASE_MS, "too late"),
    "note": lambda queue, entry: queue.note(entry, "{}"),
    "note empty looks": lambda queue, entry: queue.note_empty_looks(entry, 7),
    "come back": lambda queue, entry: queue.come_back(entry, 100 * LEASE_MS, "{}"),
}


@pytest.mark.parametrize("late", LATE)
def test_a_worker_whose_entry_another_one_has_changes_nothing(queued: Stores, late: str) -> None:
    first = lease(queued)
    queued.move_queue(LEASE_MS)
    second = lease(queued)
    assert second.id == first.id
    before = row(queued, second)

    assert not LATE[late](queued.file_deletions, first)

    assert row(queued, second) == before
    assert queued.file_deletions.begin(second, None)
    assert queued.file_deletions.hold(second, LEASE_MS)
    assert queued.file_deletions.finish(second, "done")


def test_table_dropped_with_purge_is_known_as_such(queued: Stores) -> None:
    uuid = TableUuid("uuid of a.t1")
    entry = lease(queued)
    assert queued.file_deletions.find_purge(uuid) == Purge(entry.metadata_location, None)
    assert queued.file_deletions.find_purge(TableUuid("another")) is None

    queued.file_deletions.note(entry, "{}")
    assert queued.file_deletions.find_purge(uuid) == Purge(entry.metadata_location, "{}")
    queued.file_deletions.finish(entry, "failed")

    for _ in range(2):
        queued.file_deletions.finish(lease(queued), "failed")

    assert queued.file_deletions.find_purge(uuid) is None


def registration(stores: Stores, uuid: str, location: str = "elsewhere/0.json", place: str = "") -> Creation:
    return replace(
        stores.creation("a.again", uuid=uuid),
        location=Location(location),
        registration=7,
        places=frozenset([place] if place else []),
    )


def test_a_purge_that_has_begun_keeps_its_files_from_being_registered(stores: Stores) -> None:
    stores.add_namespace("a")
    at_place = replace(stores.creation("a.t", uuid="u"), places=frozenset(["s3://b/t/"]))
    stores.pointers.check_and_put([at_place], AUTHOR)
    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR, recovery=PURGE_NOW)
    entry = lease(stores)

    assert stores.file_deletions.begin(entry, None)

    for uuid, location, place in (("u", "x", ""), ("v", "a.t/0.json", ""), ("", "x", "s3://b/t/")):
        with pytest.raises(FilesBeingDeleted, match="being deleted by the purge"):
            stores.pointers.check_and_put([registration(stores, uuid, location, place)], AUTHOR)
    assert stores.pointers.find(stores.id, name("a.again")) is None
    other = registration(stores, "v", "x", "s3://b/other/")
    assert stores.pointers.check_and_put([other], AUTHOR) is PutOutcome.ADVANCED

    stores.file_deletions.finish(entry, "failed")
    again = replace(registration(stores, "u"), identifier=name("a.third"))
    assert stores.pointers.check_and_put([again], AUTHOR) is PutOutcome.ADVANCED


def test_a_purge_that_has_ended_since_its_file_was_read_keeps_it_from_being_registered(
    stores: Stores,
) -> None:
    stores.add_namespace("a")
    stores.add("a.t", uuid="u")
    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR, recovery=PURGE_NOW)
    entry = lease(stores)
    since_ms = stores.file_deletions.now_ms()
    assert stores.file_deletions.begin(entry, None)
    stores.file_deletions.finish(entry, "done")
    slow = replace(registration(stores, "u"), read_since_ms=since_ms)

    with pytest.raises(FilesBeingDeleted, match="being deleted by the purge"):
        stores.pointers.check_and_put([slow], AUTHOR)

    restored = replace(slow, read_since_ms=stores.file_deletions.now_ms() + 1)
    assert stores.pointers.check_and_put([restored], AUTHOR) is PutOutcome.ADVANCED


def test_what_was_deleted_before_the_clock_was_set_back_can_be_registered(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.add("a.t", uuid="u")
    seen, since_ms = stores.there("a.t"), stores.file_deletions.now_ms()
    entry = stores.file_deletions.begin_sweep(seen, NOW_MS, LEASE_MS)
    assert entry is not None
    stores.file_deletions.finish(entry, "done")
    assert [each.id for each in stores.file_deletions.begun(seen, since_ms)] == [entry.id]
    ahead = update(file_deletions).values(finished_ms=file_deletions.c.finished_ms + 365 * 86_400_000)

    stores.database.write(lambda connection: connection.execute(ahead))

    assert stores.file_deletions.begun(seen, since_ms) == []
    again = replace(registration(stores, "u"), read_since_ms=since_ms)
    assert stores.pointers.check_and_put([again], AUTHOR) is PutOutcome.ADVANCED


def test_a_purge_does_not_begin_once_its_table_is_registered(queued: Stores) -> None:
    entry = lease(queued)
    assert queued.pointers.check_and_put([registration(queued, entry.uuid)], AUTHOR) is PutOutcome.ADVANCED

    assert not queued.file_deletions.begin(entry, None)
    queued.file_deletions.release(entry)

    assert lease(queued).id == entry.id, "the entry is free to be looked at anew"


def test_a_sweep_is_leased_and_begun_at_once_and_no_orphans_are_marked_by_it(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.add("a.t", uuid="u")
    seen, runs = stores.there("a.t"), OrphanRuns(stores.database)

    entry = stores.file_deletions.begin_sweep(seen, NOW_MS, LEASE_MS)

    assert entry is not None
    assert (entry.kind, entry.expired, entry.pointer_id) == ("orphans", None, seen.id)
    with pytest.raises(FilesBeingDeleted, match="being deleted by the deletion of orphans"):
        stores.pointers.check_and_put([registration(stores, "u")], AUTHOR)
    assert stores.file_deletions.lease(LEASE_MS) is None
    assert runs.of_table(seen.uuid, 10) == []
    assert runs.mark(seen, "{}", LEASE_MS, NOW_MS, [OrphanBatch(0, "[]", 1, 1)])
    stores.move_queue(LEASE_MS)
    assert lease(stores).id == entry.id
    assert not stores.file_deletions.finish(entry, "done"), "another worker has it"


def test_a_sweep_does_not_begin_once_its_table_is_registered_anew_dropped_or_has_a_twin(
    stores: Stores,
) -> None:
    stores.add_namespace("a")
    stores.add("a.t", uuid="u")
    seen = stores.there("a.t")
    back = Advance(seen, Location("0.json"), seen.uuid, "replaced", registration=9)
    stores.pointers.check_and_put([back], AUTHOR)
    assert stores.file_deletions.begin_sweep(seen, NOW_MS, LEASE_MS) is None

    stores.add("a.twin", uuid="u")
    assert stores.file_deletions.begin_sweep(stores.there("a.t"), NOW_MS, LEASE_MS) is None

    stores.add("a.gone", uuid="g")
    gone = stores.there("a.gone")
    stores.pointers.drop(stores.id, name("a.gone"), PointerKind.TABLE, AUTHOR)
    assert stores.file_deletions.begin_sweep(gone, NOW_MS, LEASE_MS) is None
    assert stores.file_deletions.counts() == {}


def test_an_expiry_does_not_begin_once_its_table_is_registered_anew_or_dropped(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.add("a.t", uuid="u")
    stores.expire("a.t", "1.json", 0)
    entry, seen = lease(stores), stores.there("a.t")
    assert stores.file_deletions.begin(entry, seen.registration)
    stores.advance(seen, "2.json")
    assert stores.file_deletions.begin(entry, seen.registration), "an ordinary commit changes nothing"

    back = Advance(stores.there("a.t"), Location("0.json"), seen.uuid, "replaced", registration=9)
    with pytest.raises(FilesBeingDeleted, match="by the expiry"):
        stores.pointers.check_and_put([back], AUTHOR)
    stores.file_deletions.finish(entry, "done")
    stores.expire("a.t", "3.json", 0)
    second = lease(stores)
    back = replace(back, seen=stores.there("a.t"))
    assert stores.pointers.check_and_put([back], AUTHOR) is PutOutcome.ADVANCED
    assert not stores.file_deletions.begin(second, seen.registration)

    assert stores.file_deletions.begin(second, stores.there("a.t").registration)
    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR)
    assert not stores.file_deletions.begin(second, 9)


def test_what_takes_files_in_again_moves_only_if_it_knows_each_deletion_at_work(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.add("a.t", uuid="u")
    stores.add("a.other", uuid="v")
    stores.expire("a.t", "1.json", 0)
    entry = lease(stores)
    looked_ms = stores.file_deletions.now_ms()

    def take_in(*known: int, table: str = "a.t", later_ms: int = 0) -> PutOutcome:
        seen = stores.there(table)
        location = Location(f"{seen.metadata_location}+")
        taken = TakenIn(looked_ms + later_ms, frozenset(known))
        return stores.pointers.check_and_put([Advance(seen, location, seen.uuid, taken_in=taken)], AUTHOR)

    assert take_in() is PutOutcome.ADVANCED, "it waits still, and will look at the table once more"
    assert stores.file_deletions.begin(entry, stores.there("a.t").registration)
    assert [each.id for each in stores.file_deletions.begun(stores.there("a.t"), looked_ms)] == [entry.id]
    assert take_in() is PutOutcome.MOVED
    assert take_in(entry.id) is PutOutcome.ADVANCED
    assert take_in(table="a.other") is PutOutcome.ADVANCED
    stores.file_deletions.finish(entry, "done")
    assert take_in() is PutOutcome.MOVED, "it has ended since"
    assert take_in(later_ms=LEASE_MS) is PutOutcome.ADVANCED


def test_nothing_begins_for_a_table_without_a_uuid(stores: Stores) -> None:
    stores.add_namespace("a")
    creation = replace(stores.creation("a.t"), uuid=TableUuid(""))
    stores.pointers.check_and_put([creation], AUTHOR)
    nameless = stores.there("a.t")
    assert stores.pointers.may_share_files(TableUuid(""), nameless.id)
    stores.pointers.check_and_put([Advance(nameless, Location("1.json"), TableUuid("u"))], AUTHOR)

    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR, recovery=PURGE_NOW)

    assert stores.pointers.may_share_files(TableUuid("u"))
    assert not stores.file_deletions.begin(lease(stores), None)


def test_time_is_the_database_s_whatever_the_clock_of_a_server_says(stores: Stores) -> None:
    """Grace periods begin and end for servers whose clocks are hours apart as if they were one."""
    stores.add_namespace("a")
    for hours, each in ((-7, "a.slow"), (7, "a.fast")):
        stores.add(each)
        seen = stores.there(each)
        author = replace(AUTHOR, at_ms=AUTHOR.at_ms + hours * 3_600_000)
        move = Advance(seen, Location(f"{each}/1.json"), seen.uuid, expiry=QueuedExpiry("{}", LEASE_MS))
        assert stores.pointers.check_and_put([move], author) is PutOutcome.ADVANCED

    assert stores.file_deletions.lease(LEASE_MS) is None
    stores.move_queue(LEASE_MS)

    assert {lease(stores).identifier for _ in range(2)} == {"a.slow", "a.fast"}


def test_entries_that_have_failed_are_shown_with_why(queued: Stores) -> None:
    first, second, third = lease(queued), lease(queued), lease(queued)
    queued.file_deletions.postpone(first, LEASE_MS, "a store is away")
    queued.file_deletions.finish(second, "failed", "it is damaged")

    waits, given_up = queued.file_deletions.waiting(queued.id, 10)

    assert (waits.identifier, waits.attempts, waits.is_given_up, waits.error) == (
        "a.t1",
        1,
        False,
        "a store is away",
    )
    assert waits.not_before_ms > waits.created_ms
    assert (given_up.identifier, given_up.is_given_up, given_up.error) == ("a.t2", True, "it is damaged")
    assert queued.file_deletions.waiting(queued.id, 1) == [waits]
    assert queued.file_deletions.waiting(queued.id, 10, second.uuid) == [given_up]
    assert queued.file_deletions.waiting(queued.id, 10, third.uuid) == []
    assert queued.file_deletions.waiting(queued.id + 1, 10) == []
    assert queued.file_deletions.count_waiting() == 1
