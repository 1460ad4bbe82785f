"""Symbolic links in a local warehouse: what lies in two folders by name is deleted for neither table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner, deletable
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.expiry import ExpiryRequest, preview_expiry
from app.catalog.deletions.orphan_search import OrphanWish
from app.catalog.deletions.orphans import preview_orphans
from app.catalog.deletions.other_readers import OtherReaders
from app.catalog.registration_checks import check_registration
from app.catalog.tables import NewTable
from app.database.warehouses import Layout
from app.engine.change.updates import SetLocation
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import ExpiryWish
from app.fileio.local import LocalFiles
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.commits import commit_table
from tests.builders.table_files import NamingFiles
from tests.builders.tables import FLIGHTS, SCHEMA, append, load_table, namespace_in

REAL, ALIAS = TableIdentifier(FLIGHTS, "real"), TableIdentifier(FLIGHTS, "alias")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    (tmp_path / "wh" / "real").mkdir(parents=True)
    (tmp_path / "wh" / "alias").symlink_to(tmp_path / "wh" / "real")
    server = server_on(f"sqlite:///{tmp_path}/icetower.db", LocalFiles())
    catalog = new_warehouse(server, root=f"file://{tmp_path}/wh")
    namespace_in(catalog)
    return catalog


def made(catalog: Catalog, identifier: TableIdentifier, folder: str) -> str:
    """Make a table in a folder of the warehouse, and return its metadata file."""
    location = f"{catalog.warehouse.root_location}/{folder}"
    found = named.create(catalog, NewTable(identifier, SCHEMA, None, None, location, {})).location
    assert found is not None
    return found


def owner_of(catalog: Catalog, identifier: TableIdentifier) -> Owner:
    metadata = load_table(catalog, identifier).metadata
    assert isinstance(metadata, TableMetadata)
    return Owner.of(metadata.uuid, catalog.load(TABLES, identifier).id, metadata)


def going(catalog: Catalog, identifier: TableIdentifier, *paths: str) -> list[str]:
    files = [Location(f"{catalog.warehouse.root_location}/{path}") for path in paths]
    found = deletable(catalog, owner_of(catalog, identifier), files)
    return [location.removeprefix(f"{catalog.warehouse.root_location}/") for location in found]


def write_old(location: str) -> None:
    LocalFiles().write_new(Location(location), b"rows")
    path = Path(location.removeprefix("file://"))
    then = path.stat().st_mtime - 10 * 24 * 3600
    os.utime(path, (then, then))


def test_of_two_tables_in_one_folder_neither_deletes(catalog: Catalog) -> None:
    made(catalog, REAL, "real")
    assert going(catalog, REAL, "real/data/a") == ["real/data/a"]
    made(catalog, ALIAS, "alias")

    assert going(catalog, ALIAS, "alias/data/a", "alias/metadata/b") == []
    assert going(catalog, REAL, "real/data/a", "real/metadata/b") == []


def test_a_table_alone_behind_a_link_deletes_its_files(catalog: Catalog) -> None:
    made(catalog, ALIAS, "alias")

    assert going(catalog, ALIAS, "alias/data/a") == ["alias/data/a"]


def test_a_table_that_moves_behind_a_link_claims_what_lies_there(catalog: Catalog) -> None:
    made(catalog, REAL, "real")
    made(catalog, ALIAS, "other")

    there = Location(f"{catalog.warehouse.root_location}/alias")
    commit_table(catalog, ALIAS, [], [SetLocation(location=there)])

    assert going(catalog, REAL, "real/data/a") == []


def test_warehouses_whose_roots_are_one_folder_keep_each_other_s_files(
    catalog: Catalog, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "wh")
    twin = new_warehouse(catalog.server, "twin", f"file://{tmp_path}/link")
    namespace_in(twin)
    made(catalog, REAL, "t")
    made(twin, ALIAS, "t")

    assert going(catalog, REAL, "t/data/a") == []
    assert going(twin, ALIAS, "t/data/a") == []


def test_a_file_system_table_behind_a_link_keeps_its_files(catalog: Catalog, tmp_path: Path) -> None:
    version = tmp_path / "wh" / "real" / "ns" / "t" / "metadata" / "v1.metadata.json"
    version.parent.mkdir(parents=True)
    version.write_text("{}")
    new_warehouse(catalog.server, "tree", f"file://{tmp_path}/wh/alias", layout=Layout.HADOOP)
    made(catalog, REAL, "real/ns")

    assert going(catalog, REAL, "real/ns/t/data/a", "real/ns/data/a") == ["real/ns/data/a"]


@pytest.mark.parametrize(("mine", "other"), [("real", "alias"), ("alias", "real")])
def test_a_file_that_another_table_names_through_a_link_stays(
    catalog: Catalog, mine: str, other: str
) -> None:
    made(catalog, REAL, mine)
    made(catalog, ALIAS, "elsewhere")
    root = catalog.warehouse.root_location
    named_file = f"@{root}/{other}/data/a.parquet"
    snapshot = NamingFiles(LocalFiles()).snapshot(load_table(catalog, ALIAS).metadata, [named_file])
    commit_table(catalog, ALIAS, [], append(snapshot))

    readers = OtherReaders(catalog, owner_of(catalog, REAL))
    doomed = [Location(f"{root}/{mine}/data/{name}.parquet") for name in ("a", "b")]

    assert readers.unread(doomed) == doomed[1:]


@pytest.mark.parametrize(("mine", "other"), [("real", "alias"), ("alias", "real")])
@pytest.mark.parametrize("reader", [REAL, ALIAS], ids=["own", "another"])
def test_a_file_that_is_named_through_a_link_is_no_orphan(
    catalog: Catalog, mine: str, other: str, reader: TableIdentifier
) -> None:
    made(catalog, REAL, mine)
    made(catalog, ALIAS, "elsewhere")
    root = catalog.warehouse.root_location
    for name in ("a", "b"):
        write_old(f"{root}/{mine}/data/{name}.parquet")
    named_file = f"@{root}/{other}/data/a.parquet"
    snapshot = NamingFiles(LocalFiles()).snapshot(load_table(catalog, reader).metadata, [named_file])
    commit_table(catalog, reader, [], append(snapshot))

    found = preview_orphans(catalog, REAL, OrphanWish()).files.values()

    assert [file.location for file in found] == [f"{root}/{mine}/data/b.parquet"]


def test_a_file_that_the_table_names_in_two_ways_does_not_expire_with_one_of_them(catalog: Catalog) -> None:
    made(catalog, REAL, "real")
    root, files = catalog.warehouse.root_location, NamingFiles(LocalFiles())
    for added, removed in ((["a", "b"], ()), ([f"@{root}/alias/data/a.parquet"], ["a", "b"])):
        snapshot = files.snapshot(load_table(catalog, REAL).metadata, added, removed)
        commit_table(catalog, REAL, [], append(snapshot))

    found = preview_expiry(catalog, REAL, ExpiryRequest(ExpiryWish(older_than_ms=1 << 50, retain_last=1)))

    assert found.unreachable is not None
    assert [file.location for file in found.unreachable.content] == [f"{root}/real/data/b.parquet"]


def test_registering_tells_of_a_table_behind_a_link(catalog: Catalog) -> None:
    made(catalog, REAL, "real")
    location = made(catalog, ALIAS, "alias")
    named.drop(catalog, TABLES, ALIAS)
    catalog.server.dropped.end(catalog.now_ms() + 8 * 24 * 3_600_000)

    check = check_registration(catalog, TABLES, ALIAS, location)

    assert "location-shared" in {finding.code for finding in check.findings}
