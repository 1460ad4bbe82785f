"""Processes that begin with all imports done: forked from one process that has imported a server already.

A server needs most of a second of processor time for its imports, and the tests start hundreds of them.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Mapping
from multiprocessing import forkserver, get_context, process
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_IMPORTED = ("app.main", "app.cli.server.serving", "uvloop", "httptools", "psycopg", "pyarrow.parquet")
"""By the process that all others are forked from: importing them starts no thread."""


class ForkedProcess:
    """A process that runs one function and ends; used like a `subprocess.Popen`."""

    def __init__(
        self,
        function: Callable[..., object],
        *arguments: object,
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        max_file_bytes: int | None = None,
    ) -> None:
        """Start it.

        Args:
            function: importable by its module and name.
            arguments: those of the function.
            env: all of its environment.
            cwd: where it works.
            log: what it writes is added to this file.
            max_file_bytes: no file that it writes may become longer.
        """
        context = get_context("forkserver")
        forkserver.set_forkserver_preload(list(_IMPORTED))
        self._process: BaseProcess = context.Process(
            target=_run, args=(function, arguments, dict(env), cwd, log, max_file_bytes)
        )
        # The first one starts the process that all are forked from, which has to find the tests.
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(ROOT))
            self._process.start()

    @property
    def pid(self) -> int:
        """Its id."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Return its status, or None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its status.

        Raises:
            TimeoutError: it has not ended.
        """
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise TimeoutError(f"process {self.pid} has not ended after {timeout} s")
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


def _run(
    function: Callable[..., object],
    arguments: tuple[object, ...],
    env: dict[str, str],
    cwd: Path,
    log: Path,
    max_file_bytes: int | None,
) -> None:
    # As a shell starts it: it is not the worker of another one.
    process._parent_process = None  # type: ignore[attr-defined]  # the library has no setting for it
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    with log.open("ab") as output, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    if max_file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    function(*arguments)
