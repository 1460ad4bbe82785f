"""Namespaces: created with their parents, listed, changed, and dropped only when empty."""

from __future__ import annotations

import json

import pytest

from app.database.namespaces import PropertyChanges
from app.database.pointers.pointer import PointerKind
from app.engine.model.identifiers import Namespace
from app.errors import IdempotencyKeyTaken, NamespaceExists, NamespaceNotEmpty, NoSuchNamespace
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, claim, levels
from tests.contract.database.test_plans import asked_in


def test_created_namespace_has_its_properties(stores: Stores) -> None:
    properties = {"owner": "bob", "odd \0 key": "\0 and 🗼 and \ud800", "": ""}

    stores.namespaces.create(stores.id, levels("sales"), properties, AUTHOR, claim())

    assert stores.namespaces.find(stores.id, levels("sales")) == properties
    assert stores.namespaces.find(stores.id, levels("Sales")) is None
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is not None


def test_missing_parents_are_created_without_properties(stores: Stores) -> None:
    stores.namespaces.create(stores.id, levels("a"), {"kept": "yes"}, AUTHOR)

    stores.namespaces.create(stores.id, levels("a.b.c.d"), {"x": "y"}, AUTHOR)

    found = [stores.namespaces.find(stores.id, levels(each)) for each in ("a", "a.b", "a.b.c", "a.b.c.d")]
    assert found == [{"kept": "yes"}, {}, {}, {"x": "y"}]


@pytest.mark.parametrize("existing", ["a", "a.b"])
def test_an_existing_namespace_is_not_created_again(stores: Stores, existing: str) -> None:
    stores.namespaces.create(stores.id, levels("a.b"), {"x": "y"}, AUTHOR)
    before = stores.namespaces.find(stores.id, levels(existing))

    with pytest.raises(NamespaceExists, match=f"{existing}$"):
        stores.namespaces.create(stores.id, levels(existing), {"z": "1"}, AUTHOR, claim())

    assert stores.namespaces.find(stores.id, levels(existing)) == before
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_a_taken_claim_refuses_a_creation_and_its_parents(stores: Stores) -> None:
    stores.idempotency_keys.record(claim(), 200, "")

    with pytest.raises(IdempotencyKeyTaken):
        stores.namespaces.create(stores.id, levels("a.b"), {}, AUTHOR, claim())

    assert stores.namespaces.list_children(stores.id, None) == ()


def test_levels_that_contain_dots_are_not_confused(stores: Stores) -> None:
    dotted, nested = Namespace(("a.b",)), Namespace(("a", "b"))

    stores.namespaces.create(stores.id, dotted, {"is": "dotted"}, AUTHOR)
    stores.namespaces.create(stores.id, nested, {"is": "nested"}, AUTHOR)

    assert stores.namespaces.find(stores.id, dotted) == {"is": "dotted"}
    assert stores.namespaces.find(stores.id, nested) == {"is": "nested"}
    assert stores.namespaces.list_children(stores.id, None) == ("a", "a.b")


def test_children_are_listed_in_order(stores: Stores) -> None:
    other = stores.warehouses.create("other", "file:///other", created_ms=NOW_MS)
    stores.namespaces.create(other.id, levels("elsewhere"), {}, AUTHOR)
    for each in ("b.é", "b.z.deep", "b.Z", "a", "b.🗼", "c.only"):
        stores.add_namespace(each)

    assert stores.namespaces.list_children(stores.id, None) == ("a", "b", "c")
    assert stores.namespaces.list_children(stores.id, levels("b")) == ("Z", "z", "é", "🗼")
    assert stores.namespaces.list_children(stores.id, levels("b.z")) == ("deep",)
    assert stores.namespaces.list_children(stores.id, levels("a")) == ()
    with pytest.raises(NoSuchNamespace):
        stores.namespaces.list_children(stores.id, levels("missing"))


