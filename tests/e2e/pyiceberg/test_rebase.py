"""PyIceberg's threads append to one table whose property lets the server rebase them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

WRITERS, APPENDS = 6, 4


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
