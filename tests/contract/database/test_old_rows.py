"""Old rows go, and what somebody may still ask for stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Column, Table, event, func, insert, select, update

from app.database.connections.database import Database
from app.database.deletions import old_rows
from app.database.deletions.old_rows import KEPT_EVENTS, OldRows
from app.database.pointers.moves import Advance
from app.database.pointers.pointer import PointerKind
from app.database.pointers.recoverable import PURGE_NOW
from app.database.schema.rows import file_deletions, pointer_history, table_places
from app.database.statements import batches
from app.database.statements.batches import BATCH
from app.engine.model.ids import Location, TableUuid
from app.errors import DatabaseUnavailable
from tests.contract.database.stores import AUTHOR, Stores, name
from tests.contract.database.test_plans import asked_in

DAY_MS = 24 * 3_600_000


def count(stores: Stores, rows: Table) -> int:
    query = select(func.count()).select_from(rows)
    return stores.database.read(lambda connection: int(connection.scalars(query).one()))


@pytest.fixture
def old(stores: Stores) -> Stores:
    """A table with many old events, and one that is gone."""
    stores.add_namespace("a")
    stores.add("a.t", uuid="u")
    for number in range(30):
        stores.advance(stores.there("a.t"), f"{number}.json")
    stores.add("a.gone", uuid="g")
    stores.pointers.drop(stores.id, name("a.gone"), PointerKind.TABLE, AUTHOR)
    return stores


def test_old_events_go_but_the_newest_of_each_table_that_is_there(old: Stores) -> None:
    newest = old.pointers.history(old.there("a.t").id, limit=KEPT_EVENTS)

    assert OldRows(old.database).delete(DAY_MS) == 31 - KEPT_EVENTS + 2 + 1

    assert old.pointers.history(old.there("a.t").id) == newest
    assert count(old, pointer_history) == KEPT_EVENTS
    assert OldRows(old.database).delete(DAY_MS) == 0


def test_rows_that_cannot_be_deleted_keep_no_others(old: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    put = insert(table_places).values(pointer_id=4711, place="file:///gone/")
    old.database.write(lambda connection: connection.execute(put))
    delete, keys = batches.delete_in_stretches, list[object]()

    def too_slow_for_events(database: Database, key: Column[Any], *conditions: Any, **more: Any) -> int:
        keys.append(key)
        if key is pointer_history.c.at_ms:
            raise DatabaseUnavailable("the statement took too long")
        return delete(database, key, *conditions, **more)

    monkeypatch.setattr(old_rows, "delete_in_stretches", too_slow_for_events)
    with pytest.raises(DatabaseUnavailable, match="took too long"):
        OldRows(old.database).delete(DAY_MS)

    assert len(keys) > 1
    place = select(func.count()).where(table_places.c.pointer_id == 4711)
    assert old.database.read(lambda connection: connection.scalars(place).one()) == 0


def test_a_purge_is_known_as_long_as_events_of_its_table_are(
    old: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    old.add("a.purged", uuid="p")
    old.pointers.drop(old.id, name("a.purged"), PointerKind.TABLE, AUTHOR, recovery=PURGE_NOW)
    entry = old.file_deletions.lease(60_000)
    assert entry is not None
    old.file_deletions.finish(entry, "done")
    long_ago = update(file_deletions).values(finished_ms=1)
    old.database.write(lambda connection: connection.execute(long_ago))
    delete = batches.delete_in_stretches

    def too_slow_for_events(database: Database, key: Column[Any], *conditions: Any, **more: Any) -> int:
        if key is pointer_history.c.at_ms:
            raise DatabaseUnavailable("the statement took too long")
        return delete(database, key, *conditions, **more)

    with monkeypatch.context() as patch:
        patch.setattr(old_rows, "delete_in_stretches", too_slow_for_events)
        with pytest.raises(DatabaseUnavailable):
            OldRows(old.database).delete(DAY_MS)
    assert count(old, file_deletions) == 1

    OldRows(old.database).delete(DAY_MS)
    assert count(old, file_deletions) == 0


@pytest.mark.parametrize("stretch", [1, 3, 40])
def test_old_events_are_looked_through_stretch_by_stretch(
    old: Stores, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one statement would read all that stays, and in a large catalog never come to its end."""
    monkeypatch.setattr(batches, "STRETCH", stretch)
    many = update(pointer_history).values(at_ms=pointer_history.c.at_ms + pointer_history.c.sequence)
    old.database.write(lambda connection: connection.execute(many))
    newest = old.pointers.history(old.there("a.t").id, limit=KEPT_EVENTS)

    assert OldRows(old.database).delete(DAY_MS) == 31 - KEPT_EVENTS + 2 + 1
    assert old.pointers.history(old.there("a.t").id) == newest

    asked = asked_in(old, lambda: OldRows(old.database).delete(DAY_MS))
    of_events = [sql for sql, _ in asked if sql.startswith("SELECT pointer_history.at_ms")]
    assert len(of_events) == 2 * (KEPT_EVENTS // stretch + 1), "where each stretch ends, and what goes of it"


def test_young_events_stay(old: Stores) -> None:
    before = count(old, pointer_history)

    OldRows(old.database).delete(100_000 * DAY_MS)

    assert count(old, pointer_history) == before


def test_events_of_a_table_that_ever_had_no_uuid_stay(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.pointers.check_and_put([stores.creation("a.t")], AUTHOR)
    nameless = Advance(stores.there("a.t"), Location("1.json"), TableUuid(""))
    stores.pointers.check_and_put([nameless], AUTHOR)
    stores.pointers.check_and_put([Advance(stores.there("a.t"), Location("2.json"), TableUuid("u"))], AUTHOR)
    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR)

    OldRows(stores.database).delete(DAY_MS)

    assert stores.pointers.may_share_files(TableUuid("u"))


def test_finished_deletions_go_unless_the_table_still_has_one_in_the_queue(stores: Stores) -> None:
    stores.add_namespace("a")
    for each in ("a.t", "a.u"):
        stores.add(each, uuid=each)
        stores.expire(each, f"{each}/1.json", None)
    stores.expire("a.t", "2.json", 0)
    old = update(file_deletions).values(finished_ms=file_deletions.c.finished_ms - 2 * DAY_MS)
    stores.database.write(lambda connection: connection.execute(old))

    OldRows(stores.database).delete(DAY_MS)

    assert stores.file_deletions.counts() == {"queued": 1, "done": 1}
    assert stores.file_deletions.find_expired(TableUuid("a.u"), Location("a.u/1.json")) is None


def test_places_stay_as_long_as_their_pointer_or_its_purge(stores: Stores) -> None:
    stores.add_namespace("a")
    for each in ("a.t", "a.u"):
        creation = replace(stores.creation(each), places=frozenset([f"s3://b/{each}/"]))
        stores.pointers.check_and_put([creation], AUTHOR)
    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR, recovery=PURGE_NOW)
    OldRows(stores.database).delete(DAY_MS)
    assert count(stores, table_places) == 2
    entry = stores.file_deletions.lease(1_000)
    assert entry is not None
    stores.file_deletions.finish(entry, "done")

    OldRows(stores.database).delete(DAY_MS)

    places = stores.database.read(lambda connection: list(connection.scalars(select(table_places.c.place))))
    assert places == ["s3://b/a.u/"]


def test_places_of_tables_that_are_gone_go_in_small_transactions(stores: Stores) -> None:
    stores.add_namespace("a")
    stays = stores.add("a.t")
    gone = [{"pointer_id": stays.id + 1 + n, "place": f"s3://b/{n}/"} for n in range(2 * BATCH + 1)]
    kept = {"pointer_id": stays.id, "place": "s3://b/t/"}
    stores.database.write(lambda connection: connection.execute(insert(table_places), [kept, *gone]))
    numbers: list[int] = []

    def note(_connection: object, cursor: Any, sql: str, *_rest: object) -> None:
        if sql.startswith("DELETE"):
            numbers.append(cursor.rowcount)

    with listening(stores, "after_cursor_execute", note):
        assert OldRows(stores.database).delete(DAY_MS) == len(gone)

    assert numbers == [BATCH, BATCH, 1]
    assert count(stores, table_places) == 1


@contextmanager
def listening(stores: Stores, to: str, listener: Callable[..., None]) -> Iterator[None]:
    engine = stores.database._write_engine
    event.listen(engine, to, listener)
    yield
    event.remove(engine, to, listener)
