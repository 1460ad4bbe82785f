"""What upkeep is worth: scans before and after it, and a compaction beside writers that append."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from app.maintenance.spark.spark_runtime import iceberg_runtime_jar
from benchmarks.report import Row, rate
from benchmarks.servers import ROOT, icetower
from examples.flights.spark_session import rest_catalog

SMALL_FILES = int(os.environ.get("ICETOWER_BENCH_SMALL_FILES", "10000"))
DAYS, ROWS, IN_ONE_APPEND = 10, 100, 100
WRITERS = 8
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "day", "required": False, "type": "int"},
    ],
}
SPEC = {"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "transform": "identity", "name": "day"}]}
TABLE = "/v1/namespaces/ns/tables/t"
QUERY = "SELECT sum(id), count(*) FROM bench.ns.t WHERE day = 3"


def measure(folder: Path) -> list[Row]:
    """Scan a table of small files, have it maintained, scan it again; then compact it beside writers."""
    place = folder / "upkeep"
    with icetower(place) as server, httpx.Client(base_url=server.url, timeout=600) as http:
        files = _make_table(http, SMALL_FILES)
        spark = _spark(server.url)
        try:
            before = _scan(spark)
            report = _maintain(server.url)
            after = _scan(spark)
            if before[1] != after[1]:
                raise RuntimeError(f"rows are not what they were: {before[1]} before, {after[1]} after")
            rows = [_of_scans(before[0], after[0], report)]
            rows += _beside_writers(server.url, http, files)
        finally:
            spark.stop()
    return rows


def _of_scans(before_s: float, after_s: float, report: dict[str, Any]) -> Row:
    files = f"{report['before']['data files']:,} files, then {report['after']['data files']:,}"
    return Row(
        f"Spark reads one of {DAYS} partitions: {files}; upkeep took {report['seconds']:.0f} s",
        f"{after_s:.2f} s",
        f"before: {before_s:.2f} s",
        f"{before_s / after_s:.1f}",
        "–",
    )


def _beside_writers(url: str, http: httpx.Client, files: _Files) -> list[Row]:
    """Let writers append while the table is compacted; no writer may fail."""
    properties = {"icetower.rebase": "conflict-free"}
    http.post(
        TABLE, json={"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]}
    )
    files.append_all(http, SMALL_FILES // 10)
    stop, landed, failed = threading.Event(), [0] * WRITERS, [0] * WRITERS

    def write(number: int) -> None:
        with httpx.Client(base_url=url, timeout=120) as own:
            while not stop.is_set():
                answer = own.post(f"{TABLE}/append", json={"files": [files.new()]})
                if answer.status_code == 200:
                    landed[number] += 1
                else:
                    failed[number] += 1

    started = time.perf_counter()
    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(write, number) for number in range(WRITERS)]
        try:
            report = _maintain(url, "--jobs", "rewrite-data-files,rewrite-manifests")
        finally:
            stop.set()
        for writer in writers:
            writer.result()
    seconds = time.perf_counter() - started
    states = ", ".join(f"{job['job']} {job['state']}" for job in report["jobs"])
    return [
        Row(
            f"{WRITERS} writers append while the table is compacted ({states})",
            rate(sum(landed) / seconds),
            f"{sum(failed)} appends failed of {sum(landed) + sum(failed)}",
            "–",
            "no append fails",
        )
    ]


class _Files:
    """Small Parquet files in the table's own folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._number = 0
        folder.mkdir(parents=True, exist_ok=True)

    def new(self) -> dict[str, Any]:
        """Write one more file, and return what an append says of it."""
        with self._lock:
            self._number += 1
            number = self._number
        path = self._folder / f"{number}.parquet"
        day = number % DAYS
        first = number * ROWS
        ids = pa.array(range(first, first + ROWS), pa.int64())
        days = pa.array([day] * ROWS, pa.int32())
        pq.write_table(pa.table({"id": ids, "day": days}), path)
        return {"file-path": f"file://{path}", "partition": {"day": day}}

    def append_all(self, http: httpx.Client, number: int) -> None:
        """Append so many files, a hundred in each request."""
        for _ in range(0, number, IN_ONE_APPEND):
            body = {"files": [self.new() for _ in range(IN_ONE_APPEND)]}
            http.post(f"{TABLE}/append", json=body).raise_for_status()


def _make_table(http: httpx.Client, number: int) -> _Files:
    http.post("/v1/namespaces", json={"namespace": ["ns"]}).raise_for_status()
    body = {"name": "t", "schema": SCHEMA, "partition-spec": SPEC}
    made = http.post("/v1/namespaces/ns/tables", json=body).raise_for_status().json()
    location = made["metadata"]["location"].removeprefix("file://").removeprefix("file:")
    files = _Files(Path(location) / "data")
    files.append_all(http, number)
    return files


def _maintain(url: str, *arguments: str) -> dict[str, Any]:
    wanted = arguments or ("--jobs", "rewrite-data-files,rewrite-manifests")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "app.cli",
            "maintain",
            "ns.t",
            *wanted,
            "--spark",
            "local[*]",
            "--json",
            "--uri",
            url,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout.strip():
        raise RuntimeError(done.stderr)
    report: dict[str, Any] = json.loads(done.stdout)[0]
    return report


def _spark(url: str) -> SparkSession:
    builder = SparkSession.builder.master("local[*]").config("spark.jars", str(iceberg_runtime_jar()))
    builder = builder.config("spark.driver.memory", "4g").config("spark.ui.enabled", "false")
    for key, value in rest_catalog(url, "bench").items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _scan(spark: SparkSession) -> tuple[float, Any]:
    """Return the seconds of the best of three scans, and what it answered."""
    spark.sql("REFRESH TABLE bench.ns.t")
    found, times = None, []
    for _ in range(3):
        started = time.perf_counter()
        found = tuple(spark.sql(QUERY).collect()[0])
        times.append(time.perf_counter() - started)
    return min(times), found
