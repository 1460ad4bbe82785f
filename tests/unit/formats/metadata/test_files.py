"""What is kept of metadata files belongs to a store and a location, not to a location alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.tables import table_json
from app.engine.change.updates import SetProperties
from app.errors import MetadataFileMissing
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.tables import DEPARTURES, commit_to, load_table, namespace_in, table_in

ROOT = "memory://lake"


@pytest.fixture
def twins(tmp_path: Path) -> tuple[Catalog, Catalog]:
    """Two warehouses with equal roots in two stores."""
    stores: dict[int, MemoryFiles] = {}
    made = server_on(f"sqlite:///{tmp_path}/icetower.db")
    server = replace(made, files_of=lambda warehouse: stores.setdefault(warehouse.id, MemoryFiles()))
    return new_warehouse(server, "staging", ROOT), new_warehouse(server, "production", ROOT)


def test_file_that_only_another_warehouse_has_is_not_there(twins: tuple[Catalog, Catalog]) -> None:
    staging, production = twins
    table = table_in(staging)
    assert table.location is not None
    namespace_in(production)

    with pytest.raises(MetadataFileMissing):
        named.register(production, TABLES, DEPARTURES, table.location)


def test_equal_locations_in_two_stores_are_two_tables(twins: tuple[Catalog, Catalog]) -> None:
    staging, production = twins
    table = table_in(staging)
    assert table.location is not None
    namespace_in(production)
    other = table.metadata.replace(properties={"from": "production"})
    production.files.write_new(table.location, other.to_json())

    named.register(production, TABLES, DEPARTURES, table.location)

    jsons = [
        table_json(each, each.load(TABLES, DEPARTURES), refs_only=refs_only)
        for each in twins
        for refs_only in (False, True)
    ]
    assert len({json.digest for json in jsons}) == 2
    assert load_table(production).metadata.properties == {"from": "production"}
    committed = commit_to(production, SetProperties(updates={"a": "b"}))
    assert committed.metadata.properties == {"from": "production", "a": "b"}
    assert load_table(staging).metadata == table.metadata