@pytest.mark.parametrize("parent", [None, "p"])
def test_pages_of_children_are_the_whole_list(stores: Stores, parent: str | None) -> None:
    above = None if parent is None else levels(parent)
    for n in range(7):
        stores.add_namespace(f"n{n}" if parent is None else f"{parent}.n{n}")

    first = stores.namespaces.list_children(stores.id, above, None, 3)
    second = stores.namespaces.list_children(stores.id, above, first[-1], 3)
    third = stores.namespaces.list_children(stores.id, above, second[-1], 3)

    assert [first, second, third] == [("n0", "n1", "n2"), ("n3", "n4", "n5"), ("n6",)]
    assert stores.namespaces.list_children(stores.id, above, "n6", 3) == ()


def test_dropped_namespace_is_gone_but_not_its_parent(stores: Stores) -> None:
    stores.add_namespace("a.b")

    stores.namespaces.drop(stores.id, levels("a.b"), AUTHOR, claim())

    assert stores.namespaces.find(stores.id, levels("a.b")) is None
    assert stores.namespaces.find(stores.id, levels("a")) == {}
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is not None


def test_dropping_a_missing_namespace_is_refused(stores: Stores) -> None:
    with pytest.raises(NoSuchNamespace, match="missing"):
        stores.namespaces.drop(stores.id, levels("missing"), AUTHOR, claim())

    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_a_namespace_that_holds_something_is_not_dropped(stores: Stores) -> None:
    expected = []
    stores.add_namespace("a")
    for add, content in (
        (lambda: stores.add("a.t"), "tables"),
        (lambda: stores.add("a.v", PointerKind.VIEW), "views"),
        (lambda: stores.add_namespace("a.n"), "namespaces"),
    ):
        add()
        expected.append(content)
        with pytest.raises(
            NamespaceNotEmpty, match=rf"^Namespace a is not empty\. It contains {' and '.join(expected)}$"
        ):
            stores.namespaces.drop(stores.id, levels("a"), AUTHOR, claim())

    assert stores.namespaces.find(stores.id, levels("a")) == {}
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_properties_are_set_and_removed(stores: Stores) -> None:
    stores.namespaces.create(stores.id, levels("a"), {"keep": "1", "change": "2", "remove": "3"}, AUTHOR)

    changes = stores.namespaces.update_properties(
        stores.id, levels("a"), ["remove", "absent", "remove"], {"change": "two", "add": "4"}, AUTHOR, claim()
    )

    assert changes == PropertyChanges(updated=["change", "add"], removed=["remove"], missing=["absent"])
    assert stores.namespaces.find(stores.id, levels("a")) == {"keep": "1", "change": "two", "add": "4"}
    recorded = stores.idempotency_keys.find("alice", "key-1", NOW_MS)
    assert recorded is not None
    assert json.loads(recorded.result) == {
        "updated": ["change", "add"],
        "removed": ["remove"],
        "missing": ["absent"],
    }


def test_properties_of_a_missing_namespace_are_refused(stores: Stores) -> None:
    with pytest.raises(NoSuchNamespace, match="missing"):
        stores.namespaces.update_properties(stores.id, levels("missing"), [], {"a": "b"}, AUTHOR, claim())

    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_a_taken_claim_refuses_a_change_of_properties_and_a_drop(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.idempotency_keys.record(claim(), 200, "")

    with pytest.raises(IdempotencyKeyTaken):
        stores.namespaces.update_properties(stores.id, levels("a"), [], {"a": "b"}, AUTHOR, claim())
    with pytest.raises(IdempotencyKeyTaken):
        stores.namespaces.drop(stores.id, levels("a"), AUTHOR, claim())

    assert stores.namespaces.find(stores.id, levels("a")) == {}


def test_what_is_in_a_namespace_is_not_counted_for_a_drop(stores: Stores) -> None:
    """A million tables would take SQLite seconds in which nobody else can write."""
    stores.add_namespace("a")
    stores.add("a.t")

    def drop() -> None:
        with pytest.raises(NamespaceNotEmpty):
            stores.namespaces.drop(stores.id, levels("a"), AUTHOR)

    assert not [sql for sql, _ in asked_in(stores, drop) if sql.startswith("DELETE")]
