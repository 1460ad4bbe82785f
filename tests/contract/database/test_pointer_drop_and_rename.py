"""Dropping and renaming pointers, and listing their names."""

from __future__ import annotations

import pytest

from app.database.pointers.moves import NameTaken
from app.database.pointers.pointer import PointerKind
from app.database.pointers.pointers import PointerChanged
from app.database.pointers.recoverable import PURGE_NOW
from app.errors import IdempotencyKeyTaken, NoSuchNamespace
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, claim, levels, name

TABLE, VIEW = PointerKind.TABLE, PointerKind.VIEW


def test_dropped_pointer_is_gone_and_its_name_free(stores: Stores) -> None:
    stores.add_namespace("a")
    there = stores.add("a.t")

    assert stores.pointers.drop(stores.id, name("a.t"), TABLE, AUTHOR, claim()) == there

    assert stores.pointers.find(stores.id, name("a.t")) is None
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is not None
    assert stores.add("a.t", VIEW).id != there.id


@pytest.mark.parametrize(("dotted", "kind"), [("a.missing", TABLE), ("b.t", TABLE), ("a.t", VIEW)])
def test_dropping_what_is_not_there_changes_nothing(stores: Stores, dotted: str, kind: PointerKind) -> None:
    stores.add_namespace("a")
    there = stores.add("a.t")

    assert stores.pointers.drop(stores.id, name(dotted), kind, AUTHOR, claim()) is None

    assert stores.there("a.t") == there
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_drop_refuses_a_pointer_that_moved_since(stores: Stores) -> None:
    stores.add_namespace("a")
    seen = stores.add("a.t")
    stores.advance(seen, "1.json")

    with pytest.raises(PointerChanged):
        stores.pointers.drop(stores.id, name("a.t"), TABLE, AUTHOR, expected=seen, recovery=PURGE_NOW)

    assert stores.there("a.t").metadata_location == "1.json"
    assert stores.file_deletions.counts() == {}


def test_drop_refuses_a_successor_of_the_same_name_and_file(stores: Stores) -> None:
    stores.add_namespace("a")
    seen = stores.add("a.t")
    stores.pointers.drop(stores.id, name("a.t"), TABLE, AUTHOR)
    successor = stores.add("a.t")

    with pytest.raises(PointerChanged):
        stores.pointers.drop(stores.id, name("a.t"), TABLE, AUTHOR, expected=seen)

    dropped = stores.pointers.drop(
        stores.id, name("a.t"), TABLE, AUTHOR, expected=successor, event="unregistered"
    )
    assert dropped == successor
    assert stores.pointers.history(successor.id)[0].event == "unregistered"


def test_drop_with_a_taken_claim_changes_nothing(stores: Stores) -> None:
    stores.add_namespace("a")
    there = stores.add("a.t")
    stores.idempotency_keys.record(claim(), 204, "")

    with pytest.raises(IdempotencyKeyTaken):
        stores.pointers.drop(stores.id, name("a.t"), TABLE, AUTHOR, claim())

    assert stores.there("a.t") == there


