"""PyIceberg's whole catalog API: namespaces, tables and views by name."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "word", StringType()))
WORDS = pa.table(
    {"id": [1, 2, 3], "word": ["one", "two", None]},
    schema=pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("word", pa.string())]),
)


def files_under(location: str) -> set[Path]:
    folder = Path(location.removeprefix("file://"))
    return {file for file in folder.rglob("*") if file.is_file()}


def view_version(sql: str, namespace: str) -> ViewVersion:
    spark = ViewRepresentation(SQLViewRepresentation(type="sql", sql=sql, dialect="spark"))
    return ViewVersion(
        schema_id=0, summary={"engine-name": "test"}, representations=[spark], default_namespace=(namespace,)
    )


def test_namespaces_nest_and_are_listed_by_level(catalog: RestCatalog, namespace: str) -> None:
    catalog.create_namespace((namespace, "a"), {"owner": "ice"})
    catalog.create_namespace((namespace, "a", "b"))
    catalog.create_namespace((namespace, "dots.and spaces/ü 🧊"))

    assert (namespace,) in catalog.list_namespaces()
    assert sorted(catalog.list_namespaces(namespace)) == [
        (namespace, "a"),
        (namespace, "dots.and spaces/ü 🧊"),
    ]
    assert catalog.list_namespaces((namespace, "a")) == [(namespace, "a", "b")]
    assert catalog.load_namespace_properties((namespace, "a"))["owner"] == "ice"
    assert catalog.namespace_exists((namespace, "a", "b"))
    assert not catalog.namespace_exists((namespace, "b"))

    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace((namespace, "a"))
    with pytest.raises(NoSuchNamespaceError, match=f"Namespace does not exist: {namespace}.nowhere"):
        catalog.list_namespaces((namespace, "nowhere"))


def test_namespace_properties_are_updated_and_removed(catalog: RestCatalog, namespace: str) -> None:
    catalog.update_namespace_properties(namespace, updates={"a": "1", "b": "2"})

    summary = catalog.update_namespace_properties(
        namespace, removals={"a", "never"}, updates={"b": "3", "c": "4"}
    )

    assert (summary.removed, sorted(summary.updated), summary.missing) == (["a"], ["b", "c"], ["never"])
    properties = catalog.load_namespace_properties(namespace)
    assert properties == {"b": "3", "c": "4", "location": properties["location"]}
    with pytest.raises(NoSuchNamespaceError):
        catalog.update_namespace_properties("nowhere", updates={"a": "1"})


def test_only_an_empty_namespace_is_dropped(catalog: RestCatalog, namespace: str) -> None:
    catalog.create_table((namespace, "t"), SCHEMA)
    with pytest.raises(NamespaceNotEmptyError, match="is not empty"):
        catalog.drop_namespace(namespace)

    catalog.drop_table((namespace, "t"))
    catalog.drop_namespace(namespace)

    assert not catalog.namespace_exists(namespace)
    with pytest.raises(NoSuchNamespaceError):
        catalog.drop_namespace(namespace)


def test_create_and_load_tell_the_same_table(catalog: RestCatalog, namespace: str) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "shard"))
    order = SortOrder(SortField(2, IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST))

    created = catalog.create_table(
        (namespace, "t"), SCHEMA, partition_spec=spec, sort_order=order, properties={"owner": "ice"}
    )
    loaded = catalog.load_table((namespace, "t"))

    assert loaded == created
    assert loaded.schema().as_struct() == SCHEMA.as_struct()
    assert loaded.spec() == PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "shard"), spec_id=0)
    assert [(f.source_id, f.direction, f.null_order) for f in loaded.sort_order().fields] == [
        (2, SortDirection.DESC, NullOrder.NULLS_LAST)
    ]
    assert loaded.properties["owner"] == "ice"
    assert loaded.metadata_location in {f"file://{file}" for file in files_under(loaded.location())}
    assert catalog.table_exists((namespace, "t"))


def test_names_are_unique_and_must_exist(catalog: RestCatalog, namespace: str) -> None:
    catalog.create_table((namespace, "t"), SCHEMA)

    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table((namespace, "t"), SCHEMA)
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table(("nowhere", "t"), SCHEMA)
    with pytest.raises(NoSuchTableError):
        catalog.load_table((namespace, "missing"))
    with pytest.raises(NoSuchTableError):
        catalog.drop_table((namespace, "missing"))
    assert not catalog.table_exists((namespace, "missing"))
    found = catalog.create_table_if_not_exists((namespace, "t"), Schema())
    assert found.schema().as_struct() == SCHEMA.as_struct()
    assert catalog.list_tables(namespace) == [(namespace, "t")]


def test_tables_are_listed_over_many_pages(catalog: RestCatalog, namespace: str) -> None:
    names = [f"t{number:02}" for number in range(7)]
    for name in names:
        catalog.create_table((namespace, name), SCHEMA)

    paged = RestCatalog("paged", uri=catalog.uri, **{"page-size": "3"})

    assert sorted(paged.list_tables(namespace)) == [(namespace, name) for name in names]


def test_rename_keeps_everything_but_the_name(catalog: RestCatalog, namespace: str) -> None:
    catalog.create_namespace((namespace, "other"))
    table = catalog.create_table((namespace, "t"), SCHEMA)
    table.append(WORDS)

    renamed = catalog.rename_table((namespace, "t"), (namespace, "other", "u"))

    assert (renamed.metadata, renamed.metadata_location) == (table.metadata, table.metadata_location)
    assert renamed.scan().to_arrow().equals(WORDS)
    assert not catalog.table_exists((namespace, "t"))
    with pytest.raises(NoSuchNamespaceError):
        catalog.rename_table((namespace, "other", "u"), ("nowhere", "u"))
    catalog.create_table((namespace, "v"), SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table((namespace, "v"), (namespace, "other", "u"))


def test_drop_keeps_files_and_register_brings_them_back(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), SCHEMA)
    table.append(WORDS)
    files = files_under(table.location())

    catalog.drop_table((namespace, "t"))
    registered = catalog.register_table((namespace, "again"), table.metadata_location)

    assert files_under(table.location()) == files
    assert registered.metadata == table.metadata
    assert registered.metadata_location == table.metadata_location
    assert registered.scan().to_arrow().equals(WORDS)
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table((namespace, "again"), table.metadata_location)


def test_new_column_of_a_table_registered_with_low_counters_has_no_old_values(
    catalog: RestCatalog, namespace: str
) -> None:
    table = catalog.create_table((namespace, "t"), SCHEMA)
    table.append(WORDS)
    with table.update_schema() as update:
        update.delete_column("word")
    file = Path(table.metadata_location.removeprefix("file://"))
    low = file.with_name("00009-00000000-0000-4000-8000-000000000009.metadata.json")
    low.write_text(json.dumps(json.loads(file.read_text()) | {"last-column-id": 1}))
    catalog.drop_table((namespace, "t"))

    registered = catalog.register_table((namespace, "t"), f"file://{low}")
    with registered.update_schema() as update:
        update.add_column("note", StringType())

    assert registered.scan().to_arrow()["note"].null_count == WORDS.num_rows


def test_register_with_overwrite_goes_back_to_older_metadata(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), SCHEMA)
    table.append(WORDS)
    earlier = table.metadata_location
    table.append(WORDS)

    registered = catalog.register_table((namespace, "t"), earlier, overwrite=True)

    assert registered.scan().count() == 3
    assert catalog.load_table((namespace, "t")).metadata_location == earlier


def test_a_staged_table_exists_once_committed(catalog: RestCatalog, namespace: str) -> None:
    transaction = catalog.create_table_transaction((namespace, "t"), SCHEMA, properties={"owner": "ice"})
    transaction.append(WORDS)
    with transaction.update_schema() as update:
        update.add_column("length", LongType())
    assert not catalog.table_exists((namespace, "t"))

    committed = transaction.commit_transaction()

    table = catalog.load_table((namespace, "t"))
    assert table.metadata.table_uuid == committed.metadata.table_uuid
    assert table.scan().to_arrow().column("length").null_count == 3
    assert len(table.history()) == 1


def test_of_two_staged_tables_of_one_name_one_wins(catalog: RestCatalog, namespace: str) -> None:
    first = catalog.create_table_transaction((namespace, "t"), SCHEMA)
    second = catalog.create_table_transaction((namespace, "t"), SCHEMA)
    first.append(WORDS)
    second.append(WORDS)

    winner = first.commit_transaction()
    with pytest.raises(Exception, match="table already exists"):
        second.commit_transaction()

    assert catalog.load_table((namespace, "t")).metadata.table_uuid == winner.metadata.table_uuid


def test_views_are_created_loaded_listed_and_dropped(catalog: RestCatalog, namespace: str) -> None:
    created = catalog.create_view(
        (namespace, "v"),
        SCHEMA,
        view_version("SELECT 1 AS id, 'one' AS word", namespace),
        properties={"a": "1"},
    )

    loaded = catalog.load_view((namespace, "v"))

    assert loaded == created
    assert loaded.schema().as_struct() == SCHEMA.as_struct()
    assert loaded.properties == {"a": "1"}
    representation = loaded.sql_for("spark")
    assert representation is not None
    assert representation.sql == "SELECT 1 AS id, 'one' AS word"
    assert catalog.list_views(namespace) == [(namespace, "v")]
    assert catalog.list_tables(namespace) == []
    assert catalog.view_exists((namespace, "v"))
    assert not catalog.table_exists((namespace, "v"))

    catalog.drop_view((namespace, "v"))
    assert not catalog.view_exists((namespace, "v"))
    with pytest.raises(NoSuchViewError):
        catalog.drop_view((namespace, "v"))
    with pytest.raises(NoSuchViewError):
        catalog.load_view((namespace, "v"))


def test_views_and_tables_share_their_names(catalog: RestCatalog, namespace: str) -> None:
    catalog.create_table((namespace, "t"), SCHEMA)
    version = view_version("SELECT 1", namespace)
    catalog.create_view((namespace, "v"), SCHEMA, version)

    with pytest.raises(ViewAlreadyExistsError, match="Table with same name already exists"):
        catalog.create_view((namespace, "t"), SCHEMA, version)
    with pytest.raises(ViewAlreadyExistsError, match="View already exists"):
        catalog.create_view((namespace, "v"), SCHEMA, version)
    with pytest.raises(TableAlreadyExistsError, match="View with same name already exists"):
        catalog.create_table((namespace, "v"), SCHEMA)
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(namespace)
