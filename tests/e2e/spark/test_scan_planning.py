"""Tables that Spark wrote, read by a PyIceberg that leaves planning to the server: the rows stay the same."""

from __future__ import annotations

from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.table import Table

from tests.servers.spark import Sql

pytestmark = pytest.mark.spark

FILTERS: tuple[str | BooleanExpression, ...] = (
    AlwaysTrue(),
    "id = 7",
    "id in (3, 25, 1000)",
    "id > 20 and word is not null",
    "word is null or id < 5",
    "word = 'w2' and not (id = 12)",
    "at >= '2026-01-03T00:00:00' and at < '2026-01-05T00:00:00'",
    "id < 0",
)


@pytest.fixture
def tables(sqlite_server: str) -> tuple[RestCatalog, RestCatalog]:
    """A catalog that leaves planning to the server, and one that plans itself."""
    return (
        RestCatalog("server", uri=sqlite_server, **{"scan-planning-mode": "server"}),
        RestCatalog("client", uri=sqlite_server, **{"scan-planning-mode": "client"}),
    )


def rows(table: Table, condition: str | BooleanExpression, **more: Any) -> pa.Table:
    return table.scan(row_filter=condition, **more).to_arrow().sort_by("id")


def write(sql: Sql, name: str, version: int) -> None:
    """Make a table in days and words, evolve its partitioning and columns, and delete some rows of it."""
    properties = [f"'format-version'='{version}'"]
    if version > 1:
        properties += [f"'write.{kind}.mode'='merge-on-read'" for kind in ("delete", "update", "merge")]
    sql(
        f"CREATE TABLE {name} (id BIGINT, word STRING, at TIMESTAMP_NTZ) USING iceberg "
        f"PARTITIONED BY (days(at)) TBLPROPERTIES ({', '.join(properties)})"
    )
    values = ", ".join(
        f"({number}, 'w{number % 4}', timestamp_ntz'2026-01-{number % 9 + 1:02} 10:00:00')"
        for number in range(40)
    )
    sql(f"INSERT INTO {name} VALUES {values}")
    sql(f"DELETE FROM {name} WHERE id IN (7, 19)")
    sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(4, id)")
    sql(f"ALTER TABLE {name} ADD COLUMN price DOUBLE")
    sql(f"INSERT INTO {name} VALUES (1000, 'w1', timestamp_ntz'2026-01-04 10:00:00', 1.5)")
    sql(f"UPDATE {name} SET word = 'w2' WHERE id = 12")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_are_the_same_whoever_plans(
    sql: Sql, tables: tuple[RestCatalog, RestCatalog], version: int
) -> None:
    write(sql, "planned", version)
    by_server, by_client = (catalog.load_table((sql.namespace, "planned")) for catalog in tables)

    for condition in FILTERS:
        assert rows(by_server, condition).equals(rows(by_client, condition)), condition
    for snapshot in by_client.snapshots():
        then = {"snapshot_id": snapshot.snapshot_id}
        assert rows(by_server, "id < 20", **then).equals(rows(by_client, "id < 20", **then))
    assert rows(by_server, AlwaysTrue()).num_rows == 39


@pytest.mark.parametrize(("version", "kind"), [(2, "parquet"), (3, "puffin")])
def test_deletes_are_told_with_the_files_they_are_about(
    sql: Sql, sqlite_server: str, version: int, kind: str
) -> None:
    write(sql, "planned", version)

    answer = httpx.post(
        f"{sqlite_server}/v1/namespaces/{sql.namespace}/tables/planned/plan",
        json={"filter": {"type": "in", "term": "id", "values": [7, 16, 25]}},
    ).json()

    assert {file["file-format"] for file in answer["delete-files"]} == {kind}
    assert any("delete-file-references" in task for task in answer["file-scan-tasks"])
    if kind == "puffin":
        needed = {"referenced-data-file", "content-offset", "content-size-in-bytes"}
        assert all(needed <= file.keys() for file in answer["delete-files"])


def test_equality_of_names_in_another_case(sql: Sql, tables: tuple[RestCatalog, RestCatalog]) -> None:
    write(sql, "planned", 2)
    by_server, by_client = (catalog.load_table((sql.namespace, "planned")) for catalog in tables)

    found = [rows(table, "ID > 30", case_sensitive=False) for table in (by_server, by_client)]

    assert found[0].num_rows == 10
    assert found[0].equals(found[1])
