"""PyIceberg's threads append to one table whose property lets the server rebase them."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

WRITERS, APPENDS = 6, 4
PARTED = Schema(NestedField(1, "id", LongType()), NestedField(2, "part", StringType()))


def rows(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64())})


def stale_appends(tables: list[Table], numbers: list[int]) -> list[Exception]:
    """Append from tables that were loaded before any of them wrote, and do not try again; return what failed."""
    gate = threading.Barrier(len(tables))

    def append(table: Table, number: int) -> Exception | None:
        gate.wait()
        try:
            table.append(rows(number))
        except CommitFailedException as error:
            return error
        return None

    with ThreadPoolExecutor(len(tables)) as pool:
        return [error for error in pool.map(append, tables, numbers) if error is not None]


@pytest.mark.parametrize("version", [2])
def test_no_append_from_a_stale_table_is_refused_and_rows_are_the_union(
    catalog: RestCatalog, namespace: str, version: int
) -> None:
    # One attempt: a refusal would reach the caller.
    catalog.create_table(
        f"{namespace}.orders",
        schema=rows(0).schema,
        properties={
            "icetower.rebase": "appends",
            "icetower.guard": "reject",
            "commit.retry.num-retries": "0",
            "format-version": str(version),
        },
    )
    expected = []
    for turn in range(APPENDS):
        numbers = [turn * WRITERS + at for at in range(WRITERS)]
        tables = [catalog.load_table(f"{namespace}.orders") for _ in numbers]
        assert stale_appends(tables, numbers) == []
        expected += numbers

    found = catalog.load_table(f"{namespace}.orders")
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == expected
    assert len(list(found.snapshots())) == len(expected)
    head = found.current_snapshot()
    assert head is not None
    assert head.summary is not None
    assert head.summary["total-records"] == str(len(expected))


def test_delete_lands_beside_an_append_if_its_client_says_what_it_read(
    catalog: RestCatalog, namespace: str
) -> None:
    name = f"{namespace}.parts"
    table = catalog.create_table(
        name,
        schema=PARTED,
        partition_spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part")),
        properties={
            "icetower.rebase": "conflict-free",
            "icetower.guard": "reject",
            "commit.retry.num-retries": "0",
        },
    )
    table.append(parts((1, "a"), (2, "b")))
    says = {"type": "eq", "term": "part", "value": "a"}
    outspoken = RestCatalog(
        "outspoken", uri=catalog.uri, **{"header.X-Icetower-Conflict-Filter": json.dumps(says)}
    )
    silent, deleter = catalog.load_table(name), outspoken.load_table(name)
    catalog.load_table(name).append(parts((3, "b")))

    with pytest.raises(CommitFailedException):
        silent.delete("part = 'a'")
    deleter.delete("part = 'a'")

    found = catalog.load_table(name)
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [2, 3]
    assert [snapshot.summary.operation.value for snapshot in found.snapshots() if snapshot.summary] == [
        "append",
        "append",
        "delete",
    ]


def parts(*rows: tuple[int, str]) -> pa.Table:
    ids, names = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "part": pa.array(names, pa.string())})
