"""What is listed of a file-system warehouse, to find the tables that may name files of others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.catalog import named, namespaces
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.deletions import file_system_readers
from app.catalog.deletions.file_system_readers import tables_that_count
from app.catalog.deletions.orphan_search import OrphanWish
from app.catalog.deletions.orphans import preview_orphans
from app.engine.model.identifiers import Namespace
from app.engine.model.ids import Location
from app.fileio.local import LocalFiles
from app.fileio.trees import FolderEntry
from tests.builders.catalogs import new_warehouse
from tests.builders.commits import commit_table
from tests.builders.file_system import identifier, new_table, tree_on
from tests.builders.table_files import TableFiles
from tests.builders.tables import append


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


def test_what_a_table_has_whose_folder_another_table_claims_is_no_orphan_of_that_one(
    catalog: Catalog, tmp_path: Path
) -> None:
    """What is registered may say any location: that does not make it the table that was there."""
    a, other = identifier("ns.a"), identifier("sales.t")
    files = TableFiles(LocalFiles())
    commit_table(catalog, a, [], append(files.snapshot(catalog.read_now(TABLES, a)[1], ["x"])))
    rows = new_warehouse(catalog.server, "rows", catalog.warehouse.root_location)
    namespaces.create_namespace(rows, other.namespace, {})
    made = named.create(rows, new_table("sales.t", f"{catalog.warehouse.root_location}/elsewhere")).metadata
    claiming = made.replace(location=f"{catalog.warehouse.root_location}/ns/a")
    file = Location(f"{made.location}/metadata/00001-moved.metadata.json")
    rows.files.write_new(file, claiming.to_json())
    named.register(rows, TABLES, other, file, overwrite=True)
    junk = tmp_path / "tables/ns/a/data/junk.parquet"
    junk.write_bytes(b"junk")
    for path in (tmp_path / "tables").rglob("*.*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))

    found = preview_orphans(rows, other, OrphanWish())

    assert [file.location for file in found.files.values()] == [f"file://{junk}"]
