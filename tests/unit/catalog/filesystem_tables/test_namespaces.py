from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog import named
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
)
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
