"""Which files may go on behalf of a table: its points, one by one."""

from __future__ import annotations

import json
import uuid

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner, deletable
from app.catalog.context.kinds import TABLES, VIEWS
from app.catalog.exports.export_files import export_folder
from app.catalog.tables import NewTable
from app.catalog.views import NewView
from app.engine.change.updates import AssignUuid, SetLocation, SetProperties
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.engine.model.table_metadata import TableMetadata
from tests.builders.catalogs import new_warehouse
from tests.builders.commits import commit_table
from tests.builders.tables import FLIGHTS, SCHEMA, load_table, namespace_in, view_version

T, U = TableIdentifier(FLIGHTS, "t"), TableIdentifier(FLIGHTS, "u")


def table(catalog: Catalog, identifier: TableIdentifier, location: str, **properties: str) -> Location:
    namespace_in(catalog)
    named_so = {name.replace("_", "."): value for name, value in properties.items()}
    new = NewTable(identifier, SCHEMA, None, None, f"memory://wh/{location}", named_so)
    found = named.create(catalog, new).location
    assert found is not None
    return found


def going(catalog: Catalog, *files: str, of: TableIdentifier = T) -> set[str]:
    """Return which files may go on behalf of a table."""
    metadata = load_table(catalog, of).metadata
    assert isinstance(metadata, TableMetadata)
    pointer = catalog.load(TABLES, of)
    owner = Owner.of(metadata.uuid, pointer.id, metadata)
    return set(deletable(catalog, owner, [Location(file) for file in files]))


def test_only_what_lies_in_the_table_s_own_places(catalog: Catalog) -> None:
    table(catalog, T, "t", write_data_path="memory://wh/d")

    inside = {"memory://wh/t/data/a", "memory://wh/d/a"}
    assert going(catalog, *inside, "memory://wh/t2/a", "memory://wh/a", "memory://elsewhere/t/a") == inside


def test_no_current_metadata_file_of_any_pointer(catalog: Catalog) -> None:
    own = table(catalog, T, "t")
    assert going(catalog, own) == set()

    # Not even if this very request wrote it.
    assert deletable(catalog, None, [own, Location("memory://wh/t/metadata/other.json")]) == [
        "memory://wh/t/metadata/other.json"
    ]


@pytest.mark.parametrize(
    ("mine", "other"), [("", "u"), ("u", "u"), ("u/data", "u"), ("u/data/x", "u"), ("u", "u/deeper")]
)
def test_nothing_in_a_folder_of_another_table(catalog: Catalog, mine: str, other: str) -> None:
    table(catalog, T, mine)
    table(catalog, U, other)

    assert going(catalog, f"memory://wh/{other}/data/x/a", f"memory://wh/{other}/metadata/b") == set()


def test_no_export_though_the_table_lies_around_it(catalog: Catalog) -> None:
    table(catalog, T, "")
    export = f"{export_folder('memory://wh', 'default')}/1.ndjson.gz"

    assert going(catalog, export, "memory://wh/data/a") == {"memory://wh/data/a"}


def test_a_table_around_others_keeps_the_right_to_its_own_files(catalog: Catalog) -> None:
    table(catalog, T, "")
    table(catalog, U, "u")

    assert going(catalog, "memory://wh/data/a", "memory://wh/u/data/a") == {"memory://wh/data/a"}


def test_places_that_another_table_names_or_has_named(catalog: Catalog) -> None:
    table(catalog, T, "")
    table(catalog, U, "u", write_data_path="memory://wh/d")
    commit_table(catalog, U, [], [SetLocation(location=Location("memory://wh/v"))])
    commit_table(catalog, U, [], [SetProperties(updates={"write.data.path": "memory://wh/e"})])
    commit_table(catalog, U, [], [SetProperties(updates={"write.metadata.path": "memory://wh/m"})])

    files = {f"memory://wh/{place}/a" for place in ("u", "d", "v", "e", "m", "x")}
    assert going(catalog, *files) == {"memory://wh/x/a"}


def test_places_of_views_and_of_other_warehouses_count(catalog: Catalog) -> None:
    table(catalog, T, "")
    named.create(catalog, NewView(U, SCHEMA, view_version(), "memory://wh/view", {}))
    twin = new_warehouse(catalog.server, "twin", "memory://wh")
    table(twin, U, "in-twin")

    files = {f"memory://wh/{place}/a" for place in ("view", "in-twin", "x")}
    assert going(catalog, *files) == {"memory://wh/x/a"}
    named.drop(catalog, VIEWS, U)
    named.drop(twin, TABLES, U)
    assert going(catalog, *files) == {"memory://wh/x/a"}, "they can come back"
    catalog.server.dropped.end(catalog.now_ms() + 8 * 24 * 3_600_000)
    assert going(catalog, *files) == files


