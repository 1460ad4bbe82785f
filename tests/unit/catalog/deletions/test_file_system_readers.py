"""What is listed of a file-system warehouse, to find the tables that may name files of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog import named, namespaces
from app.catalog.context.catalog import Catalog
from app.catalog.deletions import file_system_readers
from app.catalog.deletions.file_system_readers import tables_that_count
from app.engine.model.identifiers import Namespace
from app.engine.model.ids import Location
from app.fileio.local import LocalFiles
from app.fileio.trees import FolderEntry
from tests.builders.file_system import new_table, tree_on


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """A warehouse of layout hadoop with three tables."""
    catalog = tree_on(tmp_path)
    namespaces.create_namespace(catalog, Namespace(("ns",)), {})
    for name in "abc":
        named.create(catalog, new_table(f"ns.{name}"))
    return catalog


def test_each_folder_is_listed_once(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[Location] = []
    list_folder = LocalFiles.list_folder

    def noted(self: LocalFiles, location: Location) -> list[FolderEntry] | None:
        listed.append(location)
        return list_folder(self, location)

    monkeypatch.setattr(LocalFiles, "list_folder", noted)

    assert {pointer.identifier.name for pointer in tables_that_count(catalog)} == set("abc")
    assert listed.count(Location(catalog.warehouse.root_location)) == 1


def test_tables_of_several_pages_are_all_found(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 2, 3, 4):
        monkeypatch.setattr(file_system_readers, "_PAGE", size)
        assert {pointer.identifier.name for pointer in tables_that_count(catalog)} == set("abc")
