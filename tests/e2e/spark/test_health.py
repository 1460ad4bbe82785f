"""Health and profiles beside Spark's own metadata tables `files`, `manifests`, `partitions` and `snapshots`."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.servers.spark import Sql

pytestmark = pytest.mark.spark

MERGE_ON_READ = (
    "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
    "'write.merge.mode' = 'merge-on-read'"
)


def asked(sql: Sql, server: str, what: str, **query: str) -> dict[str, Any]:
    """Return what the server says of table t."""
    answer = httpx.get(f"{server}/v1/namespaces/{sql.namespace}/tables/t/{what}", params=query, timeout=60)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def check_files(sql: Sql, health: dict[str, Any]) -> None:
    """Hold the facts about files against Spark's `files` and `partitions`."""
    files = health["files"]
    (expected,) = sql(
        "SELECT count(*) AS files, coalesce(sum(file_size_in_bytes), 0) AS bytes, "
        "coalesce(sum(record_count), 0) AS rows, count_if(file_size_in_bytes < 402653184) AS small "
        "FROM our.t.files WHERE content = 0"
    )
    found = (files["data-files"], files["data-bytes"], files["rows"], files["small-files"])
    assert found == expected
    (expected,) = sql(
        "SELECT count_if(content = 1 AND file_format != 'PUFFIN') AS positions, "
        "count_if(content = 2) AS equality, count_if(file_format = 'PUFFIN') AS vectors, "
        "coalesce(sum(IF(content = 1, record_count, 0)), 0) AS deleted FROM our.t.files"
    )
    assert (
        files["position-delete-files"],
        files["equality-delete-files"],
        files["deletion-vectors"],
        files["deleted-positions"],
    ) == expected
    partitions = sql(
        "SELECT count(*) AS files, sum(file_size_in_bytes) AS bytes, spec_id, partition "
        "FROM our.t.files WHERE content = 0 GROUP BY spec_id, partition"
    )
    assert files["partitions"] == len(partitions)
    assert files["largest-partition-bytes"] == max(size for _, size, *_ in partitions)
    worst = {
        (partition["spec-id"], partition["data-files"], partition["data-bytes"])
        for partition in files["worst-partitions"]
        if partition["data-files"]
    }
    assert worst == {(spec_id, files, size) for files, size, spec_id, _ in partitions}


def check_metadata(sql: Sql, health: dict[str, Any]) -> None:
    """Hold the facts about manifests and metadata against Spark's metadata tables."""
    manifests = health["manifests"]
    (expected,) = sql(
        "SELECT count_if(content = 0) AS data, count_if(content = 1) AS deletes, sum(length) AS bytes, "
        "count_if(length < 4194304) AS small FROM our.t.manifests"
    )
    assert (
        manifests["data-manifests"],
        manifests["delete-manifests"],
        manifests["total-bytes"],
        manifests["small-manifests"],
    ) == expected
    metadata = health["metadata"]
    assert metadata["snapshots"] == len(sql("SELECT * FROM our.t.snapshots"))
    assert metadata["branches"] + metadata["tags"] == len(sql("SELECT * FROM our.t.refs"))
    # Spark's table has the current metadata file too.
    assert metadata["metadata-log-entries"] + 1 == len(sql("SELECT * FROM our.t.metadata_log_entries"))


