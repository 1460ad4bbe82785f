"""What Spark shows of a table's metadata agrees with what was done to it."""

from __future__ import annotations

import pytest

from tests.servers.spark import Sql, path_of

pytestmark = pytest.mark.spark


def make_sales(sql: Sql) -> None:
    """Three commits: four rows in two partitions, one more partition, one row deleted by position."""
    sql(
        "CREATE TABLE sales (id int, day string, amount int) USING iceberg PARTITIONED BY (day)"
        " TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    )
    sql("INSERT INTO sales VALUES (1, 'mon', 10), (2, 'mon', 20), (3, 'tue', 30), (4, 'tue', NULL)")
    sql("INSERT INTO sales VALUES (5, 'wed', 50)")
    sql("DELETE FROM sales WHERE id = 3")


def test_snapshots_history_and_refs_tell_one_story(sql: Sql) -> None:
    make_sales(sql)

    snapshots = sql("SELECT snapshot_id, parent_id, operation FROM our.sales.snapshots ORDER BY committed_at")
    ids = [snapshot for snapshot, _, _ in snapshots]

    assert [parent for _, parent, _ in snapshots] == [None, *ids[:-1]]
    assert [operation for *_, operation in snapshots] == ["append", "append", "delete"]
    history = (
        "SELECT snapshot_id, parent_id, is_current_ancestor FROM our.sales.history ORDER BY made_current_at"
    )
    assert sql(history) == [(snapshot, parent, True) for snapshot, parent, _ in snapshots]
    assert sql("SELECT name, type, snapshot_id FROM our.sales.refs") == [("main", "BRANCH", ids[-1])]


def test_metadata_log_entries_name_every_metadata_file(sql: Sql) -> None:
    make_sales(sql)

    entries = sql(
        "SELECT file, latest_snapshot_id, latest_sequence_number FROM our.sales.metadata_log_entries ORDER BY file"
    )

    ids = sql.column("SELECT snapshot_id FROM our.sales.snapshots ORDER BY committed_at")
    assert [path_of(file).name.split("-")[0] for file, _, _ in entries] == [
        "00000",
        "00001",
        "00002",
        "00003",
    ]
    assert [(snapshot, number) for _, snapshot, number in entries] == [
        (None, None),
        *zip(ids, (1, 2, 3), strict=True),
    ]
    assert all(path_of(file).is_file() for file, _, _ in entries)


def test_manifests_count_their_entries(sql: Sql) -> None:
    make_sales(sql)

    manifests = sql(
        "SELECT content, added_data_files_count, added_delete_files_count, partition_summaries"
        " FROM our.sales.manifests"
    )

    bounds = sorted((*counts, summary.lower_bound, summary.upper_bound) for *counts, (summary,) in manifests)
    assert bounds == [(0, 1, 0, "wed", "wed"), (0, 2, 0, "mon", "tue"), (1, 0, 1, "tue", "tue")]
    assert sql.one("SELECT count(*) FROM our.sales.all_manifests") == 1 + 2 + 3


def test_entries_and_files_name_the_same_files(sql: Sql) -> None:
    make_sales(sql)

    entries = sql(
        "SELECT status, sequence_number, file_sequence_number, data_file.content, data_file.partition.day,"
        " data_file.record_count FROM our.sales.entries ORDER BY 2, 5"
    )

    assert entries == [
        (1, 1, 1, 0, "mon", 2),
        (1, 1, 1, 0, "tue", 2),
        (1, 2, 2, 0, "wed", 1),
        (1, 3, 3, 1, "tue", 1),
    ]
    files = sql.column("SELECT file_path FROM our.sales.files")
    assert sorted(files) == sorted(sql.column("SELECT data_file.file_path FROM our.sales.entries"))
    assert sorted(
        sql.column(
            "SELECT file_path FROM our.sales.data_files UNION ALL SELECT file_path FROM our.sales.delete_files"
        )
    ) == sorted(files)
    assert all(path_of(file).stat().st_size for file in files)


def test_files_carry_metrics(sql: Sql) -> None:
    make_sales(sql)

    (metrics,) = sql.column(
        "SELECT readable_metrics.amount FROM our.sales.data_files WHERE partition.day = 'tue'"
    )

    assert metrics.asDict() | {"column_size": None} == {
        "column_size": None,
        "value_count": 2,
        "null_value_count": 1,
        "nan_value_count": None,
        "lower_bound": 30,
        "upper_bound": 30,
    }


def test_partitions_sum_up_rows_and_deletes(sql: Sql) -> None:
    make_sales(sql)

    partitions = sql(
        "SELECT partition.day, record_count, file_count, position_delete_record_count, position_delete_file_count"
        " FROM our.sales.partitions ORDER BY 1"
    )

    assert partitions == [("mon", 2, 1, 0, 0), ("tue", 2, 1, 1, 1), ("wed", 1, 1, 0, 0)]


def test_metadata_tables_travel_in_time(sql: Sql) -> None:
    make_sales(sql)
    first = sql.one("SELECT snapshot_id FROM our.sales.history ORDER BY made_current_at LIMIT 1")

    assert sql.one(f"SELECT count(*) FROM our.sales.files VERSION AS OF {first}") == 2
    assert sql.one("SELECT count(*) FROM our.sales.all_data_files") >= 3
    assert sql.one("SELECT count(*) FROM our.sales.position_deletes") == 1
