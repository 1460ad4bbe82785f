"""Pointers: found, moved by check-and-put, and never half moved."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from app.database.outcomes.idempotency_keys import RecordedOutcome
from app.database.outcomes.receipt import landed
from app.database.pointers import pointers
from app.database.pointers.lookups import MAX_KEYS
from app.database.pointers.moves import Advance, Creation, NameTaken, Unmoved
from app.database.pointers.pointer import PointerKind
from app.database.pointers.pointers import PutOutcome
from app.engine.model.ids import Location, TableUuid
from app.errors import IdempotencyKeyTaken, NoSuchNamespace
from tests.contract.database.companions import head
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, claim, levels, name


def test_created_pointer_is_found_by_name(stores: Stores) -> None:
    stores.add_namespace("sales.eu")

    created = stores.add("sales.eu.orders", uuid="u-1")

    assert created.warehouse_id == stores.id
    assert created.kind is PointerKind.TABLE
    assert created.identifier == name("sales.eu.orders")
    assert (created.uuid, created.metadata_location) == ("u-1", "sales.eu.orders/0.json")


@pytest.mark.parametrize(
    "dotted", ["sales.missing", "sales.eu.orders", "missing.orders", "sales", "Sales.orders"]
)
def test_other_names_find_nothing(stores: Stores, dotted: str) -> None:
    stores.add_namespace("sales")
    stores.add_namespace("sales.eu")
    stores.add("sales.orders")

    assert stores.pointers.find(stores.id, name(dotted)) is None


def test_another_warehouse_has_its_own_names(stores: Stores) -> None:
    other = stores.warehouses.create("other", "file:///other", created_ms=NOW_MS)
    stores.add_namespace("sales")
    stores.add("sales.orders")

    assert stores.pointers.find(other.id, name("sales.orders")) is None
    assert stores.pointers.find_many([(other.id, name("sales.orders"))]) == {}


@pytest.mark.parametrize(
    "odd",
    [
        "Ångström",
        "表",
        "🗼",
        "a b",
        "a/b",
        "a.b",
        "%41",
        "a'b",
        'a"b',
        "a\\b",
        "a%s",
        "a?b",
        "{a,b}",
        "null",
        "x" * 255,
        "🗼" * 255,
    ],
)
def test_any_name_comes_back_as_it_was(stores: Stores, odd: str) -> None:
    identifier = name("x.y")
    identifier = type(identifier)(levels("sales"), odd)
    stores.add_namespace("sales")
    creation = Creation(stores.id, PointerKind.VIEW, identifier, TableUuid("u"), Location("l"))

    assert stores.pointers.check_and_put([creation], AUTHOR) is PutOutcome.ADVANCED

    found = stores.pointers.find(stores.id, identifier)
    assert found is not None
    assert found.identifier.name == odd
    assert stores.pointers.find_many([(stores.id, identifier)]) == {(stores.id, identifier): found}
    assert stores.pointers.list_names(stores.id, levels("sales"), PointerKind.VIEW) == (odd,)
    assert stores.pointers.find_locked(found.id) == found


@pytest.mark.parametrize("number", [0, 1, 2, 3, 16, MAX_KEYS - 1, MAX_KEYS, MAX_KEYS + 1, 2 * MAX_KEYS + 5])
def test_many_names_are_found_at_once(stores: Stores, number: int) -> None:
    stores.add_namespace("a")
    stores.add_namespace("b.c")
    dotted = [f"{'a' if n % 2 else 'b.c'}.t{n}" for n in range(number)]
    stores.pointers.check_and_put([stores.creation(each) for each in dotted], AUTHOR)
    keys = [(stores.id, name(each)) for each in dotted]

    found = stores.pointers.find_many([*keys, (stores.id, name("a.missing"))])

    assert found == {key: stores.pointers.find(*key) for key in keys}


def test_a_name_asked_for_twice_is_found_once(stores: Stores) -> None:
    stores.add_namespace("a")
    orders = stores.add("a.orders")

    assert stores.pointers.find_many([(stores.id, name("a.orders"))] * 3) == {
        (stores.id, name("a.orders")): orders
    }


def test_advance_moves_the_pointer(stores: Stores) -> None:
    stores.add_namespace("a")
    seen = stores.add("a.t", uuid="u")

    outcome = stores.advance(seen, "1.json")

    assert outcome is PutOutcome.ADVANCED
    moved = stores.there("a.t")
    assert (moved.id, moved.uuid, moved.metadata_location) == (seen.id, "u", "1.json")


def test_advance_from_an_old_location_changes_nothing(stores: Stores) -> None:
    stores.add_namespace("a")
    seen = stores.add("a.t")
    stores.advance(seen, "1.json")

    outcome = stores.advance(seen, "2.json")

    assert outcome is PutOutcome.MOVED
    assert stores.there("a.t").metadata_location == "1.json"
    assert [event.location for event in stores.pointers.history(seen.id)] == ["1.json", "a.t/0.json"]


@pytest.mark.parametrize("goes_side_by_side", [False, True])
def test_one_that_was_registered_anew_where_it_is_does_not_move(
    stores: Stores, goes_side_by_side: bool
) -> None:
    stores.add_namespace("a")
    seen = stores.add("a.t")
    as_anothers = Advance(seen, seen.metadata_location, seen.uuid, "replaced", registration=-7)
    assert stores.pointers.check_and_put([as_anothers], AUTHOR) is PutOutcome.ADVANCED
    receipts = [landed(head(), NOW_MS, [], 1)] if goes_side_by_side else []
    late = Advance(seen, Location("1.json"), seen.uuid)

    assert stores.pointers.check_and_put([late], AUTHOR, receipts=receipts) is PutOutcome.MOVED
    assert stores.pointers.check_and_put([Unmoved(seen)], AUTHOR) is PutOutcome.MOVED

    now = stores.there("a.t")
    assert (now.metadata_location, now.registration) == (seen.metadata_location, -7)


def test_replacement_gives_the_row_another_uuid(stores: Stores) -> None:
    stores.add_namespace("a")
    seen = stores.add("a.t", uuid="old")

    change = Advance(seen, Location("other.json"), TableUuid("new"), event="replaced")

    assert stores.pointers.check_and_put([change], AUTHOR) is PutOutcome.ADVANCED
    replaced = stores.there("a.t")
    assert (replaced.id, replaced.uuid, replaced.metadata_location) == (seen.id, "new", "other.json")
    assert stores.pointers.history(seen.id)[0].event == "replaced"


def test_a_dropped_pointers_successor_is_not_advanced(stores: Stores) -> None:
    """Same name and same metadata file, but not the same pointer: ids are never given again."""
    stores.add_namespace("a")
    seen = stores.add("a.t")
    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR)
    again = stores.add("a.t")

    assert again.metadata_location == seen.metadata_location
    assert again.id > seen.id
    assert stores.advance(seen, "1.json") is PutOutcome.MOVED
    assert stores.there("a.t") == again


def test_many_changes_are_all_made(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.add_namespace("b")
    first, second = stores.add("a.one"), stores.add("b.two")
    changes: list[Advance | Creation] = [
        stores.creation("b.four"),
        Advance(second, Location("two/1.json"), second.uuid),
        stores.creation("a.three", PointerKind.VIEW),
        Advance(first, Location("one/1.json"), first.uuid),
    ]

    assert stores.pointers.check_and_put(changes, AUTHOR) is PutOutcome.ADVANCED

    assert stores.there("a.one").metadata_location == "one/1.json"
    assert stores.there("b.two").metadata_location == "two/1.json"
    assert stores.there("a.three").kind is PointerKind.VIEW
    assert stores.there("b.four").kind is PointerKind.TABLE


def test_of_many_changes_one_that_moved_undoes_all(stores: Stores) -> None:
    stores.add_namespace("a")
    pointers = [stores.add(f"a.t{n}") for n in range(3)]
    stores.advance(pointers[1], "moved.json")

    changes = [Advance(seen, Location("new.json"), seen.uuid) for seen in pointers]
    outcome = stores.pointers.check_and_put([*changes, stores.creation("a.new")], AUTHOR, claim())

    assert outcome is PutOutcome.MOVED
    locations = [stores.there(f"a.t{n}").metadata_location for n in range(3)]
    assert locations == ["a.t0/0.json", "moved.json", "a.t2/0.json"]
    assert stores.pointers.find(stores.id, name("a.new")) is None
    assert [len(stores.pointers.history(pointer.id)) for pointer in pointers] == [1, 2, 1]
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_a_pointer_that_must_not_move_is_seen_to_be_there(stores: Stores) -> None:
    stores.add_namespace("a")
    kept, seen = stores.add("a.kept"), stores.add("a.t")
    changes: list[Advance | Unmoved] = [Advance(seen, Location("1.json"), seen.uuid), Unmoved(kept)]

    assert stores.pointers.check_and_put(changes, AUTHOR) is PutOutcome.ADVANCED

    assert stores.there("a.kept") == kept
    assert stores.there("a.t").metadata_location == "1.json"
    assert len(stores.pointers.history(kept.id)) == 1


@pytest.mark.parametrize("fate", ["moved", "dropped"])
def test_a_pointer_that_moved_though_it_must_not_undoes_all(stores: Stores, fate: str) -> None:
    stores.add_namespace("a")
    kept, seen = stores.add("a.kept"), stores.add("a.t")
    if fate == "moved":
        stores.advance(kept, "1.json")
    else:
        stores.pointers.drop(stores.id, name("a.kept"), PointerKind.TABLE, AUTHOR)
    changes: list[Advance | Unmoved] = [Unmoved(kept), Advance(seen, Location("1.json"), seen.uuid)]

    assert stores.pointers.check_and_put(changes, AUTHOR, claim()) is PutOutcome.MOVED

    assert stores.there("a.t") == seen
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


@pytest.mark.parametrize("kinds", list(itertools.product(PointerKind, PointerKind)))
def test_a_taken_name_refuses_a_creation_and_undoes_all(
    stores: Stores, kinds: tuple[PointerKind, PointerKind]
) -> None:
    stores.add_namespace("a")
    other, there = stores.add("a.other"), stores.add("a.t", kinds[0])
    changes: list[Advance | Creation] = [
        Advance(other, Location("1.json"), other.uuid),
        stores.creation("a.t", kinds[1], "another"),
    ]

    with pytest.raises(NameTaken) as refusal:
        stores.pointers.check_and_put(changes, AUTHOR, claim())

    assert (refusal.value.kind, refusal.value.identifier) == (kinds[0], name("a.t"))
    assert (stores.there("a.t"), stores.there("a.other")) == (there, other)
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_a_missing_namespace_refuses_a_creation_and_undoes_all(stores: Stores) -> None:
    stores.add_namespace("a")
    other = stores.add("a.other")
    changes: list[Advance | Creation] = [
        Advance(other, Location("1.json"), other.uuid),
        stores.creation("a.b.t"),
    ]

    with pytest.raises(NoSuchNamespace, match=r"a\.b$"):
        stores.pointers.check_and_put(changes, AUTHOR)

    assert stores.there("a.other") == other


def test_no_changes_are_all_made(stores: Stores) -> None:
    assert stores.pointers.check_and_put([], AUTHOR, claim()) is PutOutcome.ADVANCED
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is not None


def test_claim_is_stored_with_the_change(stores: Stores) -> None:
    stores.add_namespace("a")

    stores.pointers.check_and_put([stores.creation("a.t")], AUTHOR, claim())

    found = stores.idempotency_keys.find("alice", "key-1", NOW_MS)
    assert found == RecordedOutcome("hash-1", 200, "what a success left", "")


def test_a_taken_claim_refuses_the_change(stores: Stores) -> None:
    stores.add_namespace("a")
    seen = stores.add("a.t")
    stores.idempotency_keys.record(claim(), 409, "refused")

    with pytest.raises(IdempotencyKeyTaken):
        stores.pointers.check_and_put([Advance(seen, Location("1.json"), seen.uuid)], AUTHOR, claim())

    assert stores.there("a.t") == seen


def test_locked_pointer_is_found_by_id_wherever_it_went(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.add_namespace("b.c")
    seen = stores.add("a.t")
    stores.pointers.rename(stores.id, PointerKind.TABLE, name("a.t"), name("b.c.u"), AUTHOR)

    found = stores.pointers.find_locked(seen.id)

    assert found == stores.there("b.c.u")
    assert stores.pointers.find_locked(seen.id + 1) is None


def test_others_with_a_uuid_are_noticed(stores: Stores) -> None:
    stores.add_namespace("a")
    one = stores.add("a.one", uuid="same")

    assert not stores.pointers.may_share_files(one.uuid, one.id)
    assert stores.pointers.may_share_files(one.uuid)

    two = stores.add("a.two", uuid="same")

    assert stores.pointers.may_share_files(one.uuid, one.id)
    assert stores.pointers.may_share_files(two.uuid, two.id)
    assert not stores.pointers.may_share_files(TableUuid("other"))


def test_has_landed_tells_a_landed_change_from_one_that_did_not(stores: Stores) -> None:
    stores.add_namespace("a")
    creation = stores.creation("a.t")
    assert not stores.pointers.has_landed(creation, AUTHOR)

    seen = stores.add("a.t")
    landed, lost = (Advance(seen, Location(f"{n}.json"), seen.uuid) for n in (1, 2))
    stores.pointers.check_and_put([landed], AUTHOR)

    assert stores.pointers.has_landed(creation, AUTHOR)
    assert stores.pointers.has_landed(landed, AUTHOR)
    assert not stores.pointers.has_landed(lost, AUTHOR)


def test_has_landed_remembers_what_was_overtaken(stores: Stores) -> None:
    stores.add_namespace("a")
    creation = stores.creation("a.t")
    seen = stores.add("a.t")
    change = Advance(seen, Location("1.json"), seen.uuid)
    stores.pointers.check_and_put([change], AUTHOR)
    stores.advance(stores.there("a.t"), "2.json")
    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR)
    stores.namespaces.drop(stores.id, levels("a"), AUTHOR)

    assert stores.pointers.has_landed(change, AUTHOR)
    assert stores.pointers.has_landed(creation, AUTHOR)


def test_has_landed_is_not_misled_by_an_earlier_registration_of_the_same_file(stores: Stores) -> None:
    stores.add_namespace("a")
    creation = stores.creation("a.t")
    stores.pointers.check_and_put([creation], AUTHOR)
    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR)
    later = replace(AUTHOR, at_ms=AUTHOR.at_ms + 1, request_id="request-2")

    assert stores.pointers.has_landed(creation, AUTHOR)
    assert not stores.pointers.has_landed(creation, later)


def test_has_landed_is_not_misled_by_another_pointer_at_the_same_file(stores: Stores) -> None:
    stores.add_namespace("a")
    one, two = stores.add("a.one", uuid="same"), stores.add("a.two", uuid="same")
    stores.pointers.check_and_put([Advance(two, Location("1.json"), two.uuid)], AUTHOR)

    assert not stores.pointers.has_landed(Advance(one, Location("1.json"), one.uuid), AUTHOR)


@pytest.mark.parametrize("large", [20_000, 1])
def test_pointers_of_a_warehouse_come_in_the_order_of_their_ids(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(pointers, "_LARGE", large)
    other = stores.warehouses.create("other", "file:///other", created_ms=NOW_MS)
    for namespace in ("b", "a"):
        stores.add_namespace(namespace)
    added = [stores.add(dotted) for dotted in ("b.z", "a.y", "b.x")]
    listed = stores.pointers.list_pointers

    assert listed(stores.id, PointerKind.TABLE, 0, 10) == added
    assert listed(stores.id, PointerKind.TABLE, added[0].id, 1) == [added[1]]
    assert listed(stores.id, PointerKind.TABLE, added[2].id, 10) == []
    assert listed(stores.id, PointerKind.VIEW, 0, 10) == []
    assert listed(other.id, PointerKind.TABLE, 0, 10) == []