@pytest.mark.parametrize("version", [2, 3])
def test_facts_equal_sparks_metadata_tables(sql: Sql, sqlite_server: str, version: int) -> None:
    sql(
        "CREATE TABLE t (id BIGINT, day DATE, word STRING, price DOUBLE) USING iceberg PARTITIONED BY (day) "
        f"TBLPROPERTIES ('format-version' = '{version}', {MERGE_ON_READ})"
    )
    for day in range(3):
        sql(
            f"INSERT INTO t SELECT id, DATE'2025-01-0{day + 1}', concat('a long word of ', id), "
            "IF(id % 10 = 0, double('NaN'), id) FROM range(100)"
        )
    sql("DELETE FROM t WHERE id % 7 = 0 AND day < DATE'2025-01-03'")
    sql("UPDATE t SET word = NULL WHERE id = 5")
    sql("ALTER TABLE t ADD PARTITION FIELD bucket(2, id)")
    sql("INSERT INTO t VALUES (1000, DATE'2025-01-09', 'new', 1.0), (1001, DATE'2025-01-09', 'new', 1.0)")
    sql("ALTER TABLE t CREATE TAG before_the_end")

    health = asked(sql, sqlite_server, "health")

    check_files(sql, health)
    check_metadata(sql, health)
    assert health["files"]["delete-files"] > 0
    assert health["files"]["old-spec-files"] == len(
        sql("SELECT * FROM our.t.files WHERE content = 0 AND spec_id = 0")
    )
    assert bool(health["files"]["deletion-vectors"]) is (version == 3)
    tagged = asked(sql, sqlite_server, "health", ref="before_the_end")
    assert tagged["files"] == health["files"]


def test_rewriting_makes_a_table_healthier(sql: Sql, sqlite_server: str) -> None:
    sql(
        "CREATE TABLE t (id BIGINT, day DATE) USING iceberg PARTITIONED BY (day) "
        f"TBLPROPERTIES ('format-version' = '2', {MERGE_ON_READ})"
    )
    for number in range(12):
        sql(f"INSERT INTO t SELECT id, DATE'2025-01-01' FROM range({number * 10}, {number * 10 + 10})")
    sql("DELETE FROM t WHERE id = 3")
    before = asked(sql, sqlite_server, "health")

    sql(
        "CALL tower.system.rewrite_data_files(table => 't', "
        "options => map('rewrite-all', 'true', 'use-starting-sequence-number', 'false'))"
    )
    after = asked(sql, sqlite_server, "health")

    assert (before["severity"], before["files"]["data-files"]) == ("critical", 12)
    assert before["files"]["dangling-deletes"] == 0
    assert (after["files"]["data-files"], after["files"]["rows"]) == (1, 119)
    # Spark leaves the delete file behind, though it applies to nothing any more.
    assert after["files"]["dangling-deletes"] == after["files"]["delete-files"] == 1
    assert [finding["code"] for finding in after["findings"]] == ["dangling-deletes"]
    check_files(sql, after)


def test_profile_equals_sparks_readable_metrics(sql: Sql, sqlite_server: str) -> None:
    sql("CREATE TABLE t (id BIGINT, word STRING, price DOUBLE, place STRUCT<city: STRING>) USING iceberg")
    sql(
        "INSERT INTO t SELECT id, concat('a very long word ', id), id, named_struct('city', 'x') FROM range(50)"
    )
    sql("INSERT INTO t SELECT id, NULL, IF(id % 2 = 0, double('NaN'), -id), NULL FROM range(50, 70)")

    profile = asked(sql, sqlite_server, "profile")

    columns = {column["name"]: column for column in profile["columns"]}
    for name in ("id", "word", "price", "place.city"):
        path = f"readable_metrics.`{name}`"
        (expected,) = sql(
            f"SELECT sum({path}.value_count), sum({path}.null_value_count), sum({path}.nan_value_count), "
            f"sum({path}.column_size), min({path}.lower_bound), max({path}.upper_bound), count({path}.lower_bound) "
            "FROM our.t.files"
        )
        numbers = ("value-count", "null-count", "nan-count", "column-bytes", "lower-bound", "upper-bound")
        found = tuple(columns[name].get(number) for number in (*numbers, "lower-bound-files"))
        assert found == expected
    assert [columns[name]["bounds-exact"] for name in ("id", "word", "price", "place.city")] == [
        True,
        False,
        True,
        True,
    ]
    assert sql.one("SELECT min(word) FROM t") != columns["word"]["lower-bound"], "the bound is cut"
