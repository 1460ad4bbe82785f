"""Planning scans of a table with very many files, beside PyIceberg's and Iceberg Java's own planning of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from pyiceberg.catalog.rest import RestCatalog
from pyspark.sql import SparkSession

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.maintenance.spark.spark_runtime import iceberg_runtime_jar
from benchmarks.planning_tables import FIRST_DAY, NAMESPACE, TIME, Shape, make_table
from benchmarks.report import Row, rate
from benchmarks.servers import Running, icetower
from examples.flights.spark_session import rest_catalog

FILES = int(os.environ.get("ICETOWER_BENCH_FILES", "1000000"))
MANIFESTS, DAYS = 200, 400
KEPT_DAYS = 4
CACHE_BYTES = 4 << 30


def measure(folder: Path) -> list[Row]:
    """Measure a table whose manifests have two days each, and one in whose manifests every day is."""
    rows: list[Row] = []
    by_day = Shape(FILES, MANIFESTS, DAYS, by_day=True)
    mixed = Shape(FILES // 5, MANIFESTS // 5, DAYS, by_day=False)
    settings = {"manifest_cache_bytes": str(CACHE_BYTES)}
    with (
        icetower(folder / "planning", **settings) as server,
        httpx.Client(base_url=server.url, timeout=600) as http,
    ):
        for shape in (by_day, mixed):
            make_table(http, folder / "planning" / "warehouse", shape)
    for shape in (by_day, mixed):
        # A server that has read nothing yet.
        with icetower(folder / "planning", **settings) as server:
            rows += _filtered(server, shape)
            rows += _everything(server, shape)
    return rows


def _moment(day: int) -> str:
    return (datetime.fromtimestamp(0, UTC) + timedelta(days=FIRST_DAY + day)).strftime("%Y-%m-%dT%H:%M:%S")


def _filtered(server: Running, shape: Shape) -> list[Row]:
    """Plan a filter that keeps one in a hundred files: for four days, on three sides."""
    first, end = _moment(100), _moment(100 + KEPT_DAYS)
    identifier = TableIdentifier(Namespace((NAMESPACE,)), shape.name)
    expected = shape.files * KEPT_DAYS // DAYS
    with RemoteCatalog(server.url) as catalog:
        catalog.tables.load(identifier)

        def plan(digits: int) -> int:
            # The same moment in other words: the answer to one spelling is not kept for another.
            start = f"{first}.{'0' * digits}"
            filter_ = {
                "type": "and",
                "left": {"type": "gt-eq", "term": TIME, "value": start},
                "right": {"type": "lt", "term": TIME, "value": end},
            }
            return sum(1 for _ in catalog.scans.plan(identifier, {"filter": filter_}).files)

        cold = _seconds(lambda: plan(1), expected)
        warm = min(_seconds(partial(plan, digits), expected) for digits in range(2, 7))
        again = min(_seconds(lambda: plan(1), expected) for _ in range(5))
    words = f"{TIME} >= '{first}' and {TIME} < '{end}'"
    local = min(_pyiceberg(server.url, shape, words, expected, "client") for _ in range(2))
    remote = min(_pyiceberg(server.url, shape, words, expected, "server") for _ in range(3))
    java_first, java = _java(server.url, shape, (first, end), expected)
    table = f"{shape.files:,} files, {shape.name.replace('_', ' ')}"
    beside = f"PyIceberg plans itself: {local:.2f} s"
    java_words = f"Iceberg Java plans itself: {java_first:.2f} s first, {java:.2f} s then"
    return [
        Row(f"1 % of {table}: cold", f"{cold:.3f} s", beside, f"{local / cold:.1f}", "≥ 3"),
        Row(f"1 % of {table}: warm, asked first", f"{warm:.3f} s", beside, f"{local / warm:.1f}", "≥ 30"),
        Row(f"1 % of {table}: warm, asked again", f"{again:.3f} s", beside, f"{local / again:.1f}", "≥ 30"),
        Row(
            f"1 % of {table}: warm, asked again by PyIceberg",
            f"{remote:.3f} s",
            beside,
            f"{local / remote:.1f}",
            "–",
        ),
        Row(f"1 % of {table}: warm, asked first", f"{warm:.3f} s", java_words, f"{java / warm:.1f}", "–"),
    ]


def _everything(server: Running, shape: Shape) -> list[Row]:
    """Plan the whole table: first what is answered at once, then every task of it."""
    path = f"/v1/namespaces/{NAMESPACE}/tables/{shape.name}"
    with httpx.Client(base_url=server.url, timeout=600, headers={"accept-encoding": "identity"}) as http:
        started = time.perf_counter()
        answer = http.post(f"{path}/plan", json={}).json()
        planned = time.perf_counter() - started
        started, files, left = time.perf_counter(), len(answer["file-scan-tasks"]), list(answer["plan-tasks"])
        tasks = len(left)
        while left:
            page = http.post(f"{path}/tasks", json={"plan-task": left.pop()}).json()
            files += len(page["file-scan-tasks"])
            left += page["plan-tasks"]
        spent = time.perf_counter() - started
    if files != shape.files:
        raise RuntimeError(f"{files} of {shape.files} files were planned")
    table = f"{shape.files:,} files, {shape.name.replace('_', ' ')}"
    return [
        Row(f"all of {table}: to {tasks} plan tasks", f"{planned:.3f} s", "–", "–", "–"),
        Row(f"all of {table}: every task, one client", rate(files / spent), f"{spent:.1f} s", "–", "–"),
        Row(
            f"{table}: memory of the server",
            f"{server.memory_mb:,.0f} MiB",
            f"peak {_peak_mb(server):,.0f} MiB",
            "–",
            "–",
        ),
    ]


def _seconds(plan: Callable[[], int], expected: int) -> float:
    started = time.perf_counter()
    found = plan()
    spent = time.perf_counter() - started
    if found != expected:
        raise RuntimeError(f"{found} files were planned, expected {expected}")
    return spent


def _pyiceberg(url: str, shape: Shape, words: str, expected: int, mode: str) -> float:
    catalog = RestCatalog("planning", uri=url, **{"scan-planning-mode": mode})
    table = catalog.load_table((NAMESPACE, shape.name))
    return _seconds(lambda: len(list(table.scan(row_filter=words).plan_files())), expected)


def _java(url: str, shape: Shape, days: tuple[str, str], expected: int) -> tuple[float, float]:
    """Return the seconds of the first plan and of the best of three after it, in Spark's JVM on all cores."""
    builder = SparkSession.builder.master("local[*]").config("spark.jars", str(iceberg_runtime_jar()))
    # As Java runs by default, with room for a million files.
    builder = builder.config("spark.driver.memory", "4g").config("spark.ui.enabled", "false")
    for key, value in rest_catalog(url, "planning").items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public name for it
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            spark._jsparkSession,  # noqa: SLF001 - PySpark has no public name for it
            f"planning.{NAMESPACE}.{shape.name}",
        )
        words = jvm.org.apache.iceberg.expressions.Expressions
        condition = getattr(words, "and")(
            words.greaterThanOrEqual(TIME, days[0]), words.lessThan(TIME, days[1])
        )
        size = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size

        def plan() -> int:
            return int(size(table.newScan().filter(condition).planFiles()))

        return _seconds(plan, expected), min(_seconds(plan, expected) for _ in range(3))
    finally:
        spark.stop()


def _peak_mb(server: Running) -> float:
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
