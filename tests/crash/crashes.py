"""Servers to be killed, and what must be true of every table afterwards."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import httpx
from sqlalchemy import Connection, func, or_, select, text

from app.database.connections.clock import database_now_ms
from app.database.connections.database import Database
from app.database.schema.rows import file_deletions
from tests.builders.folders import files_below
from tests.crash import crashing_server
from tests.servers.forks import ForkedProcess
from tests.servers.ports import hold_port

DAY_MS = 24 * 3_600_000
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
}


class CrashingServer:
    """A server process on one port, one database and one warehouse, to be killed and started again."""

    def __init__(
        self, folder: Path, settings: dict[str, str] | None = None, max_file_bytes: int | None = None
    ) -> None:
        self.folder = folder
        self._held = ExitStack()
        self.port = hold_port(self._held)
        self.url = f"http://127.0.0.1:{self.port}"
        self.crash_at_file = folder / "crash-at"
        self._max_file_bytes = max_file_bytes
        self._settings = {
            "database_url": f"sqlite:///{folder / 'icetower.db'}",
            "default_warehouse_location": str(folder / "warehouse"),
            "log_level": "warning",
            "file_deletion_interval_seconds": "0.1",
        } | (settings or {})
        self._process: ForkedProcess | None = None

    def start(self) -> None:
        """Start the process and wait until it is ready."""
        environment = {name: text for name, text in os.environ.items() if not name.startswith("ICETOWER_")}
        environment |= {f"ICETOWER_{name.upper()}": text for name, text in self._settings.items()}
        self._process = ForkedProcess(
            crashing_server.main,
            self.port,
            self.crash_at_file,
            env=environment,
            cwd=self.folder,
            log=self.folder / "server.log",
            max_file_bytes=self._max_file_bytes,
        )
        self.wait_until_ready()

    def wait_until_ready(self, path: str = "/ready") -> None:
        """Wait until the server answers 200."""
        pause = threading.Event()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self._process is not None
            assert self._process.poll() is None, (self.folder / "server.log").read_text()[-3000:]
            try:
                if httpx.get(f"{self.url}{path}", timeout=30).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            pause.wait(0.03)
        raise AssertionError((self.folder / "server.log").read_text()[-3000:])

    def arm(self, step: str) -> None:
        """Make the server die the next time it reaches this step."""
        self.crash_at_file.write_text(step)

    def wait_until_dead(self) -> int:
        """Wait until the process has ended and return its status."""
        assert self._process is not None
        return self._process.wait(timeout=60)

    def kill(self) -> None:
        """Kill the process as a crash would."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(timeout=60)

    def terminate(self) -> int:
        """Ask the process to stop, wait for it and return its status."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(timeout=60)

    def let_deletions_begin(self) -> None:
        """Make what waits in the queue of deletions due: a server that is armed may die of it, and of nothing else."""
        self._write("UPDATE file_deletions SET not_before_ms = 0 WHERE state = 'queued'")

    def forget_leases(self) -> None:
        """Let what a dead worker had taken from the queue be taken again now, not in some minutes."""
        self._write("UPDATE file_deletions SET leased_until_ms = 0 WHERE state = 'queued'")

    def _write(self, statement: str) -> None:
        database = Database.open(self._settings["database_url"])
        database.write(lambda connection: connection.execute(text(statement)))
        database.close()

    def wait_until_nothing_is_deleted(self) -> None:
        """Wait until no entry of the queue of deletions is due or being worked on."""
        database = Database.open(self._settings["database_url"])
        at_work = select(func.count()).where(
            file_deletions.c.state == "queued",
            or_(
                file_deletions.c.not_before_ms <= database_now_ms(),
                file_deletions.c.leased_until_ms > database_now_ms(),
            ),
        )
        deadline = time.monotonic() + 60
        while database.read(lambda connection: connection.scalar(at_work)):
            assert time.monotonic() < deadline, "files are still being deleted"
            time.sleep(0.05)
        database.close()

    def let_time_pass(self, days: int = 2) -> None:
        """Make rows and files look so much older, tables one day more, and let every table have its turn of a sweep.

        What is being deleted comes to its end first: it would write its times of today over the older ones.
        """
        self.wait_until_nothing_is_deleted()
        for path in files_below(self.folder / "warehouse"):
            with suppress(FileNotFoundError):
                status = path.stat()
                os.utime(path, (status.st_atime, status.st_mtime - days * DAY_MS / 1000))
        database = Database.open(self._settings["database_url"])
        aged = (
            f"pointers SET created_ms = created_ms - {(days + 1) * DAY_MS}, updated_ms = updated_ms - {days * DAY_MS}",
            f"pointer_history SET at_ms = at_ms - {days * DAY_MS}",
            f"pointer_history SET at_ms = at_ms - {DAY_MS} WHERE event = 'created'",
            f"file_deletions SET not_before_ms = not_before_ms - {days * DAY_MS}",
        )

        def age(connection: Connection) -> None:
            for change in aged:
                connection.execute(text(f"UPDATE {change}"))
            connection.execute(text("DELETE FROM metadata_sweeps"))

        database.write(age)
        database.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._held.close()


class Client:
    """What a test does to a server, and what it was told."""

    def __init__(self, url: str, timeout_s: float = 60) -> None:
        self.http = httpx.Client(base_url=url, timeout=timeout_s)

    def make_table(self, name: str, prefix: str = "/v1") -> dict[str, Any]:
        """Create a table in the namespace `ns`, and the namespace."""
        self.http.post(f"{prefix}/namespaces", json={"namespace": ["ns"]})
        answer = self.http.post(f"{prefix}/namespaces/ns/tables", json={"name": name, "schema": SCHEMA})
        answer.raise_for_status()
        loaded: dict[str, Any] = answer.json()
        return loaded

    def commit(self, name: str, mark: str, value: str = "here", prefix: str = "/v1") -> httpx.Response:
        """Commit one property that no other commit sets."""
        updates = [{"action": "set-properties", "updates": {mark: value}}]
        return self.http.post(
            f"{prefix}/namespaces/ns/tables/{name}", json={"requirements": [], "updates": updates}
        )

    def load(self, name: str, prefix: str = "/v1") -> dict[str, Any]:
        """Load a table."""
        answer = self.http.get(f"{prefix}/namespaces/ns/tables/{name}")
        assert answer.status_code == 200, answer.text
        loaded: dict[str, Any] = answer.json()
        return loaded


def check_table(loaded: dict[str, Any], acknowledged: set[str], attempted: set[str]) -> None:
    """Check that a table holds every acknowledged commit and none that nobody attempted, and its files exist."""
    marks = {name for name in loaded["metadata"]["properties"] if name.startswith("mark-")}
    assert acknowledged <= marks, f"lost: {sorted(acknowledged - marks)[:5]}"
    assert marks <= attempted, f"invented: {sorted(marks - attempted)[:5]}"
    logged = [entry["metadata-file"] for entry in loaded["metadata"]["metadata-log"]]
    for location in (loaded["metadata-location"], *logged):
        assert Path(location.removeprefix("file://")).is_file(), f"gone: {location}"
    assert len(set(logged)) == len(logged)
