from __future__ import annotations

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.filesystem_tables.pointers import FolderPointers
from app.database.pointers.pointer import Pointer, PointerKind
from app.engine.model.identifiers import TableIdentifier
from tests.builders.file_system import new_table


def test_tables_that_vanish_while_they_are_listed_do_not_end_the_list(
    tree: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page without tables is the end to those who ask, and what comes after may name files to be deleted."""
    for number in range(5):
        named.create(tree, new_table(f"ns.t{number}"))
    assert isinstance(tree.pointers, FolderPointers)
    everything = tree.pointers.list_pointers(tree.warehouse.id, PointerKind.TABLE, 0, 10)
    gone = {pointer.identifier for pointer in everything[:3]}
    find = FolderPointers.find

    def find_those_left(
        self: FolderPointers, warehouse_id: int, identifier: TableIdentifier
    ) -> Pointer | None:
        return None if identifier in gone else find(self, warehouse_id, identifier)

    monkeypatch.setattr(FolderPointers, "find", find_those_left)

    assert tree.pointers.list_pointers(tree.warehouse.id, PointerKind.TABLE, 0, 2) == everything[3:5]