def test_drop_with_deletion_queues_the_files(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.add("a.t", uuid="u")

    stores.pointers.drop(stores.id, name("a.t"), TABLE, AUTHOR, recovery=PURGE_NOW)

    deletion = stores.file_deletions.lease(1000)
    assert deletion is not None
    assert (deletion.warehouse_id, deletion.uuid, deletion.metadata_location) == (
        stores.id,
        "u",
        "a.t/0.json",
    )
    assert (deletion.identifier, deletion.created_ms) == ("a.t", NOW_MS)


@pytest.mark.parametrize("destination", ["a.u", "b.t", "b.c.u"])
def test_renamed_pointer_keeps_all_but_its_name(stores: Stores, destination: str) -> None:
    for namespace in ("a", "b", "b.c"):
        stores.add_namespace(namespace)
    there = stores.add("a.t")

    renamed = stores.pointers.rename(stores.id, TABLE, name("a.t"), name(destination), AUTHOR, claim())

    assert renamed == stores.there(destination)
    assert (renamed.id, renamed.uuid, renamed.metadata_location) == (
        there.id,
        there.uuid,
        there.metadata_location,
    )
    assert stores.pointers.find(stores.id, name("a.t")) is None
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is not None


def test_rename_refuses_a_pointer_that_moved_since(stores: Stores) -> None:
    """What was read of it, such as that it is not protected, need not hold any more."""
    stores.add_namespace("a")
    seen = stores.add("a.t")
    stores.advance(seen, "1.json")

    with pytest.raises(PointerChanged):
        stores.pointers.rename(stores.id, TABLE, name("a.t"), name("a.u"), AUTHOR, claim(), expected=seen)

    assert stores.there("a.t").metadata_location == "1.json"
    assert stores.pointers.find(stores.id, name("a.u")) is None
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_rename_to_the_same_name_changes_nothing(stores: Stores) -> None:
    stores.add_namespace("a")
    there = stores.add("a.t")

    assert stores.pointers.rename(stores.id, TABLE, name("a.t"), name("a.t"), AUTHOR) == there

    assert len(stores.pointers.history(there.id)) == 1


@pytest.mark.parametrize(("source", "kind"), [("a.missing", TABLE), ("missing.t", TABLE), ("a.t", VIEW)])
@pytest.mark.parametrize("destination", ["a.new", "missing.new", "a.t", "a.taken"])
def test_renaming_what_is_not_there_finds_nothing(
    stores: Stores, source: str, kind: PointerKind, destination: str
) -> None:
    stores.add_namespace("a")
    there = stores.add("a.t")
    stores.add("a.taken")

    assert stores.pointers.rename(stores.id, kind, name(source), name(destination), AUTHOR, claim()) is None

    assert stores.there("a.t") == there
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_rename_into_a_missing_namespace_is_refused(stores: Stores) -> None:
    stores.add_namespace("a")
    there = stores.add("a.t")

    with pytest.raises(NoSuchNamespace, match="missing"):
        stores.pointers.rename(stores.id, TABLE, name("a.t"), name("missing.t"), AUTHOR, claim())

    assert stores.there("a.t") == there
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


@pytest.mark.parametrize("owner", PointerKind)
@pytest.mark.parametrize("destination", ["a.u", "b.t"])
def test_rename_to_a_taken_name_is_refused(stores: Stores, owner: PointerKind, destination: str) -> None:
    stores.add_namespace("a")
    stores.add_namespace("b")
    there, taken = stores.add("a.t"), stores.add(destination, owner)

    with pytest.raises(NameTaken) as refusal:
        stores.pointers.rename(stores.id, TABLE, name("a.t"), name(destination), AUTHOR)

    assert (refusal.value.kind, refusal.value.identifier) == (owner, name(destination))
    assert (stores.there("a.t"), stores.there(destination)) == (there, taken)


def test_names_are_listed_by_kind_in_order(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.add_namespace("a.inner")
    stores.add_namespace("b")
    for table in ("a.z", "a.B", "a.é", "a.a", "a.inner.x", "b.y", "a.🗼", "a.\uffee"):
        stores.add(table)
    stores.add("a.view", VIEW)

    # By code point, on every database: the tower (U+1F5FC) after the half-width circle (U+FFEE).
    assert stores.pointers.list_names(stores.id, levels("a"), TABLE) == ("B", "a", "z", "é", "\uffee", "🗼")
    assert stores.pointers.list_names(stores.id, levels("a"), VIEW) == ("view",)
    assert stores.pointers.list_names(stores.id, levels("a.inner"), VIEW) == ()


def test_pages_of_names_are_the_whole_list(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.pointers.check_and_put([stores.creation(f"a.t{n:03}") for n in range(25)], AUTHOR)
    after: str | None = None
    pages: list[tuple[str, ...]] = []

    while not pages or len(pages[-1]) == 10:
        pages.append(stores.pointers.list_names(stores.id, levels("a"), TABLE, after, 10))
        after = pages[-1][-1]

    assert [len(page) for page in pages] == [10, 10, 5]
    assert [each for page in pages for each in page] == [f"t{n:03}" for n in range(25)]
    assert stores.pointers.list_names(stores.id, levels("a"), TABLE, "t024", 10) == ()


def test_names_of_a_missing_namespace_are_refused(stores: Stores) -> None:
    with pytest.raises(NoSuchNamespace, match="missing"):
        stores.pointers.list_names(stores.id, levels("missing"), TABLE)
