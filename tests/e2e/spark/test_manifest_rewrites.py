"""F24 and F25: upkeep of manifests, deletes and statistics by the server, beside Iceberg's own procedures."""

from __future__ import annotations

from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from tests.servers.spark import Sql, nightly, path_of

pytestmark = pytest.mark.spark

STATISTICS = "partition-statistics"
DANGLING = "remove-dangling-deletes"


def ask(sql: Sql, uri: str, table: str, what: str = "rewrite-manifests", **wish: Any) -> dict[str, Any]:
    body = {name.replace("_", "-"): value for name, value in wish.items()}
    answer = httpx.post(f"{uri}/v1/namespaces/{sql.namespace}/tables/{table}/{what}", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    sql(f"REFRESH TABLE {table}")
    found: dict[str, Any] = answer.json()
    return found


def make_table(sql: Sql, table: str, version: int) -> None:
    """Twelve appends to four partitions each, and deletes that stay beside the data."""
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


def live_entries(sql: Sql, table: str) -> list[tuple[Any, ...]]:
    return sorted(
        sql(
            "SELECT data_file.file_path, snapshot_id, sequence_number, file_sequence_number,"
            f" data_file.record_count, data_file.content FROM our.{table}.entries WHERE status < 2"
        )
    )


def summary_of(sql: Sql, table: str) -> dict[str, str]:
    newest = sql(f"SELECT summary FROM our.{table}.snapshots ORDER BY committed_at")[-1][0]
    found: dict[str, str] = newest
    return {name: value for name, value in found.items() if "manifest" in name or "-" in name}


@pytest.mark.parametrize("version", [nightly(1), 2, 3])
def test_f24_manifests_are_rewritten_by_the_server_and_spark_reads_the_same_rows(
    sql: Sql, sqlite_server: str, version: int
) -> None:
    make_table(sql, "ours", version)
    before, entries = rows_of(sql, "ours", version), live_entries(sql, "ours")
    count = sql.one("SELECT count(*) FROM our.ours.manifests")

    done = ask(sql, sqlite_server, "ours")

    assert rows_of(sql, "ours", version) == before
    assert live_entries(sql, "ours") == entries
    left = sql.one("SELECT count(*) FROM our.ours.manifests")
    assert left == done["manifests-created"] + done["manifests-kept"] < count
    # What a writer adds afterwards builds on it.
    sql("INSERT INTO ours VALUES (100, 'r1', 'w')")
    sql("DELETE FROM ours WHERE number = 100")
    assert rows_of(sql, "ours", version) == before


def test_f24_rewrites_by_server_and_procedure_leave_equal_entries_and_summaries(
    sql: Sql, sqlite_server: str
) -> None:
    make_table(sql, "by_server", 2)
    make_table(sql, "by_spark", 2)

    ask(sql, sqlite_server, "by_server", all=True)
    sql("CALL system.rewrite_manifests(table => 'our.by_spark', use_caching => false)")

    by_server, by_spark = summary_of(sql, "by_server"), summary_of(sql, "by_spark")
    # Spark counts no entries, and names its own session.
    for name in (*by_spark.keys() - by_server.keys(), "entries-processed", "total-files-size"):
        by_server.pop(name, None)
        by_spark.pop(name, None)
    assert by_server == by_spark
    entries = {
        table: [entry[2:] for entry in sorted(live_entries(sql, table), key=lambda entry: entry[2:])]
        for table in ("by_server", "by_spark")
    }
    assert entries["by_server"] == entries["by_spark"]
    counts = [
        sql(
            "SELECT content, existing_data_files_count + existing_delete_files_count, partition_summaries"
            f" FROM our.{table}.manifests ORDER BY content"
        )
        for table in ("by_server", "by_spark")
    ]
    assert counts[0] == counts[1]


def test_f24_sparks_own_rewrite_loses_row_ids_and_the_servers_does_not(sql: Sql, sqlite_server: str) -> None:
    """The reason why tables of version 3 are rewritten here: apache/iceberg 16699."""
    make_table(sql, "by_server", 3)
    make_table(sql, "by_spark", 3)
    row_ids = {table: rows_of(sql, table, 3) for table in ("by_server", "by_spark")}

    ask(sql, sqlite_server, "by_server", all=True)
    sql("CALL system.rewrite_manifests(table => 'our.by_spark', use_caching => false)")

    assert rows_of(sql, "by_server", 3) == row_ids["by_server"]
    assert rows_of(sql, "by_spark", 3) != row_ids["by_spark"]


def test_f24_manifests_of_every_spec_are_rewritten_apart(sql: Sql, sqlite_server: str) -> None:
    make_table(sql, "ours", 2)
    sql("ALTER TABLE ours ADD PARTITION FIELD bucket(2, number)")
    for number in (200, 201, 202):
        sql(f"INSERT INTO ours VALUES ({number}, 'r9', 'w')")
    before = rows_of(sql, "ours", 2)

    done = ask(sql, sqlite_server, "ours", all=True)

    kinds = [(group["content"], group["spec-id"]) for group in done["groups"]]
    assert kinds == [("data", 0), ("data", 1)]
    assert rows_of(sql, "ours", 2) == before
    assert sorted(sql("SELECT partition_spec_id, content FROM our.ours.manifests")) == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]


