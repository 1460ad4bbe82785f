"""What loading and committing cost as a table's history grows, and memory with very many tables."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import orjson

from benchmarks.report import Row, rate
from benchmarks.servers import icetower, wrk
from benchmarks.tables import NAMESPACE, append_body, client, make_table, table_with_history

SIZES = (10, 1_000, 10_000, 50_000)
MANY_TABLES = 10_000
CACHE_BYTES = 64 << 20


def _median_ms(work: Callable[[], object], repeats: int = 7) -> float:
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        found.append((time.perf_counter() - started) * 1000)
    return statistics.median(found)


def measure(folder: Path) -> list[Row]:
    """Measure loads and commits over sizes; beside them parsing and writing the same JSON with orjson."""
    rows: list[Row] = []
    with icetower(folder / "sizes") as server:
        http = client(server.url)
        http.headers["accept-encoding"] = "identity"
        refs_only: dict[str, dict[int, float]] = {way: {} for way in ("", ", in gzip", ", with its tag")}
        for size in SIZES:
            path = table_with_history(http, f"history_{size}", size, folder / "sizes" / "warehouse")
            content = http.get(path).content
            loads = _median_ms(lambda path=path: http.get(path).raise_for_status())  # type: ignore[misc]  # bound now
            loaded = http.get(
                f"{path}?snapshots=refs"
            ).raise_for_status()  # The first load parses the whole file.
            headers = (None, "Accept-Encoding: gzip", f"If-None-Match: {loaded.headers['etag']}")
            server.wait_until_idle()
            for found, header in zip(refs_only.values(), headers, strict=True):
                found[size] = wrk(f"{server.url}{path}?snapshots=refs", seconds=3, header=header)
            beside = _median_ms(lambda content=content: _parse_and_write(folder / "beside.json", content))  # type: ignore[misc]  # bound now
            commits = _median_ms(_committer(http, path))
            megabytes = len(content) / 1e6
            rows.append(
                Row(f"load, {size:,} snapshots, {megabytes:.2f} MB", f"{loads:.1f} ms", "–", "–", "–")
            )
            rows.append(
                Row(
                    f"commit an append, {size:,} snapshots",
                    f"{commits:.1f} ms",
                    f"orjson parse, dump, write, fsync {beside:.1f} ms",
                    f"{commits / beside:.2f}",
                    "≤ 4 at 10,000" if size == 10_000 else "–",
                )
            )
        rows.extend(
            Row(
                f"load with snapshots=refs{way}, {size:,} snapshots",
                rate(found),
                f"at 10 snapshots {rate(by_size[10])}",
                f"{found / by_size[10]:.2f}",
                "≥ 0.5" if way else "–",
            )
            for way, by_size in refs_only.items()
            for size, found in by_size.items()
            if size != 10
        )
    rows += _memory(folder)
    return rows


def _committer(http: httpx.Client, path: str) -> Callable[[], None]:
    """Return one append after another; the body is made from what the last answer said, outside of no clock."""
    state = {"metadata": http.get(path).json()["metadata"]}

    def commit() -> None:
        answer = http.post(path, json=append_body(state["metadata"]))
        answer.raise_for_status()
        metadata = state["metadata"]
        number = metadata["last-sequence-number"] + 1
        metadata["last-sequence-number"] = number
        metadata["refs"]["main"] = {"snapshot-id": 4_000_000_000_000_000_000 + number}

    return commit


def _parse_and_write(path: Path, content: bytes) -> None:
    written = orjson.dumps(orjson.loads(content))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(descriptor, written)
    os.fsync(descriptor)
    os.close(descriptor)


def _memory(folder: Path) -> list[Row]:
    with icetower(folder / "memory", metadata_cache_bytes=str(CACHE_BYTES)) as server:
        http = client(server.url)
        paths = [make_table(http, f"t{number}") for number in range(MANY_TABLES)]
        half = 0.0
        for number, path in enumerate(paths):
            http.get(path).raise_for_status()
            if number == MANY_TABLES // 2:
                half = server.memory_mb
        whole = server.memory_mb
        assert http.get(f"/v1/namespaces/{NAMESPACE}/tables", params={"pageSize": "1"}).status_code == 200
    return [
        Row(
            f"memory after creating and loading {MANY_TABLES:,} tables, cache of {CACHE_BYTES >> 20} MiB",
            f"{whole:.0f} MiB",
            f"after loading half of them {half:.0f} MiB",
            f"{whole / half:.2f}",
            "about 1",
        )
    ]
