"""Names, pointers and namespaces as they were at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.database.deletions.old_rows import OldRows
from app.database.dropped import DroppedThings
from app.database.past import Past
from app.database.pointers.history import Author
from app.database.pointers.moves import Advance
from app.database.pointers.pointer import PointerKind
from app.database.pointers.recoverable import Recovery
from app.engine.model.ids import Location
from app.errors import NoSuchNamespace
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, levels, name

TABLE, VIEW = PointerKind.TABLE, PointerKind.VIEW


def at(seconds: int) -> Author:
    return replace(AUTHOR, at_ms=NOW_MS + seconds * 1000)


def ms(seconds: int) -> int:
    return NOW_MS + seconds * 1000


@pytest.fixture
def past(stores: Stores) -> Past:
    stores.add_namespace("a")
    stores.namespaces.create(stores.id, levels("b"), {"k": "1"}, at(0))
    return Past(stores.database)


def location(past: Past, stores: Stores, dotted: str, seconds: int) -> str | None:
    found = past.find(stores.id, name(dotted), ms(seconds))
    return None if found is None else found.location


def test_table_is_where_it_was(stores: Stores, past: Past) -> None:
    stores.pointers.check_and_put([stores.creation("a.t")], at(10))
    for second in (20, 30):
        move = Advance(stores.there("a.t"), Location(f"{second}.json"), stores.there("a.t").uuid)
        stores.pointers.check_and_put([move], at(second))

    assert [location(past, stores, "a.t", second) for second in (9, 10, 19, 20, 25, 30, 99)] == [
        None,
        "a.t/0.json",
        "a.t/0.json",
        "20.json",
        "20.json",
        "30.json",
        "30.json",
    ]
    pointer_id = stores.there("a.t").id
    assert [event.location for event in past.history(pointer_id, ms(25))] == ["20.json", "a.t/0.json"]
    assert past.replaced(pointer_id, ms(10), ms(20)) == ["a.t/0.json"]


def test_last_event_is_that_of_the_last_one_with_the_name(stores: Stores, past: Past) -> None:
    def last(dotted: str) -> tuple[str, str | None] | None:
        event = past.last_event(stores.id, name(dotted))
        return None if event is None else (event.event, event.previous_location)

    stores.pointers.check_and_put([stores.creation("a.t")], at(10))
    stores.pointers.drop(stores.id, name("a.t"), TABLE, at(20), event="unregistered")
    assert (last("a.t"), last("b.t"), last("a.u")) == (("unregistered", "a.t/0.json"), None, None)

    stores.pointers.check_and_put([stores.creation("a.t", VIEW, "another")], at(30))
    assert last("a.t") == ("created", None)
    stores.pointers.rename(stores.id, VIEW, name("a.t"), name("a.u"), at(40))
    assert last("a.t") == last("a.u")


def test_names_follow_renames_drops_and_returns(stores: Stores, past: Past) -> None:
    stores.pointers.check_and_put([stores.creation("a.t")], at(10))
    stores.pointers.rename(stores.id, TABLE, name("a.t"), name("b.u"), at(20))
    stores.pointers.drop(stores.id, name("b.u"), TABLE, at(30), recovery=Recovery(10_000_000))
    stores.pointers.check_and_put([stores.creation("a.t", VIEW, "another")], at(35))
    dropped = DroppedThings(stores.database)
    dropped.undrop(dropped.list(stores.id, ms(40))[0], name("b.v"), at(40))

    def names(second: int) -> dict[str, tuple[str, ...]]:
        return {
            f"{namespace}.{kind}": past.list_names(stores.id, levels(namespace), kind, ms(second))
            for namespace in ("a", "b")
            for kind in (TABLE, VIEW)
        }

    nothing: dict[str, tuple[str, ...]] = {"a.table": (), "a.view": (), "b.table": (), "b.view": ()}
    assert names(5) == nothing
    assert names(10) == {**nothing, "a.table": ("t",)}
    assert names(20) == {**nothing, "b.table": ("u",)}
    assert names(30) == nothing
    assert names(35) == {**nothing, "a.view": ("t",)}
    assert names(40) == {**nothing, "a.view": ("t",), "b.table": ("v",)}
    assert location(past, stores, "b.u", 29) == location(past, stores, "b.v", 40) == "a.t/0.json"


def test_pages_of_names(stores: Stores, past: Past) -> None:
    for letter in "cab":
        stores.pointers.check_and_put([stores.creation(f"a.{letter}")], at(10))

    assert past.list_names(stores.id, levels("a"), TABLE, ms(10), None, 2) == ("a", "b")
    assert past.list_names(stores.id, levels("a"), TABLE, ms(10), "b", 2) == ("c",)


def test_namespaces_are_as_they_were(stores: Stores, past: Past) -> None:
    stores.namespaces.create(stores.id, levels("n.m"), {}, at(10))
    stores.namespaces.update_properties(stores.id, levels("b"), ["k"], {"l": "2"}, at(20))
    stores.namespaces.drop(stores.id, levels("n.m"), at(30))

    assert past.list_children(stores.id, None, ms(9)) == ("a", "b")
    assert past.list_children(stores.id, None, ms(10)) == ("a", "b", "n")
    assert past.list_children(stores.id, levels("n"), ms(29)) == ("m",)
    assert past.list_children(stores.id, levels("n"), ms(30)) == ()
    with pytest.raises(NoSuchNamespace):
        past.list_children(stores.id, levels("n"), ms(9))
    with pytest.raises(NoSuchNamespace):
        past.list_names(stores.id, levels("n.m"), TABLE, ms(30))
    assert past.find_namespace(stores.id, levels("b"), ms(19)) == {"k": "1"}
    assert past.find_namespace(stores.id, levels("b"), ms(20)) == {"l": "2"}
    assert past.namespaces_between(stores.id, ms(9), ms(20)) == [levels("b"), levels("n"), levels("n.m")]


def test_transaction_is_seen_whole_however_clocks_differ(stores: Stores, past: Past) -> None:
    """Server one is ahead by a minute; server two commits to both tables, then one of them alone."""
    for dotted in ("a.t", "a.u"):
        stores.pointers.check_and_put([stores.creation(dotted)], at(0))

    def move(dotted: str, place: str) -> Advance:
        return Advance(stores.there(dotted), Location(place), stores.there(dotted).uuid)

    stores.pointers.check_and_put([move("a.t", "ahead.json")], at(60))
    stores.pointers.check_and_put([move("a.t", "both-t.json"), move("a.u", "both-u.json")], at(10))
    stores.pointers.check_and_put([move("a.t", "late.json")], at(11))

    seen = {
        second: (location(past, stores, "a.t", second), location(past, stores, "a.u", second))
        for second in range(70)
    }
    has_both = {"both-t.json", "late.json"}
    for second, (first, other) in seen.items():
        assert (first in has_both) == (other == "both-u.json"), f"half of a transaction at {second} s"
    assert seen[59] == ("a.t/0.json", "a.u/0.json")
    assert seen[69] == ("late.json", "both-u.json")


def test_what_the_kept_time_needs_outlives_older_events(stores: Stores, past: Past) -> None:
    hour_ms = 3_600_000
    now_ms = stores.file_deletions.now_ms()
    old, young = replace(AUTHOR, at_ms=now_ms - 3 * hour_ms), replace(AUTHOR, at_ms=now_ms - hour_ms)
    for dotted in ("a.t", "a.gone"):
        stores.pointers.check_and_put([stores.creation(dotted)], old)
        for number in range(20):
            there = stores.there(dotted)
            stores.pointers.check_and_put([Advance(there, Location(f"{number}.json"), there.uuid)], old)
    for number in range(20, 40):
        there = stores.there("a.t")
        stores.pointers.check_and_put([Advance(there, Location(f"{number}.json"), there.uuid)], young)
    stores.pointers.drop(stores.id, name("a.gone"), TABLE, young)
    before_ms = now_ms - 2 * hour_ms + 60_000

    assert OldRows(stores.database).delete(2 * hour_ms) > 0

    for dotted in ("a.t", "a.gone"):
        found = past.find(stores.id, name(dotted), before_ms)
        assert found is not None
        assert found.location == "19.json"


def test_what_moved_between_two_times(stores: Stores, past: Past) -> None:
    for second, dotted in ((10, "a.t"), (20, "a.u"), (30, "a.v")):
        stores.pointers.check_and_put([stores.creation(dotted)], at(second))
    ids = [stores.there(dotted).id for dotted in ("a.t", "a.u", "a.v")]

    assert past.moved_between(stores.id, ms(10), ms(30), 0, 10) == ids[1:]
    assert past.moved_between(stores.id, ms(0), ms(30), 0, 2) == ids[:2]
    assert past.moved_between(stores.id, ms(0), ms(30), ids[1], 2) == ids[2:]
    assert sorted(past.states(ids, ms(20))) == ids[:2]
