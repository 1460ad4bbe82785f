"""PyIceberg reads what was appended by reference, and goes on writing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import (
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.builders.parquet_files import parquet

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "region", StringType()),
    NestedField(3, "at", TimestampType()),
    NestedField(4, "place", StructType(NestedField(5, "shelf", IntegerType()))),
    NestedField(6, "tags", ListType(7, StringType(), element_required=False)),
)
SPEC = PartitionSpec(
    PartitionField(2, 1000, IdentityTransform(), "region"),
    PartitionField(1, 1001, BucketTransform(4), "shard"),
)
ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("region", pa.string()),
        ("at", pa.timestamp("us")),
        ("place", pa.struct([("shelf", pa.int32())])),
        ("tags", pa.list_(pa.string())),
    ]
)


def row(number: int, region: str | None) -> dict[str, Any]:
    tags = None if number % 2 else ["x", None]
    return {"id": number, "region": region, "at": number * 1000, "place": {"shelf": number}, "tags": tags}


def rows(*found: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(found), schema=ARROW)


def appended(catalog: RestCatalog, table: Table, name: str, content: pa.Table, **more: Any) -> None:
    """Put a file into a table's folder, and append it through our own client."""
    folder = Path(table.location().removeprefix("file://"), "data")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(parquet(content))
    namespace, own_name = table.name()
    with RemoteCatalog(catalog.uri) as client:
        identifier = TableIdentifier(Namespace((namespace,)), own_name)
        client.appends.append(identifier, [{"file-path": f"{table.location()}/data/{name}", **more}])
    table.refresh()


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_rows_are_read_filtered_and_written_after(catalog: RestCatalog, namespace: str, version: str) -> None:
    table = catalog.create_table(f"{namespace}.t", SCHEMA, properties={"format-version": version})
    appended(catalog, table, "1.parquet", rows(row(1, "eu"), row(2, None)))
    appended(catalog, table, "2.parquet", rows(row(3, "us"), row(4, "us")))

    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    (found,) = table.scan(row_filter="region = 'eu'").to_arrow().to_pylist()
    assert (found["id"], found["place"], found["tags"]) == (1, {"shelf": 1}, None)
    assert len(list(table.scan(row_filter="id >= 3").plan_files())) == 1
    if version == "3":
        return  # PyIceberg 0.12 reads such tables, and writes none

    table.append(rows(row(5, "eu")))
    table.delete("id = 3")
    appended(catalog, table, "3.parquet", rows(row(6, "eu")))

    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 4, 5, 6]
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["total-records"] == "5"


def test_partitions_that_were_derived_or_given_prune_as_those_of_pyiceberg(
    catalog: RestCatalog, namespace: str
) -> None:
    table = catalog.create_table(f"{namespace}.t", SCHEMA, partition_spec=SPEC)
    shards = {number: BucketTransform(4).transform(LongType())(number) for number in range(1, 40)}
    same = [number for number in range(2, 40) if shards[number] == shards[1]]
    appended(catalog, table, "1.parquet", rows(row(1, "eu")))
    # Of two ids the bucket cannot be derived, and has to be given.
    two = rows(row(1, "us"), row(same[0], "us"))
    with pytest.raises(Exception, match="cannot be derived"):
        appended(catalog, table, "2.parquet", two)
    appended(catalog, table, "2.parquet", two, partition={"shard": shards[1]})
    files = list(table.scan().plan_files())
    found = {(task.file.partition[0], task.file.partition[1]) for task in files}
    assert found == {("eu", shards[1]), ("us", shards[1])}
    assert len(files) == 2
    assert table.scan(row_filter="region = 'us' and id = 1").to_arrow().num_rows == 1
    table.delete("region = 'us'")
    assert sorted(table.scan().to_arrow()["region"].to_pylist()) == ["eu"]


def test_add_files_of_pyiceberg_and_an_append_leave_the_same_file(
    catalog: RestCatalog, namespace: str
) -> None:
    theirs = catalog.create_table(f"{namespace}.theirs", SCHEMA, properties={"icetower.guard": "off"})
    ours = catalog.create_table(f"{namespace}.ours", SCHEMA)
    content = rows(row(1, "eu"), row(2, "a very long name of a region"))
    appended(catalog, ours, "1.parquet", content)
    theirs.add_files([f"{ours.location()}/data/1.parquet"])

    for name in theirs.inspect.files().column_names:
        # They leave out the bounds of fields of structs, which Java has.
        if name in {"readable_metrics", "lower_bounds", "upper_bounds"}:
            continue
        assert (ours.inspect.files()[name].to_pylist()[0] or None) == (
            theirs.inspect.files()[name].to_pylist()[0] or None
        ), name
    assert ours.name_mapping() == theirs.name_mapping()
    answer = httpx.get(f"{catalog.uri}/v1/namespaces/{namespace}/tables/ours/snapshots/main/files")
    assert answer.json()["files"][0]["record-count"] == 2
