"""Reads tables with a Spark that plans for itself and with one that leaves it to the server; the rows must be equal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import httpx
from pyspark.sql import SparkSession

from examples.flights.spark_session import open_session, rest_catalog
from tests.servers.icetower import icetower_process

CONDITIONS = (
    "true",
    "id = 7",
    "id IN (3, 25, 1000)",
    "id > 20 AND price IS NOT NULL",
    "word IS NULL",
    "word LIKE 'z%'",
    "NOT (word = 'a/b=c')",
    "price = double('NaN')",
    "cents < 10.5 OR cents > 30",
    "at >= timestamp_ntz'2026-01-31 20:00:00'",
    "place.code = 5",
    "id < 0",
)


def make_table(spark: SparkSession, name: str, version: int) -> None:
    """Every kind of commit, two specs, nulls and NaN."""
    sql = spark.sql
    mode = "merge-on-read" if version > 1 else "copy-on-write"
    sql(
        f"CREATE TABLE {name} (id bigint, word string, price double, cents decimal(9,2), at timestamp_ntz,"
        " place struct<city: string, code: int>) USING iceberg PARTITIONED BY (bucket(4, id), word)"
        f" TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = '{mode}',"
        f" 'write.update.mode' = '{mode}')"
    )
    row = (
        "SELECT id, CASE WHEN id % 3 = 0 THEN NULL WHEN id % 3 = 1 THEN 'zürich' ELSE 'a/b=c' END,"
        " CASE WHEN id % 5 = 0 THEN double('NaN') WHEN id % 7 = 0 THEN NULL ELSE id / 7 END,"
        " CAST(id * 1.01 AS decimal(9,2)),"
        " timestamp_ntz'2026-01-30 22:00:00' + make_interval(0, 0, 0, 0, int(id)),"
        " named_struct('city', 'c', 'code', int(id))"
    )
    sql(f"INSERT INTO {name} {row} FROM range(12)")
    sql(f"INSERT INTO {name} {row} FROM range(12, 24)")
    sql(f"DELETE FROM {name} WHERE id IN (3, 13)")
    sql(f"ALTER TABLE {name} ADD PARTITION FIELD days(at)")
    sql(f"INSERT INTO {name} {row} FROM range(24, 40)")
    sql(f"UPDATE {name} SET price = -0.0 WHERE id = 25")
    sql(f"ALTER TABLE {name} CREATE TAG midway")
    sql(f"ALTER TABLE {name} ADD COLUMN late int")
    sql(f"INSERT INTO {name} SELECT *, 1 FROM ({row} FROM range(50, 53))")
    sql(f"ALTER TABLE {name} CREATE BRANCH behind")
    sql(f"ALTER TABLE {name} RENAME COLUMN late TO later")
    sql(f"ALTER TABLE {name} ADD COLUMN latest int")


def rows_of(spark: SparkSession, query: str) -> list[str]:
    """Run a query; its rows as text, for NaN is not equal to itself."""
    return [str(row) for row in spark.sql(query).collect()]


def plans_made(url: str) -> int:
    """Count the plans that the server has been asked for."""
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    counted = [line for line in lines if re.match(r'icetower_requests_total\{.*method="POST".*/plan"', line)]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in counted)


def main() -> int:
    """Compare; answer the exit status."""
    jar, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True)
    different = compared = 0
    with icetower_process(folder, log_level="warning") as url:
        catalogs = {
            **rest_catalog(url, "own"),
            **rest_catalog(url, "server"),
            "spark.sql.catalog.server.scan-planning-mode": "server",
            "spark.jars": str(jar),
        }
        spark = open_session(catalogs, folder / "spark", default_catalog="own")
        try:
            spark.sql("CREATE NAMESPACE own.db")
            for version in (1, 2, 3):
                make_table(spark, f"own.db.v{version}", version)
                for at in ("", ".branch_behind", " VERSION AS OF 'midway'"):
                    for condition in CONDITIONS:
                        query = f"SELECT * FROM {{}}.db.v{version}{at} WHERE {condition} ORDER BY id"
                        before = plans_made(url)
                        expected = rows_of(spark, query.format("own"))
                        if plans_made(url) != before:
                            print(f"planned by the server without being asked to: {query.format('own')}")
                            different += 1
                        found = rows_of(spark, query.format("server"))
                        if plans_made(url) == before:
                            print(f"not planned by the server: {query.format('server')}")
                            different += 1
                        if found != expected:
                            print(f"{query.format('server')}: {len(found)} rows instead of {len(expected)}")
                            different += 1
                        compared += 1
        finally:
            spark.stop()
    print(f"{compared} queries compared, {different} differences")
    return 1 if different or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
