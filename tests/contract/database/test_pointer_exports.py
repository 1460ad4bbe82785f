"""Turns of exports, and what the history says of pointers that went back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import update

from app.database import pointer_exports
from app.database.pointer_exports import PointerExports
from app.database.pointers.moves import Advance
from app.database.pointers.pointer import PointerKind
from app.database.schema.rows import pointer_exports as rows
from app.engine.model.ids import Location, TableUuid
from tests.contract.database.races import run_together
from tests.contract.database.stores import AUTHOR, Stores, levels, name

HOUR_MS = 3_600_000


def due(stores: Stores) -> PointerExports:
    """Return the turns of a warehouse whose first interval is over."""
    exports = PointerExports(stores.database)
    assert not exports.take_turn(stores.id, HOUR_MS)
    stores.database.write(lambda connection: connection.execute(update(rows).values(due_ms=1)))
    return exports


def test_the_first_turn_comes_after_an_interval(stores: Stores) -> None:
    exports = PointerExports(stores.database)

    assert [exports.take_turn(stores.id, HOUR_MS) for _ in range(3)] == [False, False, False]


def test_a_turn_is_taken_once_and_the_next_comes_after_the_interval(stores: Stores) -> None:
    exports = due(stores)

    assert [exports.take_turn(stores.id, HOUR_MS) for _ in range(3)] == [True, False, False]
    exports.end_turn(stores.id, HOUR_MS)
    assert not exports.take_turn(stores.id, HOUR_MS)


def test_a_turn_that_was_set_by_a_longer_interval_does_not_wait_for_it(stores: Stores) -> None:
    exports = PointerExports(stores.database)
    exports.take_turn(stores.id, 1_000 * HOUR_MS)

    assert exports.take_turn(stores.id, HOUR_MS)


def test_warehouses_whose_turn_is_not_due_are_known_at_once(stores: Stores) -> None:
    exports = PointerExports(stores.database)
    assert exports.waiting(HOUR_MS) == frozenset(), "its first turn is not noted yet"

    exports.take_turn(stores.id, HOUR_MS)

    assert exports.waiting(HOUR_MS) == {stores.id}
    assert due(stores).waiting(HOUR_MS) == frozenset()


def test_of_many_servers_one_takes_the_turn(stores: Stores) -> None:
    exports = due(stores)

    assert sorted(run_together([lambda: exports.take_turn(stores.id, HOUR_MS)] * 6)) == [False] * 5 + [True]


def test_only_what_went_back_has_places_left(stores: Stores) -> None:
    stores.add_namespace("a")
    for each in ("a.forward", "a.back"):
        stores.add(each)
    exports, found = PointerExports(stores.database), {}
    for each in ("a.forward", "a.back"):
        seen = stores.pointers.find(stores.id, name(each))
        assert seen is not None
        event = "committed" if each == "a.forward" else "replaced"
        moved = Advance(seen, Location("there"), TableUuid("u"), event)
        stores.pointers.check_and_put([moved], AUTHOR)
        found[each] = seen

    left = exports.places_left([pointer.id for pointer in found.values()])

    assert left == {found["a.back"].id: frozenset({found["a.back"].metadata_location, "there"})}


def test_what_a_pointer_named_until_it_went_back_is_found_page_by_page(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pointer_exports, "EVENTS_AT_ONCE", 2)
    stores.add_namespace("a")
    stores.add("a.t")
    for number in range(4):
        stores.advance(stores.there("a.t"), f"{number}.json")
    seen = stores.there("a.t")
    back = Advance(seen, Location("back.json"), seen.uuid, "replaced")
    stores.pointers.check_and_put([back], AUTHOR)
    for number in range(4, 8):
        stores.advance(stores.there("a.t"), f"{number}.json")

    left = PointerExports(stores.database).places_left([seen.id])

    named = {"a.t/0.json", *(f"{number}.json" for number in range(4)), "back.json"}
    assert left == {seen.id: named}, "what came later was built on the one that it went back to"


@pytest.mark.parametrize(("registered_at", "has_left"), [("1.json", True), ("3.json", False)])
def test_what_is_registered_has_left_what_an_earlier_pointer_named_after_it(
    stores: Stores, registered_at: str, has_left: bool
) -> None:
    stores.add_namespace("a")
    uuid = stores.add("a.t").uuid
    for number in range(4):
        stores.advance(stores.there("a.t"), f"{number}.json")
    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR)
    anew = replace(
        stores.creation("a.u", uuid=uuid),
        location=Location(registered_at),
        event="registered",
        registration=1,
    )
    stores.pointers.check_and_put([anew], AUTHOR)
    stores.advance(stores.there("a.u"), "later.json")

    left = PointerExports(stores.database).places_left([stores.there("a.u").id])

    named = frozenset({"a.t/0.json", *(f"{number}.json" for number in range(4))})
    assert left == ({stores.there("a.u").id: named} if has_left else {})


def test_what_is_registered_has_left_what_a_pointer_beside_it_names(stores: Stores) -> None:
    stores.add_namespace("a")
    uuid = stores.add("a.t").uuid
    stores.pointers.rename(stores.id, PointerKind.TABLE, name("a.t"), name("a.s"), AUTHOR)
    there = stores.there("a.s").metadata_location
    anew = replace(stores.creation("a.u", uuid=uuid), location=there, event="registered", registration=1)
    stores.pointers.check_and_put([anew], AUTHOR)
    stores.advance(stores.there("a.s"), "beside.json")
    stores.pointers.drop(stores.id, name("a.s"), PointerKind.TABLE, AUTHOR)
    again = replace(anew, identifier=name("a.v"), location=Location("beside.json"))
    stores.pointers.check_and_put([again], AUTHOR)
    stores.advance(stores.there("a.v"), "later.json")

    left = PointerExports(stores.database).places_left([stores.there("a.u").id])

    assert left == {stores.there("a.u").id: {there, "beside.json", "later.json"}}


def test_drop_times_are_those_of_the_warehouse(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.add("a.t")
    exports = PointerExports(stores.database)
    assert exports.drop_times(stores.id) == {}
    dropped = stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR)
    assert dropped is not None

    assert exports.drop_times(stores.id) == {dropped.uuid: AUTHOR.at_ms}
    assert exports.drop_times(stores.id + 1) == {}
    assert exports.last_sequence() == 2


def test_all_namespaces_come_with_their_properties_parents_first(stores: Stores) -> None:
    for each, properties in (("b.c", {"x": "1"}), ("a", {}), ("b0", {"y": "2"})):
        stores.namespaces.create(stores.id, levels(each), properties, AUTHOR)

    first = stores.namespaces.list_all(stores.id, None, 2)
    rest = stores.namespaces.list_all(stores.id, first[-1][0], 10)

    assert first == [(levels("a"), {}), (levels("b"), {})]
    assert rest == [(levels("b.c"), {"x": "1"}), (levels("b0"), {"y": "2"})]
