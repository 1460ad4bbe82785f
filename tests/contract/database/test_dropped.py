"""What was dropped and can come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import event

from app.database.deletions.foreign_places import ForeignPlaces
from app.database.deletions.old_rows import OldRows
from app.database.dropped import Dropped, DroppedMeanwhile, DroppedThings, FilesInUse
from app.database.pointers.foreign_files import ANYWHERE
from app.database.pointers.moves import Advance, NameTaken
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.pointers.recoverable import Recovery
from app.engine.model.ids import Location, TableUuid
from app.errors import IdempotencyKeyTaken, NamespaceExists, NoSuchNamespace
from tests.contract.database.races import kinds, run_together
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, claim, levels, name

TABLE, VIEW = PointerKind.TABLE, PointerKind.VIEW
WEEK_MS = 7 * 24 * 3_600_000
WEEK = Recovery(WEEK_MS)
LATER = replace(AUTHOR, at_ms=NOW_MS + 1_000)


@pytest.fixture
def dropped(stores: Stores) -> DroppedThings:
    stores.add_namespace("a")
    return DroppedThings(stores.database)


def drop(stores: Stores, dotted: str, kind: PointerKind = TABLE, recovery: Recovery = WEEK) -> Dropped:
    """Drop something and return what can come back."""
    stores.pointers.drop(stores.id, name(dotted), kind, AUTHOR, recovery=recovery)
    return DroppedThings(stores.database).list(stores.id, NOW_MS)[0]


def test_table_comes_back_with_its_id_its_place_and_its_history(
    stores: Stores, dropped: DroppedThings
) -> None:
    there = stores.add("a.t")
    stores.advance(there, "1.json")
    entry = drop(stores, "a.t")

    back = dropped.undrop(entry, name("a.t"), LATER)

    assert back == stores.there("a.t") == replace(there, metadata_location=Location("1.json"))
    events = [event.event for event in stores.pointers.history(there.id)]
    assert events == ["undropped", "dropped", "committed", "created"]
    assert dropped.list(stores.id, NOW_MS) == []
    assert stores.advance(back, "2.json").name == "ADVANCED"


def test_name_is_free_at_once_and_several_drops_of_it_are_kept(
    stores: Stores, dropped: DroppedThings
) -> None:
    stores.add("a.t")
    first = drop(stores, "a.t")
    stores.add("a.t", VIEW)
    drop(stores, "a.t", VIEW)

    found = dropped.list(stores.id, NOW_MS, name=(levels("a"), "t"))

    assert [entry.kind for entry in found] == ["view", "table"]
    assert dropped.undrop(first, name("a.old"), LATER).kind is TABLE
    assert [entry.kind for entry in dropped.list(stores.id, NOW_MS)] == ["view"]


def test_entry_says_who_when_and_until(stores: Stores, dropped: DroppedThings) -> None:
    there = stores.add("a.t")
    entry = drop(stores, "a.t")

    assert (entry.principal, entry.request_id, entry.dropped_ms) == ("alice", "request-1", NOW_MS)
    assert entry.until_ms == NOW_MS + WEEK_MS
    assert entry.pointer == there
    assert dropped.find(stores.id, entry.id, NOW_MS) == entry
    assert dropped.find_pointer(there.id, NOW_MS) == entry
    assert dropped.find(stores.id + 1, entry.id, NOW_MS) is None


def test_without_recovery_nothing_is_kept(stores: Stores, dropped: DroppedThings) -> None:
    stores.add("a.t")
    stores.pointers.drop(stores.id, name("a.t"), TABLE, AUTHOR)

    assert dropped.list(stores.id, NOW_MS) == []


def test_end_was_fixed_at_the_drop(stores: Stores, dropped: DroppedThings) -> None:
    stores.add("a.t")
    entry = drop(stores, "a.t")
    over = replace(AUTHOR, at_ms=entry.until_ms)

    assert dropped.list(stores.id, entry.until_ms - 1) == [entry]
    assert dropped.list(stores.id, entry.until_ms) == []
    with pytest.raises(DroppedMeanwhile):
        dropped.undrop(entry, name("a.t"), over)
    assert dropped.end(entry.until_ms - 1) == 0
    assert dropped.end(entry.until_ms) == 1
    assert stores.file_deletions.counts() == {}


def test_purge_that_waits_is_queued_when_its_time_is_over(stores: Stores, dropped: DroppedThings) -> None:
    stores.add("a.t")
    entry = drop(stores, "a.t", recovery=Recovery(WEEK_MS, purge=True))
    assert stores.file_deletions.counts() == {}

    assert dropped.end(entry.until_ms) == 1

    assert stores.file_deletions.counts() == {"queued": 1}
    assert stores.file_deletions.find_purge(entry.pointer.uuid if entry.pointer else TableUuid(""))


@pytest.mark.parametrize("deletion", [True, False])
def test_purge_ends_it_at_once(stores: Stores, dropped: DroppedThings, *, deletion: bool) -> None:
    stores.add("a.t")
    entry = drop(stores, "a.t")

    dropped.purge(entry, LATER, claim(), deletion=deletion)

    assert dropped.list(stores.id, NOW_MS) == []
    assert stores.file_deletions.counts() == ({"queued": 1} if deletion else {})
    with pytest.raises(IdempotencyKeyTaken):
        dropped.purge(entry, LATER, claim(), deletion=deletion)
    with pytest.raises(DroppedMeanwhile):
        dropped.undrop(entry, name("a.t"), LATER)


def test_taken_name_and_missing_namespace_change_nothing(stores: Stores, dropped: DroppedThings) -> None:
    stores.add("a.t")
    entry = drop(stores, "a.t")
    stores.add("a.t", uuid="another")

    with pytest.raises(NameTaken):
        dropped.undrop(entry, name("a.t"), LATER)
    with pytest.raises(NoSuchNamespace):
        dropped.undrop(entry, name("b.t"), LATER, claim())

    assert dropped.list(stores.id, NOW_MS) == [entry]
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_missing_namespace_is_made_when_that_is_asked_for(stores: Stores, dropped: DroppedThings) -> None:
    stores.add("a.t")
    entry = drop(stores, "a.t")
    for properties in ({"k": "earlier"}, {"k": "v"}):
        stores.namespaces.create(stores.id, levels("b.c"), properties, AUTHOR)
        stores.namespaces.drop(stores.id, levels("b.c"), AUTHOR, recovery=WEEK)
    stores.namespaces.drop(stores.id, levels("b"), AUTHOR)

    dropped.undrop(entry, name("b.c.t"), LATER, with_namespaces=True)

    assert stores.namespaces.find(stores.id, levels("b")) == {}
    assert stores.namespaces.find(stores.id, levels("b.c")) == {"k": "v"}
    assert stores.there("b.c.t").id == entry.pointer.id if entry.pointer else False


def test_table_whose_uuid_is_there_again_stays_away(stores: Stores, dropped: DroppedThings) -> None:
    stores.add("a.t", uuid="u")
    entry = drop(stores, "a.t")
    stores.add("a.again", uuid="u")

    with pytest.raises(FilesInUse, match=r"a\.again"):
        dropped.undrop(entry, name("a.t"), LATER)


@pytest.mark.parametrize("round_number", range(4))
def test_of_tables_with_one_uuid_one_comes_back(
    stores: Stores, dropped: DroppedThings, round_number: int
) -> None:
    entries = []
    for number in range(8):
        stores.add(f"a.t{number}", uuid=f"u{round_number}")
        entries.append(drop(stores, f"a.t{number}"))

    outcomes = run_together(
        [partial(dropped.undrop, entry, name(f"a.{entry.name}"), LATER) for entry in entries]
    )

    assert kinds(outcomes) == {"Pointer": 1, "FilesInUse": 7}


def test_namespace_comes_back_with_its_properties(stores: Stores, dropped: DroppedThings) -> None:
    stores.namespaces.create(stores.id, levels("n"), {"of": "all"}, AUTHOR)
    stores.namespaces.create(stores.id, levels("n.m"), {"owner": "anna"}, AUTHOR)
    stores.namespaces.drop(stores.id, levels("n.m"), AUTHOR, recovery=WEEK)
    stores.namespaces.drop(stores.id, levels("n"), AUTHOR, recovery=WEEK)
    outer, inner = dropped.list(stores.id, NOW_MS)
    assert (outer.namespace, inner.namespace) == (levels("n"), levels("n.m"))

    dropped.undrop_namespace(inner, inner.namespace, LATER)

    assert stores.namespaces.find(stores.id, levels("n.m")) == {"owner": "anna"}
    assert stores.namespaces.find(stores.id, levels("n")) == {"of": "all"}
    with pytest.raises(NamespaceExists):
        dropped.undrop_namespace(outer, outer.namespace, LATER)
    assert dropped.list(stores.id, NOW_MS) == [outer]


def test_files_of_what_can_come_back_are_claimed(stores: Stores, dropped: DroppedThings) -> None:
    creation = replace(stores.creation("a.t", uuid="u"), places=frozenset({"file:///lake/a/t/"}))
    creation = replace(creation, foreign=frozenset({ANYWHERE}))
    stores.pointers.check_and_put([creation], AUTHOR)
    there = stores.there("a.t")
    entry = drop(stores, "a.t")

    def is_claimed() -> tuple[object, ...]:
        claims = stores.pointers.claims([there.metadata_location], ["file:///lake/a/t/"])
        readers = ForeignPlaces(stores.database).readers(["file:///lake/b/"], None)
        unknown = ForeignPlaces(stores.database).unknown(0, 10)
        return (
            bool(claims.current),
            bool(claims.places),
            stores.pointers.may_share_files(TableUuid("u")),
            [reader.pointer.id for reader in readers] == [there.id],
            [reader.pointer.id for reader in unknown] == [there.id],
            stores.pointers.find_locked(there.id) == there,
        )

    OldRows(stores.database).delete(1)
    assert is_claimed() == (True,) * 6
    assert stores.pointers.history(there.id), "its history is needed when it comes back"

    dropped.purge(entry, LATER, deletion=False)

    assert is_claimed() == (False,) * 6


def test_of_many_that_want_it_one_gets_it(stores: Stores, dropped: DroppedThings) -> None:
    stores.add("a.t")
    entry = drop(stores, "a.t", recovery=Recovery(WEEK_MS, purge=True))

    def undrop(number: int) -> Pointer:
        return dropped.undrop(entry, name(f"a.t{number}"), LATER)

    def purge() -> str:
        dropped.purge(entry, LATER, deletion=True)
        return "purged"

    outcomes = run_together([*(partial(undrop, n) for n in range(6)), *([purge] * 6)])

    counted = kinds(outcomes)
    assert counted["DroppedMeanwhile"] == 11
    is_back = counted["Pointer"] == 1
    assert len(stores.pointers.list_names(stores.id, levels("a"), TABLE)) == int(is_back)
    assert stores.file_deletions.counts() == ({} if is_back else {"queued": 1})


@contextmanager
def after_next_select(stores: Stores, deed: Callable[[], object]) -> Iterator[None]:
    """Do something once, between the next statement that reads and the one after it."""
    engines = {stores.database._write_engine, stores.database._read_engine}
    waiting = [deed]

    def act(_connection: object, _cursor: object, sql: str, *_: object) -> None:
        if waiting and sql.startswith("SELECT"):
            waiting.pop()()

    for engine in engines:
        event.listen(engine, "after_cursor_execute", act)
    yield
    for engine in engines:
        event.remove(engine, "after_cursor_execute", act)


def test_a_table_that_comes_back_meanwhile_is_found_by_those_who_delete_files_that_it_names(
    stores: Stores, dropped: DroppedThings
) -> None:
    there = stores.add("a.t")
    move = Advance(there, Location("1.json"), there.uuid, foreign=frozenset({"s3://b/other/"}))
    stores.pointers.check_and_put([move], AUTHOR)
    entry = drop(stores, "a.t")

    with after_next_select(stores, lambda: dropped.undrop(entry, name("a.t"), LATER)):
        found = ForeignPlaces(stores.database).readers(["s3://b/other/"], None)

    assert [reader.pointer.id for reader in found] == [there.id]
    assert stores.there("a.t").id == there.id


def test_a_table_that_comes_back_meanwhile_is_found_by_its_id(stores: Stores, dropped: DroppedThings) -> None:
    if stores.database.dialect_name == "sqlite":
        return  # There one transaction writes at a time, and this look is one.
    there = stores.add("a.t")
    entry = drop(stores, "a.t")

    with after_next_select(stores, lambda: dropped.undrop(entry, name("a.t"), LATER)):
        found = stores.pointers.find_locked(there.id)

    assert found == there


def test_what_another_database_knew_to_be_dropped_can_come_back(
    stores: Stores, dropped: DroppedThings
) -> None:
    stores.add("a.before")
    lost = Pointer(0, stores.id, TABLE, name("a.t"), TableUuid("u"), Location("9.json"), 77)
    entry = Dropped(
        0, stores.id, "table", levels("a"), "t", lost, {}, 1, 2, NOW_MS + WEEK_MS, "anna", "r", purge=True
    )
    of_namespace = replace(entry, kind="namespace", namespace=levels("b"), name=None, pointer=None)
    of_namespace = replace(of_namespace, properties={"owner": "anna"}, purge=False)

    assert [dropped.remember(each, {"file/lake/t/"}) for each in (entry, of_namespace)] == [True, True]
    assert [dropped.remember(each) for each in (entry, of_namespace)] == [False, False]

    noted, table = dropped.list(stores.id, NOW_MS)
    assert replace(noted, id=0) == of_namespace
    assert table.pointer is not None
    assert replace(table, id=0, pointer=lost) == entry
    foreign = ForeignPlaces(stores.database)
    assert [reader.pointer for reader in foreign.unknown(0, 9)] == [table.pointer]
    assert foreign.own_places(table.pointer.id) == {"file/lake/t/"}
    after = stores.add("a.after")
    assert dropped.undrop(table, name("a.t"), LATER) == stores.there("a.t") == table.pointer
    assert len({stores.there("a.before").id, table.pointer.id, after.id, stores.add("a.last").id}) == 4
    assert dropped.remember(replace(entry, dropped_ms=3)) is False  # It is there.


def test_first_id_of_all_is_that_of_something_dropped(stores: Stores, dropped: DroppedThings) -> None:
    lost = Pointer(0, stores.id, VIEW, name("a.v"), TableUuid("u"), Location("9.json"), 77)
    dropped.remember(
        Dropped(
            0, stores.id, "view", levels("a"), "v", lost, {}, 1, 2, NOW_MS + WEEK_MS, "a", "r", purge=False
        )
    )

    (entry,) = dropped.list(stores.id, NOW_MS)
    there = stores.add("a.t")

    assert entry.pointer is not None
    assert there.id != dropped.undrop(entry, name("a.v"), LATER).id == entry.pointer.id
