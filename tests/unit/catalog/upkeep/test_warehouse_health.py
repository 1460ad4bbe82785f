"""The health of many tables: the worst first, page by page, and those that cannot be read among them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.listings import Page
from app.catalog.named import drop
from app.catalog.upkeep import warehouse_health as module
from app.catalog.upkeep.warehouse_health import UnreadableTable, warehouse_health
from app.engine.model.identifiers import TableIdentifier
from app.errors import InvalidPageToken
from tests.builders.catalogs import with_server
from tests.builders.counting_files import CountingFiles
from tests.builders.table_files import TableFiles
from tests.builders.tables import FLIGHTS, append, commit_to, load_table, table_in, view_in


def named(name: str) -> TableIdentifier:
    return TableIdentifier(FLIGHTS, name)


def table_with(catalog: Catalog, name: str, snapshots: int, **properties: str) -> None:
    """Create a table with so many snapshots of one file each."""
    table_in(catalog, named(name), properties)
    writer = TableFiles(catalog.files)
    for number in range(snapshots):
        metadata = load_table(catalog, named(name)).metadata
        commit_to(catalog, *append(writer.snapshot(metadata, [f"f{number}"])), identifier=named(name))


def pages(catalog: Catalog, limit: int) -> list[list[str]]:
    """Return the names of all pages."""
    found, after = [], None
    while True:
        page = warehouse_health(catalog, Page(after, limit))
        found.append([table.identifier.name for table in page.items])
        if page.next_after is None:
            return found
        after = page.next_after


@pytest.fixture
def warehouse(catalog: Catalog) -> Catalog:
    """Five tables and a view; `gone` has no metadata file, `worse` more snapshots than are good."""
    table_with(catalog, "empty", 0)
    table_with(catalog, "well", 2)
    table_with(catalog, "gone", 1)
    table_with(catalog, "worse", 103)
    table_with(catalog, "also well", 1)
    view_in(catalog, named("view"))
    gone = catalog.find(named("gone"))
    assert gone is not None
    catalog.files.delete(gone.metadata_location)
    return catalog


def test_the_worst_come_first_and_equals_in_the_order_of_their_creation(warehouse: Catalog) -> None:
    found = warehouse_health(warehouse, Page(None, 100))

    assert [table.identifier.name for table in found.items] == ["gone", "worse", "empty", "well", "also well"]
    assert found.next_after is None
    gone, worse, *well = found.items
    assert isinstance(gone, UnreadableTable)
    assert [finding.code for finding in gone.findings] == ["unreadable"]
    assert "gone" in gone.findings[0].message
    assert [finding.code for finding in worse.findings] == ["snapshots", "small-manifests"]
    assert [list(table.findings) for table in well] == [[], [], []]


def test_no_readable_table_is_worse_than_one_that_is_not(warehouse: Catalog) -> None:
    limits = replace(warehouse.rules.health_thresholds, snapshots_critical=100)
    strict = with_server(warehouse, rules=replace(warehouse.rules, health_thresholds=limits))

    gone, worse, *_ = warehouse_health(strict, Page(None, 100)).items

    assert [finding.severity for finding in gone.findings] == ["critical"]
    assert [finding.severity for finding in worse.findings] == ["critical", "warning"]


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_pages_together_are_the_whole_list(warehouse: Catalog, limit: int) -> None:
    found = pages(warehouse, limit)

    assert [name for page in found for name in page] == ["gone", "worse", "empty", "well", "also well"]
    assert all(0 < len(page) <= limit for page in found)


def test_a_request_looks_at_one_stretch_of_tables_only(
    warehouse: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STRETCH", 2)

    assert pages(warehouse, 10) == [["empty", "well"], ["gone", "worse"], ["also well"]]
    assert pages(warehouse, 1) == [["empty"], ["well"], ["gone"], ["worse"], ["also well"]]


def test_no_manifest_is_read_and_nothing_twice(warehouse: Catalog) -> None:
    files = CountingFiles(warehouse.files)
    counted = with_server(warehouse, files_of=lambda _warehouse: files)

    warehouse_health(counted, Page(None, 100))
    read = [location.rpartition("/")[2] for location in files.read_bytes if location.endswith(".avro")]
    assert len(read) == 3
    assert all(name.startswith("snap-") for name in read), "manifest lists only"
    files.forget()
    warehouse_health(counted, Page(None, 100))
    assert not [location for location in files.read_bytes if location.endswith(".avro")]


def test_tables_that_are_dropped_between_two_pages_are_missing(warehouse: Catalog) -> None:
    first = warehouse_health(warehouse, Page(None, 2))
    drop(warehouse, TABLES, named("well"))

    rest = warehouse_health(warehouse, Page(first.next_after, 10))

    assert [table.identifier.name for table in rest.items] == ["empty", "also well"]


@pytest.mark.parametrize("place", ["", "1", "1 2 3 4", "a b c d e", "1 2 3 4 5 6"])
def test_places_that_no_server_made_are_refused(warehouse: Catalog, place: str) -> None:
    with pytest.raises(InvalidPageToken):
        warehouse_health(warehouse, Page(place, 10))