@pytest.mark.parametrize("version", [nightly(2), 3])
def test_f24_dangling_deletes_go_as_with_the_procedures_option(
    sql: Sql, sqlite_server: str, version: int
) -> None:
    for table in ("by_server", "by_spark"):
        make_table(sql, table, version)
        # Iceberg asks whether deletes are older than all files of a partition, so compacted files have to be newer;
        # were they older than all files of the table, any commit would drop them.
        sql(f"INSERT INTO {table} VALUES (102, 'r2', 'w')")
        options = "map('rewrite-all', 'true', 'remove-dangling-deletes', 'false')"
        if table == "by_spark":
            options = options.replace("'false'", "'true'")
        sql(
            f"CALL system.rewrite_data_files(table => 'our.{table}', options => {options},"
            """ where => "region = 'r2'")"""
        )
    before = rows_of(sql, "by_server", version)

    done = ask(sql, sqlite_server, "by_server", DANGLING)

    assert rows_of(sql, "by_server", version) == before
    left = [sql.one(f"SELECT count(*) FROM our.{table}.delete_files") for table in ("by_server", "by_spark")]
    assert left == [0, 0]
    if version == 2:
        # In version 3 the compaction itself takes deletion vectors along.
        assert done["removed-position-delete-files"] > 0
        by_server, by_spark = summary_of(sql, "by_server"), summary_of(sql, "by_spark")
        for name in (*by_spark.keys() - by_server.keys(), "removed-files-size", "total-files-size"):
            by_server.pop(name, None)
            by_spark.pop(name, None)
        assert by_server == by_spark


def test_f24_dangling_deletes_go_on_tables_without_partitions_where_spark_leaves_them(
    sql: Sql, sqlite_server: str
) -> None:
    sql(
        "CREATE TABLE ours (number int) USING iceberg TBLPROPERTIES ('format-version' = '2',"
        " 'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'file')"
    )
    for start in (0, 10, 20):
        sql(f"INSERT INTO ours SELECT /*+ COALESCE(1) */ CAST(id AS int) FROM range({start}, {start + 10})")
    sql("DELETE FROM ours WHERE number IN (3, 13)")
    options = "map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')"
    sql(f"CALL system.rewrite_data_files(table => 'our.ours', where => 'number < 10', options => {options})")
    assert sql.one("SELECT count(*) FROM our.ours.delete_files") == 2
    before = sorted(sql("SELECT number, _file, _pos FROM ours"))

    done = ask(sql, sqlite_server, "ours", DANGLING)

    assert done["removed-position-delete-files"] == 1
    assert sql.one("SELECT count(*) FROM our.ours.delete_files") == 1
    assert sorted(sql("SELECT number, _file, _pos FROM ours")) == before


