"""Equality deletes that are committed through Iceberg's Java API, as streaming writers do."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.servers.spark import Sql, path_of


def java_table(sql: Sql, table: str) -> Any:
    """Return a table as Iceberg's Java client knows it now."""
    jvm: Any = sql.spark._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        sql.spark._jsparkSession, f"{sql.catalog}.{sql.namespace}.{table}"
    )


def add_equality_deletes(sql: Sql, table: str, ids: list[int], beside: Any = None) -> None:
    """Delete rows by their `id`, the first column, an int.

    Args:
        beside: a data file, whose partition spec and partition the deletes get instead of the table's spec.
    """
    jvm: Any = sql.spark._jvm
    java = java_table(sql, table)
    location = f"{java.location()}/data/equality-{'-'.join(map(str, ids))}.parquet"
    path = path_of(location)
    column = pa.field("id", pa.int32(), metadata={b"PARQUET:field_id": b"1"})
    pq.write_table(pa.table([pa.array(ids, pa.int32())], schema=pa.schema([column])), path)
    size = path.stat().st_size
    spec = java.spec() if beside is None else java.specs().get(beside.specId())
    builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(spec)
    if beside is not None:
        builder = builder.withPartition(beside.partition())
    key = sql.spark.sparkContext._gateway.new_array(jvm.int, 1)  # type: ignore[union-attr]  # a gateway is there
    key[0] = 1
    file = (
        builder.ofEqualityDeletes(key)
        .withPath(location)
        .withFormat("parquet")
        .withFileSizeInBytes(size)
        .withRecordCount(len(ids))
        .build()
    )
    java.newRowDelta().addDeletes(file).commit()
    sql(f"REFRESH TABLE {table}")
