from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog import named, namespaces, tables
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.listings import Page
from app.catalog.deletions.file_system_readers import FileSystemReaders
from app.catalog.upkeep.warehouse_health import warehouse_health
from app.engine.model.identifiers import Namespace
from app.engine.model.ids import Location
from app.errors import (
    FilesUnavailable,
    InvalidLocation,
    NamespaceExists,
    TableExists,
)
from app.fileio.local import LocalFiles
from app.fileio.trees import FolderEntry
from tests.builders.catalogs import with_server
from tests.builders.file_system import identifier, metadata_folder, new_table

T = identifier("ns.t")


def test_table_that_a_link_leads_out_of_holds_up_no_listing(tree: Catalog, tmp_path: Path) -> None:
    named.create(tree, new_table("ns.linked"))
    folder = metadata_folder(tmp_path, "ns.linked")
    folder.rename(tmp_path / "outside")
    folder.symlink_to(tmp_path / "outside")
    namespace = Namespace(("ns",))

    # It is listed, and says why it cannot be read.
    names = tree.pointers.list_names(tree.warehouse.id, namespace, TABLES.of_pointer)
    found = warehouse_health(tree, Page()).items
    assert names == ("linked", "t")
    assert tree.namespaces.list_children(tree.warehouse.id, namespace) == ()
    assert [(each.identifier.name, [finding.code for finding in each.findings]) for each in found] == [
        ("linked", ["unreadable"]),
        ("t", []),
    ]
    assert "leads out of the warehouse" in found[0].findings[0].message
    with pytest.raises(InvalidLocation, match="leads out of the warehouse"):
        named.load(tree, TABLES, identifier("ns.linked"))
    # It is not known which files it names: none are deleted that it may reach.
    with pytest.raises(FilesUnavailable, match="not known which files"):
        FileSystemReaders(tree.server, list[str]().append).look([Location(f"file://{tmp_path}/tables/x")])


@pytest.mark.parametrize("inner", ["ns.u.data", "ns.u.metadata", "ns.u.data.x"])
def test_table_does_not_hide_those_of_a_namespace_of_its_name(tree: Catalog, inner: str) -> None:
    """Tables write into folders called so before they exist, but no tables."""
    *levels, _ = inner.split(".")
    for length in range(2, len(levels) + 1):
        namespaces.create_namespace(tree, Namespace(tuple(levels[:length])), {})
    named.create(tree, new_table(inner))

    with pytest.raises(NamespaceExists):
        named.create(tree, new_table("ns.u"))

    assert list(named.list_names(tree, TABLES, Namespace(tuple(levels)), Page()).items) == [
        inner.rpartition(".")[2]
    ]


def test_table_takes_the_folder_in_which_its_files_are_already(tree: Catalog, tmp_path: Path) -> None:
    (tmp_path / "tables" / "ns" / "u" / "data" / "day=1" / "metadata").mkdir(parents=True)

    named.create(tree, new_table("ns.u"))


def test_creation_that_loses_a_race_finds_the_name_taken(
    tree: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one comes after each look at the folder, as far as there are several."""
    tables.purge_table(tree, identifier("ns.t"))
    listed, left = LocalFiles.list_folder, [1]

    def come_between(files: LocalFiles, location: Location) -> list[FolderEntry] | None:
        found = listed(files, location)
        if location.endswith("/ns/t/metadata") and left:
            left.pop()
            named.create(with_server(tree), new_table("ns.t"))
        return found

    monkeypatch.setattr(LocalFiles, "list_folder", come_between)

    with pytest.raises(TableExists):
        named.create(tree, new_table("ns.t"))


def test_page_of_names_looks_at_no_more_tables_than_it_has(
    tree: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        named.create(tree, new_table(f"ns.t{number:02}"))
    looked, listed = [], LocalFiles.list_folder

    def counted(files: LocalFiles, location: Location) -> list[FolderEntry] | None:
        looked.append(location)
        return listed(files, location)

    monkeypatch.setattr(LocalFiles, "list_folder", counted)

    page = named.list_names(tree, TABLES, Namespace(("ns",)), Page(limit=3))

    assert list(page.items) == ["t", "t00", "t01"]
    assert len(looked) < 10
