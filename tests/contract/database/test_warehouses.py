"""Warehouses: created, found, changed, and dropped only when empty."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection

from app.database import warehouses
from app.database.dropped import DroppedThings
from app.database.pointers.pointer import PointerKind
from app.database.pointers.recoverable import PURGE_NOW, Recovery
from app.database.statements import batches
from app.database.warehouses import Layout, Warehouse, Warehouses
from app.errors import InvalidSetting, NoSuchWarehouse, WarehouseExists, WarehouseNotEmpty
from app.recoveries import Protected
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, levels, name


def test_created_warehouse_is_found_as_it_is(stores: Stores) -> None:
    created = stores.warehouses.create(
        "lake",
        "s3://lake/root",
        default_properties={"a": "1"},
        override_properties={"b": "\0"},
        storage={"s3.region": "eu"},
        created_ms=NOW_MS,
    )

    assert stores.warehouses.find("lake") == created
    assert created == Warehouse(
        created.id, "lake", "s3://lake/root", {"a": "1"}, {"b": "\0"}, {"s3.region": "eu"}
    )
    assert stores.warehouses.find("Lake") is None
    assert [each.name for each in stores.warehouses.list()] == ["lake", "main"]
    assert [each.name for each in stores.warehouses.list_after(None, None)] == ["lake", "main"]
    assert [each.name for each in stores.warehouses.list_after(None, 1)] == ["lake"]
    assert [each.name for each in stores.warehouses.list_after("lake", 1)] == ["main"]


def test_warehouses_are_found_by_id_by_layout_and_by_their_roots(stores: Stores) -> None:
    lake = stores.warehouses.create("lake", "s3://lake", layout=Layout.HADOOP, created_ms=NOW_MS)

    assert stores.warehouses.find_by_id(lake.id) == lake
    assert stores.warehouses.find_by_id(lake.id + 1) is None
    assert stores.warehouses.list(Layout.HADOOP) == [lake]
    assert stores.warehouses.roots() == [
        ("lake", "s3://lake"),
        ("main", stores.warehouse.root_location),
    ]


def test_kept_warehouses_know_own_changes_at_once_and_those_of_others_soon(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = Warehouses(stores.database)
    assert stores.warehouses.list_kept(Layout.HADOOP) == []
    lake = stores.warehouses.create("lake", "s3://lake", layout=Layout.HADOOP, created_ms=NOW_MS)
    assert stores.warehouses.list_kept(Layout.HADOOP) == [lake]
    changed = stores.warehouses.update("lake", lambda found: replace(found, storage={"s3.region": "eu"}))
    assert stores.warehouses.list_kept(Layout.HADOOP) == [changed]
    stores.warehouses.drop("lake")
    assert stores.warehouses.list_kept(Layout.HADOOP) == []

    monkeypatch.setattr(warehouses, "KEPT_S", 0.0)
    pond = others.create("pond", "s3://pond", layout=Layout.HADOOP, created_ms=NOW_MS)
    assert stores.warehouses.list_kept(Layout.HADOOP) == [pond]


def test_a_taken_name_is_refused(stores: Stores) -> None:
    with pytest.raises(WarehouseExists, match="main"):
        stores.warehouses.create("main", "s3://elsewhere", created_ms=NOW_MS)

    assert stores.warehouses.find("main") == stores.warehouse


def test_update_is_given_the_warehouse_as_it_is(stores: Stores) -> None:
    stores.warehouses.create(
        "lake", "s3://lake", default_properties={"a": "1"}, storage={"s3.region": "eu"}, created_ms=NOW_MS
    )

    changed = stores.warehouses.update(
        "lake", lambda there: replace(there, default_properties={}, override_properties={"b": "2"})
    )

    assert changed == stores.warehouses.find("lake")
    assert (changed.default_properties, changed.override_properties) == ({}, {"b": "2"})
    assert changed.storage == {"s3.region": "eu"}
    assert stores.warehouses.update("lake", lambda there: there) == changed


def test_of_updates_at_once_none_undoes_another(stores: Stores) -> None:
    keys = [f"k{number}" for number in range(8)]
    start = threading.Barrier(len(keys))

    def add(key: str) -> None:
        start.wait()
        stores.warehouses.update(
            "main", lambda there: replace(there, default_properties={**there.default_properties, key: "1"})
        )

    with ThreadPoolExecutor(len(keys)) as threads:
        list(threads.map(add, keys))

    found = stores.warehouses.find("main")
    assert found is not None
    assert sorted(found.default_properties) == keys


def test_an_update_that_is_refused_changes_nothing(stores: Stores) -> None:
    def refuse(there: Warehouse) -> Warehouse:
        raise InvalidSetting(f"{there.name} stays")

    with pytest.raises(InvalidSetting, match="main stays"):
        stores.warehouses.update("main", refuse)

    assert stores.warehouses.find("main") == stores.warehouse


def test_a_missing_warehouse_is_neither_updated_nor_dropped(stores: Stores) -> None:
    with pytest.raises(NoSuchWarehouse, match="missing"):
        stores.warehouses.update("missing", lambda there: there)
    with pytest.raises(NoSuchWarehouse, match="missing"):
        stores.warehouses.drop("missing")


def test_a_warehouse_with_namespaces_is_not_dropped(stores: Stores) -> None:
    stores.add_namespace("a")

    with pytest.raises(WarehouseNotEmpty, match="main"):
        stores.warehouses.drop("main")

    stores.namespaces.drop(stores.id, levels("a"), AUTHOR)
    stores.warehouses.drop("main")
    assert stores.warehouses.list() == []


def test_a_warehouse_whose_files_are_still_to_be_deleted_is_not_dropped(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.add("a.t")
    stores.pointers.drop(stores.id, name("a.t"), PointerKind.TABLE, AUTHOR, recovery=PURGE_NOW)
    stores.namespaces.drop(stores.id, levels("a"), AUTHOR)

    with pytest.raises(WarehouseNotEmpty):
        stores.warehouses.drop("main")

    deletion = stores.file_deletions.lease(1000)
    assert deletion is not None
    stores.file_deletions.finish(deletion, "done")
    stores.warehouses.drop("main")
    assert stores.file_deletions.counts() == {}


def purged(stores: Stores, number: int) -> None:
    """Purge tables, and note that this is done."""
    stores.add_namespace("a")
    for each in range(number):
        stores.add(f"a.t{each}")
        stores.pointers.drop(stores.id, name(f"a.t{each}"), PointerKind.TABLE, AUTHOR, recovery=PURGE_NOW)
        deletion = stores.file_deletions.lease(1000)
        assert deletion is not None
        stores.file_deletions.finish(deletion, "done")


def test_very_many_finished_deletions_go_in_pieces_before_their_warehouse(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    purged(stores, 5)
    stores.namespaces.drop(stores.id, levels("a"), AUTHOR)
    monkeypatch.setattr(batches, "BATCH", 2)
    write, left = stores.database.write, list[int]()

    def noted(work: Callable[[Connection], Any]) -> Any:
        done = write(work)
        left.append(stores.file_deletions.counts().get("done", 0))
        return done

    monkeypatch.setattr(stores.database, "write", noted)
    stores.warehouses.drop("main")

    assert left == [3, 1, 0, 0]
    assert stores.warehouses.find("main") is None


@pytest.mark.parametrize("why", ["has a namespace", "has a deletion that waits", "is protected"])
def test_a_warehouse_that_stays_keeps_its_finished_deletions(stores: Stores, why: str) -> None:
    purged(stores, 2)
    if why == "has a deletion that waits":
        stores.add("a.waits")
        stores.pointers.drop(stores.id, name("a.waits"), PointerKind.TABLE, AUTHOR, recovery=PURGE_NOW)
    if why != "has a namespace":
        stores.namespaces.drop(stores.id, levels("a"), AUTHOR)

    def check(there: Warehouse) -> None:
        if why == "is protected":
            raise Protected("warehouse", "drop", there.name, "as it says")

    with pytest.raises((WarehouseNotEmpty, Protected)):
        stores.warehouses.drop("main", check=check)

    assert stores.file_deletions.counts()["done"] == 2


def test_what_could_come_back_in_a_warehouse_goes_with_it(stores: Stores) -> None:
    dropped = DroppedThings(stores.database)
    stores.add_namespace("a")
    stores.add("a.t")
    stores.pointers.drop(
        stores.id, name("a.t"), PointerKind.TABLE, AUTHOR, recovery=Recovery(1000, purge=True)
    )
    stores.namespaces.drop(stores.id, levels("a"), AUTHOR, recovery=Recovery(1000))

    stores.warehouses.drop("main")

    assert dropped.list(stores.id, NOW_MS) == []
    # Else a purge that nothing can carry out would keep all that comes after it from being ended.
    assert dropped.end(NOW_MS + 2000) == 0
