"""Iceberg's stored procedures: going back, picking, expiring, compacting, cleaning up."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.servers.spark import Sql, path_of

pytestmark = pytest.mark.spark

ALL_OLD = "older_than => TIMESTAMP '2100-01-01 00:00:00'"


def make_numbers(
    sql: Sql, inserts: int, properties: str = "'write.delete.mode' = 'merge-on-read'"
) -> list[int]:
    """A table that got one row an insert; answers the snapshot ids in order."""
    sql(f"CREATE TABLE numbers (number int) USING iceberg TBLPROPERTIES ({properties})")
    for number in range(inserts):
        sql(f"INSERT INTO numbers VALUES ({number})")
    return sql.column("SELECT snapshot_id FROM our.numbers.snapshots ORDER BY committed_at")


def numbers(sql: Sql, table: str = "numbers") -> list[int]:
    return sorted(sql.column(f"SELECT number FROM {table}"))


def call(sql: Sql, procedure: str, *arguments: str) -> list[tuple[Any, ...]]:
    listed = ", ".join(("table => 'our.numbers'", *arguments))
    return sql(f"CALL system.{procedure}({listed})")


def test_rollback_to_snapshot_and_to_timestamp(sql: Sql) -> None:
    first, second, third = make_numbers(sql, 3)
    after_first = sql.one(
        "SELECT CAST(committed_at + INTERVAL '0.001' SECOND AS string) FROM our.numbers.snapshots"
        f" WHERE snapshot_id = {first}"
    )

    assert call(sql, "rollback_to_snapshot", f"snapshot_id => {second}") == [(third, second)]
    assert numbers(sql) == [0, 1]
    assert "not an ancestor" in sql.fails(f"CALL system.rollback_to_snapshot('our.numbers', {third})")

    assert call(sql, "set_current_snapshot", f"snapshot_id => {third}") == [(second, third)]
    assert numbers(sql) == [0, 1, 2]

    assert call(sql, "rollback_to_timestamp", f"timestamp => TIMESTAMP '{after_first}'") == [(third, first)]
    assert numbers(sql) == [0]
    assert sql.column(
        "SELECT is_current_ancestor FROM our.numbers.history WHERE snapshot_id = " + str(third)
    ) == [False, False]

    sql("INSERT INTO numbers VALUES (9)")
    assert numbers(sql) == [0, 9]


def test_cherrypick_snapshot_applies_an_append_that_was_rolled_back(sql: Sql) -> None:
    first, second = make_numbers(sql, 2)
    call(sql, "rollback_to_snapshot", f"snapshot_id => {first}")
    sql("INSERT INTO numbers VALUES (5)")

    ((source, picked),) = call(sql, "cherrypick_snapshot", f"snapshot_id => {second}")

    assert source == second != picked
    assert numbers(sql) == [0, 1, 5]
    assert sql.one(
        f"SELECT summary['source-snapshot-id'] FROM our.numbers.snapshots WHERE snapshot_id = {picked}"
    ) == str(second)


def test_fast_forward_moves_a_branch_along_its_descendants_only(sql: Sql) -> None:
    (first,) = make_numbers(sql, 1)
    sql("ALTER TABLE numbers CREATE BRANCH ahead")
    sql("INSERT INTO our.numbers.branch_ahead VALUES (1)")
    ahead = sql.one("SELECT snapshot_id FROM our.numbers.refs WHERE name = 'ahead'")

    assert call(sql, "fast_forward", "branch => 'main'", "to => 'ahead'") == [("main", first, ahead)]
    assert numbers(sql) == [0, 1]

    sql("INSERT INTO numbers VALUES (2)")
    sql("INSERT INTO our.numbers.branch_ahead VALUES (3)")
    refusal = sql.fails("CALL system.fast_forward('our.numbers', 'main', 'ahead')")
    assert "not an ancestor" in refusal
    assert numbers(sql) == [0, 1, 2]


def test_expire_snapshots_deletes_exactly_what_only_they_needed(sql: Sql) -> None:
    *_, tagged, fourth = make_numbers(sql, 4)
    sql(f"ALTER TABLE numbers CREATE TAG kept AS OF VERSION {tagged}")
    sql("DELETE FROM numbers WHERE number = 3")
    sql("INSERT INTO numbers VALUES (4)")
    current = sql.one("SELECT snapshot_id FROM our.numbers.refs WHERE name = 'main'")
    lists = set(sql.column("SELECT manifest_list FROM our.numbers.snapshots"))

    ((data_files, position_deletes, equality_deletes, manifests, manifest_lists, _),) = call(
        sql, "expire_snapshots", ALL_OLD, "retain_last => 1"
    )

    # Snapshot 3's row went away as a whole file, which only expired snapshots list.
    assert (data_files, position_deletes, equality_deletes, manifest_lists) == (1, 0, 0, 4)
    assert manifests >= 1
    assert sorted(sql.column("SELECT snapshot_id FROM our.numbers.snapshots")) == sorted([tagged, current])
    assert numbers(sql) == [0, 1, 2, 4]
    assert numbers(sql, "our.numbers.tag_kept") == [0, 1, 2]
    left = set(sql.column("SELECT manifest_list FROM our.numbers.snapshots"))
    assert {file: path_of(file).exists() for file in lists} == {file: file in left for file in lists}
    assert fourth not in sql.column("SELECT snapshot_id FROM our.numbers.history")


def test_expire_snapshots_by_id_and_with_retention_of_branches(sql: Sql) -> None:
    first, *_ = make_numbers(sql, 3)
    sql("ALTER TABLE numbers CREATE BRANCH kept WITH SNAPSHOT RETENTION 2 SNAPSHOTS")

    call(sql, "expire_snapshots", f"snapshot_ids => ARRAY({first})")
    assert sql.one("SELECT count(*) FROM our.numbers.snapshots") == 2

    call(sql, "expire_snapshots", ALL_OLD, "retain_last => 1")
    assert sql.one("SELECT count(*) FROM our.numbers.snapshots") == 2
    sql("ALTER TABLE numbers DROP BRANCH kept")
    call(sql, "expire_snapshots", ALL_OLD, "retain_last => 1")
    assert sql.one("SELECT count(*) FROM our.numbers.snapshots") == 1
    assert numbers(sql) == [0, 1, 2]


def test_expire_snapshots_cleans_schemas_and_specs_nobody_uses(sql: Sql) -> None:
    make_numbers(sql, 1)
    sql("ALTER TABLE numbers ADD COLUMN word string")
    sql("ALTER TABLE numbers ADD PARTITION FIELD word")
    sql("DELETE FROM numbers")
    sql("INSERT INTO numbers VALUES (1, 'one')")

    call(sql, "expire_snapshots", ALL_OLD, "retain_last => 1", "clean_expired_metadata => true")

    assert sql("SELECT * FROM numbers") == [(1, "one")]
    sql("ALTER TABLE numbers DROP PARTITION FIELD word")
    sql("INSERT INTO numbers VALUES (2, 'two')")
    assert numbers(sql) == [1, 2]


def test_rewrite_data_files_merges_small_files_and_applies_deletes(sql: Sql) -> None:
    make_numbers(sql, 6)
    sql("INSERT INTO numbers SELECT /*+ COALESCE(1) */ id FROM range(10, 20)")
    sql("DELETE FROM numbers WHERE number = 15")
    assert sql("SELECT count(*) FROM our.numbers.data_files") == [(7,)]
    assert sql("SELECT count(*) FROM our.numbers.delete_files") == [(1,)]

    ((rewritten, added, _, failed, *_),) = call(
        sql, "rewrite_data_files", "options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')"
    )

    assert (rewritten, added, failed) == (7, 1, 0)
    assert sql("SELECT count(*) FROM our.numbers.data_files") == [(1,)]
    assert sql.one("SELECT sum(record_count) FROM our.numbers.data_files") == 15
    assert numbers(sql) == [*range(6), *(number for number in range(10, 20) if number != 15)]
    assert "replace" in sql.column("SELECT operation FROM our.numbers.snapshots")


def test_rewrite_data_files_sorts_by_the_order_asked_for(sql: Sql) -> None:
    make_numbers(sql, 5)

    call(
        sql, "rewrite_data_files", "strategy => 'sort'", "sort_order => 'number DESC NULLS LAST'",
        "options => map('rewrite-all', 'true')",
    )  # fmt: skip

    assert sql.column("SELECT number FROM numbers") == [4, 3, 2, 1, 0]


def test_rewrite_position_delete_files(sql: Sql) -> None:
    sql(
        "CREATE TABLE numbers (number bigint) USING iceberg TBLPROPERTIES ('format-version' = '2',"
        " 'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'partition')"
    )
    sql("INSERT INTO numbers SELECT /*+ COALESCE(1) */ id FROM range(100)")
    for number in range(3):
        sql(f"DELETE FROM numbers WHERE number = {number}")

    ((rewritten, added, *_),) = call(
        sql, "rewrite_position_delete_files", "options => map('rewrite-all', 'true')"
    )

    assert (rewritten, added) == (3, 1)
    assert numbers(sql) == list(range(3, 100))


def test_rewrite_manifests_clusters_entries_into_one(sql: Sql) -> None:
    make_numbers(sql, 4)
    assert sql.one("SELECT count(*) FROM our.numbers.manifests") == 4

    assert call(sql, "rewrite_manifests", "use_caching => false") == [(4, 1)]

    assert sql("SELECT existing_data_files_count, added_data_files_count FROM our.numbers.manifests") == [
        (4, 0)
    ]
    assert sql.column("SELECT DISTINCT status FROM our.numbers.entries") == [0]
    assert sorted(sql.column("SELECT sequence_number FROM our.numbers.entries")) == [1, 2, 3, 4]
    assert numbers(sql) == [0, 1, 2, 3]


def test_remove_orphan_files_finds_strangers_and_nothing_else(sql: Sql) -> None:
    make_numbers(sql, 2)
    sql("DELETE FROM numbers WHERE number = 0")
    sql("ALTER TABLE numbers CREATE BRANCH kept")
    known = path_of(sql.column("SELECT file_path FROM our.numbers.files")[0])
    stranger = known.with_name("stranger.parquet")
    stranger.write_bytes(known.read_bytes())

    too_young = f"CALL system.remove_orphan_files('our.numbers', {_utc(hours_ago=1)})"
    assert "less than 24 hours" in sql.fails(too_young)
    assert call(sql, "remove_orphan_files") == []
    # The procedure refuses a cut-off of less than a day, so the files have to look older.
    for file in _files_of(known.parents[1]):
        _make_older(file, days=2)
    cut_off = f"older_than => {_utc(hours_ago=25)}"

    found = call(sql, "remove_orphan_files", cut_off, "dry_run => true")
    removed = call(sql, "remove_orphan_files", cut_off)

    assert [path_of(str(location)) for (location,) in removed] == [stranger]
    assert found == removed
    assert not stranger.exists()
    assert numbers(sql) == [1]
    assert numbers(sql, "our.numbers.branch_kept") == [1]


def test_ancestors_of_and_compute_table_stats(sql: Sql) -> None:
    snapshots = make_numbers(sql, 3)

    ancestors = call(sql, "ancestors_of")
    ((statistics_file,),) = call(sql, "compute_table_stats")

    assert [snapshot for snapshot, _ in ancestors] == snapshots[::-1]
    assert path_of(str(statistics_file)).stat().st_size > 0


def _utc(hours_ago: int) -> str:
    then = datetime.now(UTC) - timedelta(hours=hours_ago)
    return f"TIMESTAMP '{then:%Y-%m-%d %H:%M:%S}'"


def _files_of(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def _make_older(file: Path, days: int) -> None:
    then = file.stat().st_mtime - days * 24 * 3600
    os.utime(file, (then, then))
