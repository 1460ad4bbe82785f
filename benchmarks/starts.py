"""From process start to the first answered request, and memory then."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.report import Row
from benchmarks.servers import bare_route, icetower


def measure(folder: Path) -> list[Row]:
    """Measure a first start, which makes the database, and later ones; beside them a bare FastAPI route."""
    bare, bare_memory, warm, memory = [], [], [], []
    with icetower(folder / "start") as server:
        first = server.started_in_s
    for _ in range(5):
        with bare_route(folder / "bare-start", b"{}") as server:
            bare.append(server.started_in_s)
            bare_memory.append(server.memory_mb)
        with icetower(folder / "start") as server:
            warm.append(server.started_in_s)
            memory.append(server.memory_mb)
    with icetower(folder / "start", workers="2") as server:
        two_started, two_mb = server.started_in_s, server.own_memory_mb
    started = time.perf_counter()
    # As in `icetower`: with the byte code of earlier starts.
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", "import app.main"]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[1], env=kept)
    importing = time.perf_counter() - started
    beside, seconds = statistics.median(bare), statistics.median(warm)
    beside_mb, mb = statistics.median(bare_memory), statistics.median(memory)
    return [
        Row(
            "first start, database made",
            f"{first:.2f} s",
            f"bare route {beside:.2f} s",
            f"{first / beside:.2f}",
            "–",
        ),
        Row(
            "later starts",
            f"{seconds:.2f} s",
            f"bare route {beside:.2f} s",
            f"{seconds / beside:.2f}",
            "≤ 1.0 s",
        ),
        Row("importing the application alone", f"{importing:.2f} s", "–", "–", "–"),
        Row(
            "memory after start",
            f"{mb:.0f} MiB",
            f"bare route {beside_mb:.0f} MiB",
            f"{mb / beside_mb:.2f}",
            "≤ 120 MiB",
        ),
        Row(
            "two processes: start",
            f"{two_started:.2f} s",
            f"one {seconds:.2f} s",
            f"{two_started / seconds:.2f}",
            "–",
        ),
        Row(
            "two processes: memory, together",
            f"{two_mb:.0f} MiB",
            f"one {mb:.0f} MiB",
            f"{two_mb / mb:.2f}",
            "–",
        ),
    ]
