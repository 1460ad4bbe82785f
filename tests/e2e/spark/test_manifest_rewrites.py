"""F24: manifests rewritten by the server, beside Iceberg's own procedure."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.servers.spark import Sql

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def rewrite(sql: Sql, uri: str, table: str, **wish: Any) -> dict[str, Any]:
    body = {name.replace("_", "-"): value for name, value in wish.items()}
    answer = httpx.post(f"{uri}/v1/namespaces/{sql.namespace}/tables/{table}/rewrite-manifests", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def make_table(sql: Sql, table: str, version: int) -> None:
    """Twelve appends over four partitions each, and deletes that stay beside the data."""
    mode = "merge-on-read" if version > 1 else "copy-on-write"
    sql(
        f"CREATE TABLE {table} (number int, region string, word string) USING iceberg"
        f" PARTITIONED BY (region) TBLPROPERTIES ('format-version' = '{version}',"
        f" 'write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}',"
        " 'commit.manifest-merge.enabled' = 'false')"
    )
    for start in range(0, 48, 4):
        sql(
            f"INSERT INTO {table} SELECT CAST(id AS int), concat('r', id % 4), 'w'"
            f" FROM range({start}, {start + 4})"
        )
    sql(f"DELETE FROM {table} WHERE number IN (5, 9)")
    sql(f"UPDATE {table} SET word = 'changed' WHERE number IN (6, 14)")


def rows_of(sql: Sql, table: str, version: int) -> list[tuple[Any, ...]]:
    lineage = ", _row_id, _last_updated_sequence_number" if version > 2 else ""
    return sorted(sql(f"SELECT number, region, word, _file, _pos{lineage} FROM {table}"))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_f24_manifests_are_rewritten_by_the_server_and_spark_reads_the_same_rows(
    sql: Sql, sqlite_server: str, version: int
) -> None:
    make_table(sql, "ours", version)
    before, entries = rows_of(sql, "ours", version), live_entries(sql, "ours")
    count = sql.one("SELECT count(*) FROM our.ours.manifests")

    done = rewrite(sql, sqlite_server, "ours")
    sql("REFRESH TABLE ours")

    print(done, sql("SELECT snapshot_id, operation, summary FROM our.ours.snapshots")[-1])
    assert rows_of(sql, "ours", version) == before
    assert live_entries(sql, "ours") == entries
    assert (
        sql.one("SELECT count(*) FROM our.ours.manifests")
        == done["manifests-created"] + done["manifests-kept"]
    )
    assert done["manifests-created"] < count


def live_entries(sql: Sql, table: str) -> list[tuple[Any, ...]]:
    return sorted(
        sql(
            "SELECT data_file.file_path, snapshot_id, sequence_number, file_sequence_number,"
            f" data_file.record_count, data_file.content FROM our.{table}.entries WHERE status < 2"
        )
    )
