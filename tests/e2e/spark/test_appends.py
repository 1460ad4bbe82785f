"""Files that were appended by reference: Spark reads them, and goes on writing to the table."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.builders.parquet_files import parquet
from tests.servers.spark import Sql, nightly

pytestmark = pytest.mark.spark
DAY_US = 86_400_000_000


def rows(day: int, first: int, count: int) -> pa.Table:
    """Return rows of one day, without field ids."""
    ids = list(range(first, first + count))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "at": pa.array([day * DAY_US + number for number in ids], pa.timestamp("us", "UTC")),
            "word": pa.array([None if number % 7 == 0 else f"word {number}" * 3 for number in ids]),
            "price": pa.array(ids, pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(20, 2)),
            "place": pa.array(
                [{"city": f"c{number}", "zip": number} for number in ids],
                pa.struct([("city", pa.string()), ("zip", pa.int32())]),
            ),
            "tags": pa.array([["a", None], [], None][number % 3] for number in ids),
            "counts": pa.array([[("k", number)] for number in ids], pa.map_(pa.string(), pa.int32())),
        }
    )


COLUMNS = (
    "id BIGINT, at TIMESTAMP, word STRING, price DECIMAL(20, 2), place STRUCT<city: STRING, zip: INT>, "
    "tags ARRAY<STRING>, counts MAP<STRING, INT>"
)


class Appends:
    """Puts files into the folder of table t and appends them."""

    def __init__(self, sql: Sql, server: str) -> None:
        self._sql = sql
        self.path = f"{server}/v1/namespaces/{sql.namespace}/tables/t"
        loaded = httpx.get(self.path).json()
        self.location: str = loaded["metadata"]["location"]
        self.folder = Path(self.location.removeprefix("file://"), "data")
        self.folder.mkdir(parents=True, exist_ok=True)

    def append(self, *files: str | dict[str, Any], **more: Any) -> dict[str, Any]:
        listed = [
            {"file-path": f"{self.location}/data/{file}"} if isinstance(file, str) else file for file in files
        ]
        answer = httpx.post(f"{self.path}/append", json={"files": listed, **more}, timeout=60)
        assert answer.status_code == 200, answer.text
        # Spark keeps tables for a while.
        self._sql("REFRESH TABLE t")
        body: dict[str, Any] = answer.json()
        return body

    def put(self, name: str, table: pa.Table) -> str:
        (self.folder / name).write_bytes(parquet(table))
        return name


@pytest.mark.parametrize("version", [nightly(1), 2, 3])
def test_spark_reads_what_was_appended_and_goes_on(sql: Sql, sqlite_server: str, version: int) -> None:
    sql(
        f"CREATE TABLE t ({COLUMNS}) USING iceberg PARTITIONED BY (days(at)) TBLPROPERTIES "
        f"('format-version' = '{version}', 'commit.manifest.min-count-to-merge' = '3', "
        "'write.delete.mode' = 'copy-on-write')"
    )
    appends = Appends(sql, sqlite_server)
    for day in range(5):
        appends.append(appends.put(f"{day}.parquet", rows(day, day * 10, 10)))

    assert sql("SELECT count(*), sum(id), count(word) FROM t") == [(50, 1225, 42)]
    assert sql("SELECT id FROM t WHERE word = 'word 23word 23word 23'") == [(23,)]
    assert sql("SELECT count(*) FROM t WHERE at >= TIMESTAMP '1970-01-03' AND price < 35.5") == [(16,)]
    assert sql("SELECT id, place.city, tags, counts['k'] FROM t WHERE id IN (12, 13) ORDER BY id") == [
        (12, "c12", ["a", None], 12),
        (13, "c13", [], 13),
    ]
    assert sql("SELECT partition.at_day, record_count FROM our.t.partitions ORDER BY 1")[0][1] == 10

    sql("INSERT INTO t SELECT id + 100, at, word, price, place, tags, counts FROM t WHERE id < 5")
    sql("DELETE FROM t WHERE id % 10 = 3")
    assert sql("SELECT count(*), sum(id) FROM t") == [(49, 1225 + 510 - (3 + 13 + 23 + 33 + 43) - 103)]
    appends.append(appends.put("5.parquet", rows(0, 200, 10)))
    sql("CALL tower.system.rewrite_manifests('our.t')".replace("our.", f"{sql.namespace}."))
    sql(
        f"CALL tower.system.rewrite_data_files(table => '{sql.namespace}.t', "
        "options => map('min-input-files', '1', 'rewrite-all', 'true'))"
    )
    assert sql("SELECT count(*), min(id), max(id) FROM t") == [(59, 0, 209)]
    appends.append(appends.put("6.parquet", rows(6, 300, 10)))
    assert sql("SELECT count(*) FROM t") == [(69,)]
    assert sql("SELECT count(*) FROM t WHERE at >= TIMESTAMP '1970-01-07'") == [(10,)]


def test_row_level_deletes_apply_to_appended_files(sql: Sql, sqlite_server: str) -> None:
    sql(
        f"CREATE TABLE t ({COLUMNS}) USING iceberg TBLPROPERTIES ('format-version' = '2', "
        "'write.delete.mode' = 'merge-on-read', 'commit.manifest.min-count-to-merge' = '2')"
    )
    appends = Appends(sql, sqlite_server)
    appends.append(appends.put("1.parquet", rows(0, 0, 10)))
    sql("DELETE FROM t WHERE id = 4")
    # Later files are not touched by that delete, and merging manifests must not change which are later.
    appends.append(appends.put("2.parquet", rows(0, 0, 10)))
    appends.append(appends.put("3.parquet", rows(0, 0, 10)))

    assert sql("SELECT count(*), count_if(id = 4) FROM t") == [(29, 2)]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_delete_by_a_filter_leaves_rows_that_have_nan(sql: Sql, sqlite_server: str, mode: str) -> None:
    sql(
        f"CREATE TABLE t (id BIGINT, price DOUBLE) USING iceberg TBLPROPERTIES ('write.delete.mode' = '{mode}')"
    )
    appends = Appends(sql, sqlite_server)
    appends.append(appends.put("1.parquet", pa.table({"id": [1, 2, 3], "price": [1.0, 5.0, float("nan")]})))

    assert sql("SELECT isnan(max(price)), count(price) FROM t") == [(True, 3)]
    sql("DELETE FROM t WHERE price < 10")
    assert sql("SELECT id FROM t") == [(3,)]


@pytest.mark.parametrize("left_out", ["nan-value-counts", "null-value-counts"])
def test_a_delete_leaves_rows_with_nan_or_null_of_files_whose_description_counts_them_not(
    sql: Sql, sqlite_server: str, left_out: str
) -> None:
    table = pa.table({"id": [1, 2, 3], "price": [1.0, 5.0, float("nan") if "nan" in left_out else None]})
    sql("CREATE TABLE t (id BIGINT, price DOUBLE) USING iceberg")
    appends = Appends(sql, sqlite_server)
    name = appends.put("1.parquet", table)
    counts: dict[str, Any] = {
        "null-value-counts": {"keys": [1, 2], "values": [0, int("null" in left_out)]},
        "nan-value-counts": {"keys": [2], "values": [int("nan" in left_out)]},
    }
    counts[left_out] = {"keys": [1], "values": [0]}
    described = {
        "spec-id": 0,
        "content": "data",
        "file-path": f"{appends.location}/data/{name}",
        "file-format": "parquet",
        "file-size-in-bytes": (appends.folder / name).stat().st_size,
        "record-count": 3,
        "lower-bounds": {"keys": [2], "values": [struct.pack("<d", 1.0).hex()]},
        "upper-bounds": {"keys": [2], "values": [struct.pack("<d", 5.0).hex()]},
        **counts,
    }
    sql(
        "ALTER TABLE t SET TBLPROPERTIES ('schema.name-mapping.default' = "
        """'[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["price"]}]')"""
    )

    appends.append({"data-file": described})

    sql("DELETE FROM t WHERE price < 10")
    assert sql("SELECT id FROM t") == [(3,)]


def test_row_ids_stay_when_the_server_merges_manifests(sql: Sql, sqlite_server: str) -> None:
    sql(
        "CREATE TABLE t (id BIGINT) USING iceberg TBLPROPERTIES ('format-version' = '3', "
        "'commit.manifest.min-count-to-merge' = '3')"
    )
    appends = Appends(sql, sqlite_server)
    seen: dict[int, int] = {}
    for number in range(7):
        appends.append(appends.put(f"{number}.parquet", pa.table({"id": [2 * number, 2 * number + 1]})))
        found = dict(sql("SELECT id, _row_id FROM t"))
        assert {row: found[row] for row in seen} == seen
        assert len(set(found.values())) == 2 * (number + 1)
        seen = found


def test_manifests_of_fixed_partitions_stay_as_spark_wrote_them(sql: Sql, sqlite_server: str) -> None:
    tables = f"{sqlite_server}/v1/namespaces/{sql.namespace}/tables"
    kinds = {"id": "long", "v": "fixed[2]"}
    columns = [
        {"id": number, "name": name, "required": False, "type": kind}
        for number, (name, kind) in enumerate(kinds.items(), start=1)
    ]
    by_v = {"name": "v", "transform": "identity", "source-id": 2, "field-id": 1000}
    created = {
        "name": "t",
        "schema": {"type": "struct", "schema-id": 0, "fields": columns},
        "partition-spec": {"spec-id": 0, "fields": [by_v]},
        "properties": {"commit.manifest.min-count-to-merge": "2", "commit.manifest-merge.enabled": "false"},
    }
    assert httpx.post(tables, json=created).is_success
    for number in range(3):
        sql(f"INSERT INTO t VALUES ({number}, X'000{number}')")
    assert httpx.post(f"{tables}/t/rewrite-manifests", json={}).json()["manifests-created"] == 0
    sql("ALTER TABLE t REPLACE PARTITION FIELD v WITH bucket(1, id)")
    sql("ALTER TABLE t SET TBLPROPERTIES ('commit.manifest-merge.enabled' = 'true')")
    appends = Appends(sql, sqlite_server)
    appends.append(appends.put("1.parquet", pa.table({"id": [10], "v": pa.array([b"ab"], pa.binary(2))})))

    assert sql("SELECT id FROM t ORDER BY id") == [(0,), (1,), (2,), (10,)]
    assert sql("SELECT count(*) FROM our.t.manifests") == [(4,)]


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_that_deletes_are_about_is_not_appended_again(
    sql: Sql, sqlite_server: str, version: int
) -> None:
    """Spark would not read the table (version 3); PyIceberg and DuckDB would leave out rows (version 2)."""
    sql(
        f"CREATE TABLE t (id INT) USING iceberg TBLPROPERTIES ('format-version' = '{version}', "
        "'write.delete.mode' = 'merge-on-read')"
    )
    sql("INSERT INTO t SELECT /*+ COALESCE(1) */ CAST(id AS INT) FROM range(10)")
    (path,) = sql.column("SELECT file_path FROM our.t.files")
    sql("DELETE FROM t WHERE id = 3")
    appends, again = Appends(sql, sqlite_server), {"file-path": path}

    twice = {"files": [again], "allow-duplicates": True}
    answer = httpx.post(f"{appends.path}/append", json=twice, timeout=60)

    assert answer.status_code == 400
    assert (
        f"{path}: branch main has position deletes or a deletion vector" in answer.json()["error"]["message"]
    )
    sql("REFRESH TABLE t")
    assert sql.one("SELECT count(*) FROM t") == 9
    sql("DELETE FROM t WHERE id >= 0")
    if version == 2:  # where those deletes stay behind
        assert httpx.post(f"{appends.path}/append", json={"files": [again]}, timeout=60).status_code == 400
    assert httpx.post(f"{appends.path}/remove-dangling-deletes", json={}, timeout=60).is_success
    appends.append(again)
    assert sql.one("SELECT count(*) FROM t") == 10


def test_files_that_spark_wrote_without_iceberg_are_taken(sql: Sql, sqlite_server: str) -> None:
    sql(f"CREATE TABLE t ({COLUMNS}, n INT) USING iceberg")
    appends = Appends(sql, sqlite_server)
    folder = appends.folder / "plain"
    frame = sql.spark.sql(
        "SELECT id, timestamp_seconds(id * 1000) AS at, concat('w', id) AS word, cast(id AS DECIMAL(20, 2)) AS price, "
        "named_struct('city', 'x', 'zip', 7) AS place, array('a', 'b') AS tags, map('k', 1) AS counts, "
        "cast(id AS INT) AS n FROM range(20)"
    )
    frame.coalesce(2).write.parquet(str(folder))
    files = [f"plain/{path.name}" for path in folder.glob("*.parquet")]

    assert appends.append(*files)["added-records"] == 20

    query = "SELECT id, at, word, price, place.zip, tags, counts['k'], n FROM {} ORDER BY id"
    frame.createOrReplaceTempView("plain")
    plain = [tuple(row) for row in sql.spark.sql(query.format("plain")).collect()]
    assert sql(query.format("t")) == plain
    assert sql("SELECT count(*) FROM t WHERE at > TIMESTAMP '1970-01-01 02:00:00' AND n < 10") == [
        (len([row for row in plain if row[0] * 1000 > 7200 and row[0] < 10]),)
    ]
