"""Which tables have a uuid, or folders in or around others, on each database."""

from __future__ import annotations

from app.database.deletions.neighbours import Neighbours
from app.database.pointers.moves import Creation
from app.database.pointers.pointer import PointerKind
from app.database.pointers.pointers import PutOutcome
from app.database.pointers.recoverable import Recovery
from app.engine.model.ids import Location, TableUuid
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, name


def add(stores: Stores, table: str, uuid: str, *places: str) -> None:
    creation = Creation(
        stores.warehouse.id,
        PointerKind.TABLE,
        name(table),
        TableUuid(uuid),
        Location(f"{table}/1.json"),
        places=frozenset(places),
    )
    assert stores.pointers.check_and_put([creation], AUTHOR) is PutOutcome.ADVANCED


def test_tables_are_found_by_uuid_and_by_folders_that_overlap(stores: Stores) -> None:
    stores.add_namespace("a")
    add(stores, "a.one", "u", "s3://b/one/")
    add(stores, "a.inner", "v", "s3://b/one/inner/", "s3://b/other/")
    add(stores, "a.beside", "u", "s3://b/one-more/")
    neighbours = Neighbours(stores.database)

    found = neighbours.with_uuid(TableUuid("u"), 10)
    assert [str(other.identifier) for other in found] == ["a.one", "a.beside"]
    assert [str(other.identifier) for other in neighbours.with_uuid(TableUuid("u"), 1)] == ["a.one"]
    assert str(found[0]) == f"table a.one of warehouse {stores.warehouse.name}"

    recovery = Recovery(100)
    stores.pointers.drop(stores.id, name("a.beside"), PointerKind.TABLE, AUTHOR, recovery=recovery)
    assert [str(other.identifier) for other in neighbours.with_uuid(TableUuid("u"), 10)] == ["a.one"]
    assert [str(other) for other in neighbours.dropped_with_uuid(TableUuid("u"), NOW_MS, 10)] == [
        f"table a.beside of warehouse {stores.warehouse.name}"
    ]
    assert neighbours.dropped_with_uuid(TableUuid("u"), AUTHOR.at_ms + 100, 10) == []

    def overlapping(place: str, besides: int | None = None) -> list[tuple[str, str]]:
        pieces = place.removeprefix("s3://").rstrip("/").split("/")
        around = ["s3://" + "/".join(pieces[: end + 1]) + "/" for end in range(len(pieces))]
        found = neighbours.in_or_around([place], around, besides, 10)
        return [(str(other.identifier), other.place) for other in found]

    assert overlapping("s3://b/one/") == [("a.one", "s3://b/one/"), ("a.inner", "s3://b/one/inner/")]
    assert overlapping("s3://b/one/inner/deep/") == [
        ("a.one", "s3://b/one/"),
        ("a.inner", "s3://b/one/inner/"),
    ]
    assert overlapping("s3://b/one-/") == []
    own = neighbours.with_uuid(TableUuid("v"), 1)[0].pointer_id
    assert overlapping("s3://b/one/inner/", own) == [("a.one", "s3://b/one/")]