def statistics_of(sql: Sql, table: str) -> tuple[Any, Any]:
    """Read the newest statistics file: its columns with their ids, and its rows."""
    (*_, file) = sql.metadata(table)["partition-statistics"]
    path = path_of(file["statistics-path"])
    assert path.stat().st_size == file["file-size-in-bytes"]
    found = pq.read_table(path)
    columns = [
        (field.name, str(field.type), field.nullable, field.metadata[b"PARQUET:field_id"])
        for field in found.schema
    ]
    return columns, found.to_pylist()


@pytest.mark.parametrize("version", [2, 3])
def test_f25_partition_statistics_equal_those_of_iceberg(sql: Sql, sqlite_server: str, version: int) -> None:
    make_table(sql, "ours", version)
    sql("DELETE FROM ours WHERE region = 'r3'")
    sql("ALTER TABLE ours ADD PARTITION FIELD bucket(2, number)")
    sql("INSERT INTO ours VALUES (200, 'r9', 'w'), (201, NULL, 'w')")
    sql("CALL system.compute_partition_stats('our.ours')")
    by_spark = statistics_of(sql, "ours")

    done = ask(sql, sqlite_server, "ours", STATISTICS)

    by_server = statistics_of(sql, "ours")
    assert done["partitions"] == len(by_server[1])
    assert by_server == by_spark
    # Iceberg takes the server's file as the base of its next one.
    sql("INSERT INTO ours VALUES (300, 'r9', 'w')")
    sql("CALL system.compute_partition_stats('our.ours')")
    assert (
        sum(row["data_record_count"] for row in statistics_of(sql, "ours")[1])
        == sum(row["data_record_count"] for row in by_server[1]) + 1
    )


def test_f25_partition_statistics_go_with_their_snapshot(sql: Sql, sqlite_server: str) -> None:
    sql("CREATE TABLE ours (number int, region string) USING iceberg PARTITIONED BY (region)")
    sql("INSERT INTO ours VALUES (1, 'r1')")
    old = ask(sql, sqlite_server, "ours", STATISTICS)
    sql("INSERT INTO ours VALUES (2, 'r2')")
    new = ask(sql, sqlite_server, "ours", STATISTICS)
    expiry = {"older_than_ms": 4_102_444_800_000, "retain_last": 1, "grace_period_ms": 0}

    shown = ask(sql, sqlite_server, "ours", "expire", dry_run=True, **expiry)
    ask(sql, sqlite_server, "ours", "expire", **expiry)

    assert shown["files"]["statistics-files"]["count"] == 1
    left = [file["snapshot-id"] for file in sql.metadata("ours")["partition-statistics"]]
    assert left == [new["snapshot-id"]] != [old["snapshot-id"]]


def test_f25_partition_statistics_have_every_type_of_partition_value(sql: Sql, sqlite_server: str) -> None:
    sql(
        "CREATE TABLE ours (id int, day date, at timestamp, here timestamp_ntz, amount decimal(9, 2), flag boolean,"
        " raw binary, ratio double) USING iceberg PARTITIONED BY (day, hours(at), here, amount, flag,"
        " truncate(2, raw), ratio)"
    )
    sql(
        "INSERT INTO ours VALUES (1, DATE '2025-01-31', TIMESTAMP '2025-01-31 10:00:00',"
        " TIMESTAMP_NTZ '2025-01-31 10:00:00', 12.50, true, X'0102AB', 0.5),"
        " (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    sql("CALL system.compute_partition_stats('our.ours')")
    by_spark = statistics_of(sql, "ours")

    ask(sql, sqlite_server, "ours", STATISTICS)

    assert statistics_of(sql, "ours") == by_spark
