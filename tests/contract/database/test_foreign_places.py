"""Where tables name files of others: noted with their moves, found by folder, replaced by who has looked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.database.deletions.file_deletions import Deletion
from app.database.deletions.foreign_places import ForeignPlaces
from app.database.deletions.old_rows import OldRows
from app.database.pointers.foreign_files import ANYWHERE, MOST_PLACES, UNSEEN
from app.database.pointers.moves import Advance
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.pointers.pointers import PutOutcome
from app.database.pointers.recoverable import PURGE_NOW
from app.engine.model.ids import Location
from app.errors import FilesBeingDeleted
from tests.contract.database.stores import AUTHOR, Stores, name


@pytest.fixture
def places(stores: Stores) -> ForeignPlaces:
    stores.add_namespace("a")
    return ForeignPlaces(stores.database)


def move(stores: Stores, seen: Pointer, location: str, *folders: str) -> PutOutcome:
    moved = Advance(seen, Location(location), seen.uuid, foreign=frozenset(folders))
    return stores.pointers.check_and_put([moved], AUTHOR)


def readers(places: ForeignPlaces, *folders: str, besides: int | None = None) -> list[tuple[str, bool]]:
    found = places.readers(folders, besides)
    return sorted((str(item.pointer.identifier), item.is_known) for item in found)


def test_tables_are_found_by_the_folders_that_they_name_files_in(
    stores: Stores, places: ForeignPlaces
) -> None:
    reader, unknown, other = (stores.add(f"a.{each}") for each in ("reader", "unknown", "other"))
    move(stores, reader, "r/1.json", "s3://b/t/data/", "s3://b/u/")
    move(stores, unknown, "u/1.json", ANYWHERE, "s3://b/t/data/")
    move(stores, other, "o/1.json")

    assert readers(places, "s3://b/", "s3://b/t/", "s3://b/t/data/") == [
        ("a.reader", True),
        ("a.unknown", True),
    ]
    assert readers(places, "s3://b/v/") == [("a.unknown", False)]
    assert readers(places, "s3://b/u/", besides=unknown.id) == [("a.reader", True)]
    assert readers(places, "s3://b/v/", besides=unknown.id) == []
    found = places.readers(["s3://b/u/"], unknown.id)[0].pointer
    assert found == stores.there("a.reader")
    assert [item.pointer.id for item in places.unknown(0, 10)] == [unknown.id]
    assert places.unknown(unknown.id, 10) == []


def test_a_new_pointer_notes_them_too(stores: Stores, places: ForeignPlaces) -> None:
    stores.pointers.check_and_put([replace(stores.creation("a.t"), foreign=frozenset([ANYWHERE]))], AUTHOR)

    assert readers(places) == [("a.t", False)]


def test_what_a_commit_notes_meanwhile_is_not_taken_out(stores: Stores, places: ForeignPlaces) -> None:
    pointer = stores.add("a.t")
    move(stores, pointer, "1.json", ANYWHERE, "s3://b/old/")
    seen = places.of_table(pointer.id)
    move(stores, stores.there("a.t"), "2.json", ANYWHERE)

    places.replace(pointer.id, seen, ["s3://b/found/"])

    assert set(places.of_table(pointer.id)) == {ANYWHERE, "s3://b/found/"}
    places.replace(pointer.id, places.of_table(pointer.id), [])
    assert places.of_table(pointer.id) == {}


def test_with_many_folders_a_table_counts_as_unknown(stores: Stores, places: ForeignPlaces) -> None:
    pointer = stores.add("a.t")
    move(stores, pointer, "1.json", *(f"s3://b/{number}/" for number in range(MOST_PLACES)))
    assert ANYWHERE not in places.of_table(pointer.id)

    move(stores, stores.there("a.t"), "2.json", "s3://b/one-more/")

    assert ANYWHERE in places.of_table(pointer.id)


def test_a_commit_that_lost_its_race_notes_nothing(stores: Stores, places: ForeignPlaces) -> None:
    pointer = stores.add("a.t")
    stores.advance(pointer, "1.json")

    assert move(stores, pointer, "2.json", "s3://b/t/") is PutOutcome.MOVED
    assert places.of_table(pointer.id) == {}


def leased_purge(stores: Stores) -> Deletion:
    """Drop a table in `s3://b/t/` with its files, and let a worker have the purge, which has not begun."""
    at_place = replace(stores.creation("a.t"), places=frozenset(["s3://b/t/"]))
    stores.pointers.check_and_put([at_place], AUTHOR)
    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR, recovery=PURGE_NOW)
    entry = stores.file_deletions.lease(60_000)
    assert entry is not None
    return entry


@pytest.mark.parametrize("folder", ["s3://b/t/data/", "s3://b/t/", "s3://b/"])
def test_files_that_are_being_deleted_are_not_taken_in(
    stores: Stores, places: ForeignPlaces, folder: str
) -> None:
    reader, entry = stores.add("a.reader"), leased_purge(stores)
    assert move(stores, reader, "1.json", folder) is PutOutcome.ADVANCED, "it has not begun"
    assert stores.file_deletions.begin(entry, None)

    with pytest.raises(FilesBeingDeleted, match=r"Cannot commit: files in .* by the purge of a\.t"):
        move(stores, stores.there("a.reader"), "2.json", folder)

    assert stores.there("a.reader").metadata_location == "1.json"
    elsewhere = move(stores, stores.there("a.reader"), "2.json", "s3://b/u/", ANYWHERE)
    assert elsewhere is PutOutcome.ADVANCED
    stores.file_deletions.postpone(entry, 60_000, "a store that does not answer")
    assert move(stores, stores.there("a.reader"), "3.json", folder) is PutOutcome.ADVANCED


def test_files_that_were_not_looked_at_wait_while_any_are_being_deleted(
    stores: Stores, places: ForeignPlaces
) -> None:
    reader, entry = stores.add("a.reader"), leased_purge(stores)
    assert not stores.file_deletions.are_at_work(reader.id)
    assert move(stores, reader, "1.json", UNSEEN) is PutOutcome.ADVANCED, "it has not begun"
    assert readers(places) == [("a.reader", False)]
    assert stores.file_deletions.begin(entry, None)

    assert stores.file_deletions.are_at_work(reader.id)
    assert not stores.file_deletions.are_at_work(entry.pointer_id), "a table's own do not count"
    assert move(stores, stores.there("a.reader"), "2.json", UNSEEN) is PutOutcome.MOVED
    assert stores.there("a.reader").metadata_location == "1.json"
    assert move(stores, stores.there("a.reader"), "2.json", ANYWHERE) is PutOutcome.ADVANCED
    stores.file_deletions.finish(entry, "done")
    assert move(stores, stores.there("a.reader"), "3.json", UNSEEN) is PutOutcome.ADVANCED


def test_rows_go_with_their_pointer(stores: Stores, places: ForeignPlaces) -> None:
    pointer, stays = stores.add("a.t"), stores.add("a.stays")
    move(stores, pointer, "1.json", "s3://b/t/")
    move(stores, stays, "2.json", "s3://b/t/")
    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR)

    assert readers(places, "s3://b/t/") == [("a.stays", True)]
    OldRows(stores.database).delete(1)
    assert places.of_table(pointer.id) == {}
    assert len(places.of_table(stays.id)) == 1


def test_the_places_of_a_table(stores: Stores, places: ForeignPlaces) -> None:
    at_place = replace(stores.creation("a.t"), places=frozenset(["s3://b/t/", "s3://b/more/"]))
    stores.pointers.check_and_put([at_place], AUTHOR)

    assert places.own_places(stores.there("a.t").id) == {"s3://b/t/", "s3://b/more/"}
