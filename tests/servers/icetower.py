"""A real Icetower in a process of its own, as `icetower serve` starts it."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from app.cli.main import run
from tests.builders.databases import migrated
from tests.servers.forks import ForkedProcess

_START_SECONDS = 60
_WITH_OTHER_CLOCK = """
import time
own = time.time_ns
time.time_ns = lambda: own() + {} * 86_400 * 10**9
from app.cli.main import run
run()
"""
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextmanager
def icetower_process(folder: Path, *, days_ahead: str = "0", **settings: str) -> Iterator[str]:
    """Run `icetower serve` on a free port until the block ends; hand out its address.

    Args:
        folder: where it keeps its SQLite database, its warehouse and its log, unless settings say otherwise.
        days_ahead: how far its clock is from that of others.
        settings: settings by name, as in `database_url="postgresql://…"`.
    """
    environment = environment_in(folder, settings)
    migrated(environment["ICETOWER_DATABASE_URL"])
    log = folder / "server.log"
    log.write_bytes(b"")
    process = ForkedProcess(_serve, int(days_ahead), env=environment, cwd=folder, log=log)
    try:
        yield _wait_until_ready(process, log)
    finally:
        process.terminate()
        process.wait()


def _serve(days_ahead: int) -> None:
    sys.argv = ["icetower", "serve"]
    if days_ahead:
        # Its clock has to be wrong before anything is imported.
        os.execv(sys.executable, [sys.executable, "-c", _WITH_OTHER_CLOCK.format(days_ahead), "serve"])
    run()


def environment_in(folder: Path, settings: dict[str, str]) -> dict[str, str]:
    """Return the environment of a process that works in a folder."""
    chosen = {
        "database_url": f"sqlite:///{folder / 'icetower.db'}",
        "default_warehouse_location": str(folder / "warehouse"),
        "port": "0",
    } | settings
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("ICETOWER_")}
    root = str(Path(__file__).parents[2])
    return (
        inherited | {"PYTHONPATH": root} | {f"ICETOWER_{name.upper()}": text for name, text in chosen.items()}
    )


def _wait_until_ready(process: ForkedProcess, log: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS
    pause = threading.Event()
    while time.monotonic() < deadline and process.poll() is None:
        found = _ADDRESS.search(log.read_text())
        if found and _is_ready(found.group()):
            return found.group()
        pause.wait(0.05)
    raise RuntimeError(f"icetower serve did not start:\n{log.read_text()[-5000:]}")


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready").is_success
    except httpx.TransportError:
        return False
