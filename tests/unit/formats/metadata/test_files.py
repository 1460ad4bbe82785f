"""What is kept of metadata files belongs to a store and a location, not to a location alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.tables import find_json, table_json
from app.engine.change.updates import SetProperties
from app.engine.model.ids import Location
from app.errors import MetadataFileMissing
from app.fileio.memory import MemoryFiles
from app.recoveries import PastIsGone
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.tables import DEPARTURES, commit_to, load_table, namespace_in, table_in
from tests.unit.catalog.commits.interference import ARRIVALS

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
    assert len({json.version for json in jsons}) == 2
    assert load_table(production).metadata.properties == {"from": "production"}
    committed = commit_to(production, SetProperties(updates={"a": "b"}))
    assert committed.metadata.properties == {"from": "production", "a": "b"}
    assert load_table(staging).metadata == table.metadata


def test_file_that_was_replaced_is_read_anew_when_it_is_registered_again(tmp_path: Path) -> None:
    """As `v1.metadata.json` of a table that was dropped and made again elsewhere; two servers on one database."""
    store = MemoryFiles()
    first = new_warehouse(server_on(f"sqlite:///{tmp_path}/icetower.db", store), root=ROOT)
    second = replace(first, server=server_on(f"sqlite:///{tmp_path}/icetower.db", store))
    old = table_in(first)
    assert old.location is not None
    place = Location(f"{ROOT}/elsewhere/v1.metadata.json")
    for uuid in ("11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"):
        store.delete(place)
        store.write_new(place, old.metadata.replace(table_uuid=uuid, properties={"uuid": uuid}).to_json())
        named.register(first, TABLES, ARRIVALS, place, overwrite=True)

        for server in (first, second):
            pointer = server.load(TABLES, ARRIVALS)
            assert load_table(server, ARRIVALS).metadata.uuid == uuid
            assert uuid.encode() in table_json(server, pointer, refs_only=False).content

    committed = commit_to(second, SetProperties(updates={"a": "b"}), identifier=ARRIVALS)
    assert committed.metadata.uuid == uuid


@pytest.mark.parametrize("overwrite", [True, False])
def test_file_that_was_edited_in_place_is_read_anew_by_every_server(
    tmp_path: Path, *, overwrite: bool
) -> None:
    """With the same uuid, time and length: only the registration says that the content is another."""
    store = MemoryFiles()
    first = new_warehouse(server_on(f"sqlite:///{tmp_path}/icetower.db", store), root=ROOT)
    second = replace(first, server=server_on(f"sqlite:///{tmp_path}/icetower.db", store))
    made = table_in(first)
    place = Location(f"{ROOT}/elsewhere/v1.metadata.json")
    versions: set[str] = set()
    for mark in ("one", "two", "red"):
        store.delete(place)
        store.write_new(place, made.metadata.replace(properties={"mark": mark}).to_json())
        if not overwrite and versions:
            named.drop(first, TABLES, ARRIVALS)
        named.register(first, TABLES, ARRIVALS, place, overwrite=overwrite)

        for server in (second, first):
            pointer = server.load(TABLES, ARRIVALS)
            assert load_table(server, ARRIVALS).metadata.properties == {"mark": mark}
            for refs_only in (False, True):
                answer = table_json(server, pointer, refs_only=refs_only)
                assert mark.encode() in answer.content
                assert answer == find_json(server, pointer, refs_only=refs_only)
                versions.add(answer.version)
        committed = commit_to(second, SetProperties(updates={"a": mark}), identifier=ARRIVALS)
        assert committed.metadata.properties == {"mark": mark, "a": mark}
        assert load_table(first, ARRIVALS).metadata == committed.metadata
    assert len(versions) == 3, "the version is part of ETags and of what is kept compressed"


def test_another_tables_content_is_never_answered_for_a_table(twins: tuple[Catalog, Catalog]) -> None:
    """Others may write another table where the file of one was; that one is gone then, now and in the past."""
    catalog, _ = twins
    made = table_in(catalog)
    assert made.location is not None
    commit_to(catalog, SetProperties(updates={"a": "b"}))
    for number, server in enumerate((catalog, replace(catalog, as_of_ms=catalog.now_ms()))):
        pointer = server.load(TABLES, DEPARTURES)
        own = load_table(catalog).metadata
        other = own.replace(table_uuid="22222222-2222-2222-2222-222222222222")
        catalog.files.delete(pointer.metadata_location)
        catalog.files.write_new(pointer.metadata_location, other.to_json())
        anew = replace(pointer, registration=5 + number)  # as a server that has not read it yet

        with pytest.raises((MetadataFileMissing, PastIsGone)):
            server.read(TABLES, anew)
        with pytest.raises(MetadataFileMissing, match="is there by now"):
            table_json(server, anew, refs_only=False)

        catalog.files.delete(pointer.metadata_location)
        catalog.files.write_new(pointer.metadata_location, own.to_json())
        assert server.read(TABLES, anew).uuid == own.uuid