def test_places_are_the_same_however_they_are_spelled(catalog: Catalog) -> None:
    at_root = new_warehouse(catalog.server, "s3", "s3://b/wh")
    namespace_in(at_root)
    for identifier, location in ((T, "s3a://b/wh"), (U, "s3n://b/wh/u")):
        named.create(at_root, NewTable(identifier, SCHEMA, None, None, location, {}))

    assert going(at_root, "s3://b/wh/u/a", "s3a://b/wh/x/a") == {"s3a://b/wh/x/a"}
    current = catalog.server.pointers.find(at_root.warehouse.id, T)
    assert current is not None
    assert deletable(at_root, None, [Location(current.metadata_location.replace("s3a:", "s3:"))]) == []


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        ("hdfs:///wh", "hdfs://nn:8020/wh"),
        ("hdfs://nn:8020/wh", "hdfs:///wh"),
        ("hdfs://nn/wh", "hdfs://nn:8020/wh"),
        ("hdfs://nn1:8020/wh", "hdfs://prod/wh"),
        ("hdfs://NN:8020/wh", "hdfs://nn:8020/wh"),
        ("wasbs://c@acc.blob.core.windows.net/wh", "abfss://c@acc.dfs.core.windows.net/wh"),
        ("abfs://c@ACC.dfs.core.windows.net/wh", "wasb://c@acc.blob.core.windows.net/wh"),
        ("abfss://c@acc.dfs.core.windows.net/wh", "abfss://c/wh"),
        ("abfss://c/wh", "abfss://c@acc.dfs.core.windows.net/wh"),
        ("file:/wh", "file:///wh/"),
        ("/wh/", "file:///wh"),
        ("s3n://b/wh/", "s3a://b/wh"),
    ],
)
def test_a_place_that_another_warehouse_may_name_in_other_words(
    catalog: Catalog, mine: str, other: str
) -> None:
    """No text says which cluster `hdfs:///` is, or whether two hosts are one: what may be the same stays."""
    one, two = (
        new_warehouse(catalog.server, name, root, storage={"adls.account-name": "acc"})
        for name, root in (("one", mine), ("two", other))
    )
    for each, identifier, location in ((one, T, mine), (two, U, f"{other.rstrip('/')}/u")):
        namespace_in(each)
        named.create(each, NewTable(identifier, SCHEMA, None, None, location, {}))
    start = mine.rstrip("/")

    assert going(one, f"{start}/u/data/a", f"{start}/x/a") == {f"{start}/x/a"}
    named.drop(two, TABLES, U)
    assert going(one, f"{start}/u/data/a") == set(), "it can come back"


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        ("s3://b/wh", "s3://c/wh"),
        ("abfss://c@one.dfs.core.windows.net/wh", "abfss://c@two.dfs.core.windows.net/wh"),
        ("abfss://c@one.dfs.core.windows.net/wh", "abfss://d@one.dfs.core.windows.net/wh"),
        ("hdfs:///wh", "s3://wh/wh"),
    ],
)
def test_a_place_of_the_same_path_in_another_store(catalog: Catalog, mine: str, other: str) -> None:
    one, two = (new_warehouse(catalog.server, name, root) for name, root in (("one", mine), ("two", other)))
    for each, location in ((one, mine), (two, other)):
        namespace_in(each)
        named.create(each, NewTable(T, SCHEMA, None, None, location, {}))

    assert going(one, f"{mine}/data/a", f"{other}/data/a") == {f"{mine}/data/a"}


def test_twins_keep_everything(catalog: Catalog) -> None:
    location = table(catalog, T, "t")
    assert going(catalog, "memory://wh/t/a")

    named.register(catalog, TABLES, U, location)

    assert going(catalog, "memory://wh/t/a") == set()


def test_a_table_that_has_or_had_no_uuid_keeps_everything(catalog: Catalog) -> None:
    nameless = nameless_table(catalog)
    named.register(catalog, TABLES, T, nameless)
    assert going(catalog, "memory://wh/old/a") == set()

    commit_table(catalog, T, [], [AssignUuid(uuid=TableUuid(str(uuid.uuid4())))])

    assert load_table(catalog, T).metadata.uuid != ""
    assert going(catalog, "memory://wh/old/a") == set()


def nameless_table(catalog: Catalog) -> Location:
    """Write metadata of version 1 without a uuid, as old writers did."""
    namespace_in(catalog)
    document = {
        "format-version": 1,
        "location": "memory://wh/old",
        "last-updated-ms": 1,
        "last-column-id": 1,
        "schema": {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]},
        "partition-spec": [],
    }
    location = Location("memory://wh/old/metadata/v1.metadata.json")
    catalog.files.write_new(location, json.dumps(document).encode())
    return location


def test_any_number_of_files_can_be_asked_for(catalog: Catalog) -> None:
    table(catalog, T, "t")
    files = {f"memory://wh/t/data/{number % 300}/{number}/a" for number in range(20_000)}

    assert going(catalog, *files, "memory://wh/x") == files


def test_nothing_of_what_belongs_to_another_catalog(catalog: Catalog) -> None:
    location = table(catalog, T, "t")
    assert going(catalog, "memory://wh/t/data/a") == {"memory://wh/t/data/a"}

    named.register(catalog, TABLES, T, location, overwrite=True, read_only=True)

    assert going(catalog, "memory://wh/t/data/a") == set()
