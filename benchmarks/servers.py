"""Servers to measure: Icetower, and a bare FastAPI route that returns given bytes, each in one process."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import psutil

ROOT = Path(__file__).parents[1]
IDLE_S = 7
"""Longer than housekeeping waits between two looks."""
BARE = """
import sys
from pathlib import Path
import uvicorn
from fastapi import FastAPI
from starlette.responses import Response
body = Path(sys.argv[2]).read_bytes()
app = FastAPI()
@app.get("/v1/namespaces/{namespace}/tables/{table}")
async def load(namespace: str, table: str) -> Response:
    return Response(body, media_type="application/json")
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning")
"""


class Running:
    """A server process and where it listens."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, started_in_s: float) -> None:
        self.process = process
        self.url = url
        self.started_in_s = started_in_s

    @property
    def memory_mb(self) -> float:
        """Resident memory in MiB."""
        return float(psutil.Process(self.process.pid).memory_info().rss) / (1 << 20)

    @property
    def processor_s(self) -> float:
        """Processor time that it has used so far."""
        times = [process.cpu_times() for process in self._processes]
        return float(sum(used.user + used.system for used in times))

    @property
    def own_memory_mb(self) -> float:
        """Memory of all its processes together in MiB; what they share counts once."""
        return float(sum(process.memory_full_info().pss for process in self._processes)) / (1 << 20)

    def wait_until_idle(self) -> None:
        """Wait until housekeeping has looked at the tables that are new: it reads all of each, once."""
        used, idle_s = self.processor_s, 0
        while idle_s < IDLE_S:
            time.sleep(1)
            now = self.processor_s
            idle_s = idle_s + 1 if now - used < 0.05 else 0
            used = now

    @property
    def _processes(self) -> list[psutil.Process]:
        first = psutil.Process(self.process.pid)
        return [first, *first.children(recursive=True)]


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: list[str], url: str, path: str, folder: Path, environment: dict[str, str]
) -> Iterator[Running]:
    """Run a server until the block ends; it is up once it answers this path with 200."""
    started = time.perf_counter()
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        while True:
            if process.poll() is not None or time.perf_counter() - started > 60:
                raise RuntimeError((folder / "server.log").read_text()[-3000:])
            try:
                if httpx.get(url + path).status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.005)
        yield Running(process, url, time.perf_counter() - started)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


ICETOWER = [sys.executable, "-c", "from app.cli.start import run; run()"]


def icetower(folder: Path, **settings: str) -> AbstractContextManager[Running]:
    """Run `icetower serve` as it is by default, one process, logs to a file."""
    return _icetower([*ICETOWER, "serve"], folder, settings)


def slow_icetower(
    folder: Path, latency_s: float, files: Path, **settings: str
) -> AbstractContextManager[Running]:
    """Run a server with slow storage, whose files are in a folder: see `slow_storage`."""
    command = [sys.executable, "-m", "benchmarks.slow_storage", str(latency_s), str(files)]
    return _icetower(command, folder, settings)


@contextmanager
def _icetower(command: list[str], folder: Path, settings: dict[str, str]) -> Iterator[Running]:
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    chosen = {
        "database_url": f"sqlite:///{folder / 'icetower.db'}",
        "default_warehouse_location": str(folder / "warehouse"),
        "port": str(port),
    } | settings
    environment = {name: text for name, text in os.environ.items() if not name.startswith("ICETOWER_")}
    environment |= {f"ICETOWER_{name.upper()}": text for name, text in chosen.items()}
    environment["PYTHONPATH"] = str(ROOT)
    # Python keeps what it compiled, as wherever a server is installed: or each start would compile it all again.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if chosen["database_url"].startswith("postgresql"):
        subprocess.run([*ICETOWER, "migrate"], env=environment, cwd=folder, check=True, capture_output=True)
    with running(command, f"http://127.0.0.1:{port}", "/health", folder, environment) as server:
        yield server


@contextmanager
def bare_route(folder: Path, body: bytes) -> Iterator[Running]:
    """Run a FastAPI application of one asynchronous route that returns the same bytes for every table."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "body.json").write_bytes(body)
    port = free_port()
    command = [sys.executable, "-c", BARE, str(port), str(folder / "body.json")]
    path = "/v1/namespaces/n/tables/t"
    with running(command, f"http://127.0.0.1:{port}", path, folder, dict(os.environ)) as server:
        yield server


def wrk(
    url: str,
    *,
    seconds: int = 6,
    connections: int = 16,
    script: str | None = None,
    header: str | None = None,
    may_refuse: bool = False,
) -> float:
    """Return requests per second under load; every answer must be a success.

    Args:
        script: a Lua script for wrk.
        header: one more request header.
        may_refuse: count successes only, and let others be.
    """
    if shutil.which("wrk") is None:
        sys.exit("The benchmarks need wrk (Debian: apt-get install wrk)")
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s"]
    if header is not None:
        command += ["-H", header]
    if script is not None:
        command += ["-s", script]
    output = subprocess.run([*command, url], check=True, capture_output=True, text=True).stdout
    if "Socket errors" in output or ("Non-2xx" in output and not may_refuse):
        raise RuntimeError(output)
    found = re.search(r"Requests/sec: +([0-9.]+)", output)
    sent, refused = re.search(r"([0-9]+) requests in", output), re.search(r"Non-2xx.*: ([0-9]+)", output)
    assert found is not None
    assert sent is not None
    return float(found[1]) * (1 - int(refused[1]) / int(sent[1]) if refused else 1)
