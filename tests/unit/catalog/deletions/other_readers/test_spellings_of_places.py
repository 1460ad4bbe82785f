"""Two warehouses may be in one place under different spellings: neither deletes what the other's tables name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.orphan_search import OrphanWish, search_orphans
from app.catalog.deletions.other_readers import OtherReaders
from app.catalog.tables import NewTable, purge_table
from app.database.warehouses import Layout
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.fileio.memory import MemoryFiles
from app.fileio.schemes import files_for
from tests.builders.catalogs import catalog_on, new_warehouse, with_rules
from tests.builders.commits import commit_table
from tests.builders.queues import work_off_one
from tests.builders.table_files import TableFiles
from tests.builders.tables import FLIGHTS, SCHEMA, append, load_table, namespace_in
from tests.servers.webhdfs import HdfsPlace

MINE, OTHER = TableIdentifier(FLIGHTS, "mine"), TableIdentifier(FLIGHTS, "other")
AZURE = {"adls.account-name": "acc"}
SPELLINGS = [
    ("hdfs://nn:8020/wh", "hdfs:///wh", {}),
    ("hdfs:///wh", "hdfs://nn:8020/wh", {}),
    ("hdfs://nn:8020/wh", "hdfs://prod/wh", {}),
    ("abfss://c@acc.dfs.core.windows.net/wh", "wasbs://c@acc.blob.core.windows.net/wh", {}),
    ("abfss://c@acc.dfs.core.windows.net/wh", "abfss://c/wh", AZURE),
    ("abfss://c/wh", "abfss://c@acc.dfs.core.windows.net/wh", AZURE),
]


class NamingFiles(TableFiles):
    """Names files wherever they are."""

    def _data_file(self, metadata: TableMetadata, name: str) -> DataFile:
        return DataFile(FileContent.DATA, Location(name), "parquet", metadata.default_spec_id, (), 1, 8)


@pytest.fixture(params=SPELLINGS, ids=lambda param: f"{param[0]}-{param[1]}")
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Catalog, Catalog]:
    """Two warehouses in one place, each with a table in a folder of its own."""
    mine, other, storage = request.param
    one = catalog_on(f"sqlite:///{tmp_path}/icetower.db", MemoryFiles())
    one = new_warehouse(one.server, "one", mine, storage=storage)
    two = new_warehouse(one.server, "two", other, storage=storage)
    for catalog, identifier, root in ((one, MINE, mine), (two, OTHER, other)):
        namespace_in(catalog)
        location = f"{root}/{identifier.name}"
        named.create(catalog, NewTable(identifier, SCHEMA, None, None, location, {}))
    return one, two


def name_file(catalog: Catalog, location: str) -> None:
    metadata = load_table(catalog, OTHER).metadata
    commit_table(catalog, OTHER, [], append(NamingFiles(catalog.files).snapshot(metadata, [location])))


def unread(catalog: Catalog, location: str) -> list[Location]:
    owner = Owner.of(load_table(catalog, MINE).metadata.uuid, catalog.load(TABLES, MINE).id)
    owner = replace(owner, places=Owner.of(owner.uuid, None, load_table(catalog, MINE).metadata).places)
    return OtherReaders(catalog, owner).unread([Location(location)])


def test_what_a_table_names_in_other_words_stays(both: tuple[Catalog, Catalog]) -> None:
    one, two = both
    name_file(two, f"{two.warehouse.root_location}/mine/data/a")

    root = one.warehouse.root_location
    assert unread(one, f"{root}/mine/data/a") == []
    assert unread(one, f"{root}/mine/data/b") == [f"{root}/mine/data/b"]


def test_what_the_guard_has_not_seen_is_looked_for(both: tuple[Catalog, Catalog]) -> None:
    one, two = both
    name_file(with_rules(two, guard_read_bytes=0), f"{two.warehouse.root_location}/mine/data/a")

    assert unread(one, f"{one.warehouse.root_location}/mine/data/a") == []


@pytest.fixture(params=["host", "no host"])
def on_hdfs(request: pytest.FixtureRequest, tmp_path: Path, hdfs: HdfsPlace) -> tuple[Catalog, Catalog]:
    """The same on one HDFS; the second warehouse is inside the first, whose table has its files there."""
    spelled = hdfs.new_root()
    bare = spelled.replace(f"hdfs://{hdfs.authority}/", "hdfs:///")
    mine, other = (spelled, bare) if request.param == "host" else (bare, spelled)
    one = catalog_on(f"sqlite:///{tmp_path}/icetower.db", files_for(hdfs.storage))
    one = new_warehouse(one.server, "one", mine, storage=hdfs.storage)
    namespace_in(one)
    named.create(one, NewTable(MINE, SCHEMA, None, None, mine, {}))
    two = new_warehouse(one.server, "two", f"{other}/two", storage=hdfs.storage)
    return one, two


def purge(catalog: Catalog, identifier: TableIdentifier) -> None:
    purge_table(catalog, identifier)
    while work_off_one(catalog.server):
        pass


def test_a_purge_keeps_away_from_a_table_of_another_warehouse(on_hdfs: tuple[Catalog, Catalog]) -> None:
    one, two = on_hdfs
    namespace_in(two)
    named.create(two, NewTable(OTHER, SCHEMA, None, None, None, {}))
    file = Location(f"{load_table(two, OTHER).metadata.location}/data/a")
    two.files.write_new(file, b"1")
    named_so = Location(file.replace(two.warehouse.root_location, f"{one.warehouse.root_location}/two"))
    metadata = load_table(one, MINE).metadata
    snapshot = NamingFiles(one.files).snapshot(metadata, [named_so, f"{metadata.location}/data/b"])
    one.files.write_new(Location(f"{metadata.location}/data/b"), b"1")
    commit_table(one, MINE, [], append(snapshot))

    purge(one, MINE)

    assert two.files.exists(file)
    left = {each.location for each in one.files.list_files(Location(one.warehouse.root_location))}
    assert all(location.startswith(f"{one.warehouse.root_location}/two/") for location in left)


def test_a_purge_keeps_what_a_file_system_table_names(on_hdfs: tuple[Catalog, Catalog]) -> None:
    one, _ = on_hdfs
    root = one.warehouse.root_location
    kept, gone = Location(f"{root}/data/kept"), Location(f"{root}/data/gone")
    for file in (kept, gone):
        one.files.write_new(file, b"1")
    metadata = load_table(one, MINE).metadata
    commit_table(one, MINE, [], append(NamingFiles(one.files).snapshot(metadata, [kept, gone])))
    other = one.server.warehouses.find("two")
    assert other is not None
    tree_root = other.root_location.removesuffix("/two")
    tree = new_warehouse(one.server, "tree", tree_root, storage=other.storage, layout=Layout.HADOOP)
    namespace_in(tree)
    named.create(tree, NewTable(OTHER, SCHEMA, None, None, None, {}))
    name_file(tree, kept.replace(root, tree_root))

    purge(one, MINE)

    assert (one.files.exists(kept), one.files.exists(gone)) == (True, False)


def test_orphans_and_purges_find_the_folders_of_a_table(on_hdfs: tuple[Catalog, Catalog]) -> None:
    one, _ = on_hdfs
    metadata = load_table(one, MINE).metadata

    found = search_orphans(one, one.load(TABLES, MINE), metadata, OrphanWish())
    assert found.listed_files > 0

    purge(one, MINE)
    assert list(one.files.list_files(metadata.location)) == []
