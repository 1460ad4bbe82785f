"""A warehouse whose storage settings were changed: other files lie at the same locations."""

from __future__ import annotations

from app.catalog.context.catalog import Catalog
from app.engine.model.ids import Location
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import with_server
from tests.builders.tables import load_table


def moved_to_another_store(catalog: Catalog) -> Catalog:
    """Return the catalog on a copy of its store, where the newest manifest list is what the oldest one is here."""
    snapshots = load_table(catalog).metadata.snapshots
    first, last = snapshots[0].manifest_list, snapshots[-1].manifest_list
    other = MemoryFiles()
    for file in catalog.files.list_files(Location(catalog.warehouse.root_location)):
        other.write_new(
            file.location, catalog.files.read(first if file.location == last and first else file.location)
        )
    return with_server(catalog, files_of=lambda _warehouse: other)
