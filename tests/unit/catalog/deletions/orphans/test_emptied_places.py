"""Where nothing is left of tables that are gone: that holds up no search for orphans."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.orphan_search import OrphanWish
from app.catalog.deletions.orphans import mark_orphans
from app.catalog.tables import NewTable, purge_table
from app.engine.model.ids import Location
from app.fileio.local import LocalFiles
from tests.builders.catalogs import new_warehouse, server_on, with_rules
from tests.builders.tables import DEPARTURES, SCHEMA, load_table, table_in
from tests.unit.catalog.deletions.test_orphans import (
    OTHER,
    found,
    table_with_history,
    there,
    work_off,
    write_old,
)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    server = server_on(f"sqlite:///{tmp_path}/icetower.db", LocalFiles())
    return new_warehouse(server, root=f"file://{tmp_path}/wh")


def test_a_warehouse_that_a_purge_has_emptied_holds_up_no_search(catalog: Catalog, tmp_path: Path) -> None:
    orphan = write_old(f"{table_with_history(catalog)}/data/junk.parquet")
    other = new_warehouse(catalog.server, "other", f"file://{tmp_path}/other")
    table_in(other)
    purge_table(other, DEPARTURES)
    work_off(catalog)
    assert there(other.warehouse.root_location) == set()

    assert found(catalog) == {orphan}
    mark_orphans(catalog, DEPARTURES, OrphanWish(grace_ms=0))
    work_off(catalog)
    assert orphan not in there(str(load_table(catalog).metadata.location))


def test_a_folder_in_a_further_root_that_is_empty_by_now_holds_up_no_search(
    catalog: Catalog, tmp_path: Path
) -> None:
    further = f"file://{tmp_path}/further"
    catalog = with_rules(catalog, allowed_locations=(further,))
    orphan = write_old(f"{table_with_history(catalog)}/data/junk.parquet")
    write_old(f"{further}/of/others")
    named.create(catalog, NewTable(OTHER, SCHEMA, None, None, f"{further}/it", {}))
    named.drop(catalog, TABLES, OTHER)
    for file in there(f"{further}/it"):
        LocalFiles().delete(Location(file))

    assert found(catalog) == {orphan}
