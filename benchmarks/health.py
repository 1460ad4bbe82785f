"""Health of a table with very many files, beside Spark's own aggregate over its `files` metadata table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from pyspark.sql import SparkSession

from app.maintenance.spark.spark_runtime import iceberg_runtime_jar
from benchmarks.planning_tables import NAMESPACE, Shape, make_table
from benchmarks.report import Row
from benchmarks.servers import icetower
from examples.flights.spark_session import rest_catalog

FILES = int(os.environ.get("ICETOWER_BENCH_FILES", "1000000"))
MANIFESTS, DAYS = 200, 400
AGGREGATE = (
    "SELECT count(*), sum(file_size_in_bytes), sum(record_count), count_if(file_size_in_bytes < 402653184), "
    "count(DISTINCT partition) FROM {table}.files"
)


def measure(folder: Path) -> list[Row]:
    """Ask for the health of one table: of a server that has read nothing, of one that has, and after a commit."""
    shape = Shape(FILES, MANIFESTS, DAYS, by_day=True)
    place = folder / "health"
    with icetower(place) as server, httpx.Client(base_url=server.url, timeout=600) as http:
        path = make_table(http, place / "warehouse", shape)
        server.wait_until_idle()
    with icetower(place) as server, httpx.Client(base_url=server.url, timeout=600) as http:

        def health() -> int:
            answer = http.get(f"{path}/health")
            answer.raise_for_status()
            files: int = answer.json()["files"]["data-files"]
            return files

        cold = _seconds(health, shape.files)
        processor = server.processor_s
        warm = min(_seconds(health, shape.files) for _ in range(5))
        http.post(
            path, json={"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
        ).raise_for_status()
        after_commit = _seconds(health, shape.files)
        profile = _seconds(lambda: int(http.get(f"{path}/profile").json()["data-files"]), shape.files)
        memory = server.memory_mb
        first, again = _spark(server.url, shape)
    table = f"{shape.files:,} files in {MANIFESTS} manifests"
    beside = f"Spark's `files`: {first:.2f} s first, {again:.2f} s then"
    return [
        Row(
            f"health of {table}: cold", f"{cold:.2f} s", beside, f"{first / cold:.1f}", "< 5 s for 1,000,000"
        ),
        Row(f"health of {table}: processor time until then", f"{processor:.2f} s", "–", "–", "–"),
        Row(f"health of {table}: warm", f"{warm:.3f} s", beside, f"{again / warm:.1f}", "< 0.5 s"),
        Row(
            f"health of {table}: after a commit",
            f"{after_commit:.3f} s",
            beside,
            f"{again / after_commit:.1f}",
            "–",
        ),
        Row(f"profile of {table}: cold", f"{profile:.2f} s", "–", "–", "–"),
        Row("memory of the server", f"{memory:,.0f} MiB", "–", "–", "–"),
    ]


def _seconds(ask: Callable[[], int], expected: int) -> float:
    started = time.perf_counter()
    found = ask()
    spent = time.perf_counter() - started
    if found != expected:
        raise RuntimeError(f"{found} files were counted, expected {expected}")
    return spent


def _spark(url: str, shape: Shape) -> tuple[float, float]:
    """Return the seconds of the first aggregate and of the best of two after it, on all cores."""
    builder = SparkSession.builder.master("local[*]").config("spark.jars", str(iceberg_runtime_jar()))
    builder = builder.config("spark.driver.memory", "4g").config("spark.ui.enabled", "false")
    for key, value in rest_catalog(url, "health").items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        statement = AGGREGATE.format(table=f"health.{NAMESPACE}.{shape.name}")

        def aggregate() -> int:
            return int(spark.sql(statement).collect()[0][0])

        return _seconds(aggregate, shape.files), min(_seconds(aggregate, shape.files) for _ in range(2))
    finally:
        spark.stop()
