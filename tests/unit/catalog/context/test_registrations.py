"""Tables that are registered again after others have replaced their files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.named import unregister
from app.engine.model.ids import Location
from app.formats.manifests.source import ManifestCache
from app.formats.metadata.files import MetadataFiles
from tests.builders.catalogs import with_server
from tests.builders.partitioned_files import PartitionedFiles


@pytest.fixture
def table(catalog: Catalog) -> PartitionedFiles:
    """Return a table with two snapshots, of which everything has been read."""
    made = PartitionedFiles.made(catalog)
    for _ in range(2):
        made.commit([made.file()])
    assert len(made.entries()) == 2
    return made


def let_go(table: PartitionedFiles) -> Location:
    """Let go of the table, and put its first manifest list in the place of the second one."""
    first, second = (snapshot.manifest_list for snapshot in table.metadata.snapshots)
    assert first is not None
    assert second is not None
    pointer = table.catalog.find(table.identifier)
    assert pointer is not None
    unregister(table.catalog, TABLES, table.identifier)
    store = table.catalog.files
    content = store.read(first)
    store.delete(second)
    store.write_new(second, content)
    return pointer.metadata_location


def test_lists_that_were_replaced_are_read_anew(table: PartitionedFiles) -> None:
    location = let_go(table)

    named.register(table.catalog, TABLES, table.identifier, location)

    assert len(table.entries()) == 1
    # Also for commits that build on them.
    table.commit([table.file()])
    assert len(table.entries()) == 2


def test_lists_that_were_replaced_are_read_anew_by_another_server(
    table: PartitionedFiles, catalog: Catalog
) -> None:
    other = with_server(
        catalog, manifest_cache=ManifestCache(1 << 20), metadata_files=MetadataFiles(1 << 20, 1000)
    )
    elsewhere = replace(table, catalog=other)
    assert len(elsewhere.entries()) == 2
    location = let_go(table)

    named.register(table.catalog, TABLES, table.identifier, location)

    assert len(elsewhere.entries()) == 1
