"""Several server processes: forked from one, which supervises them."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pickle import UnpicklingError
from socket import socket
from types import FrameType
from typing import ClassVar

import typer
import uvicorn
from uvicorn import _subprocess
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import multiprocess as supervision

log = logging.getLogger(__name__)

HAS_FORKS = sys.platform == "linux"
"""Elsewhere the system's own libraries may break in a forked process: each process starts from nothing."""

_LOOK_FOR_PARENT_S = 0.2
_STOP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})
_START_AGAIN_S = 2.0
_LOOK_FOR_END_S = 0.2


def in_a_child(work: Callable[[], str]) -> str:
    """Do work in a process of its own, which leaves nothing in this one; return its answer.

    Raises:
        Exit: the work failed. What it raised has gone on in the child, up to where it is shown to the user.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        answer = work().encode(errors="surrogateescape")
        sys.stdout.flush()
        os.write(writer, answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise typer.Exit(status if status > 0 else 1)
    return answer.decode(errors="surrogateescape")


def share_memory() -> None:
    """Let uvicorn fork its processes from this one, which must have one thread only."""
    # An object that no collection touches is never written to, and what is not written to stays shared.
    gc.collect()
    gc.freeze()
    # There is no setting for it. uvicorn starts fresh processes, which import all that this one has imported.
    _subprocess.spawn = multiprocessing.get_context("fork")  # type: ignore[assignment]


def stop_without(parent: BaseProcess) -> None:
    """Stop this process when the one that supervises it has ended: it must not keep the port."""
    threading.Thread(target=_watch, args=(parent.pid,), daemon=True).start()


def leave_when_stopped() -> None:
    """Let SIGINT and SIGTERM end this process at once, as long as nothing else wants them."""
    for stop_signal in _STOP_SIGNALS:
        signal.signal(stop_signal, _leave)


class _Worker(supervision.Process):
    """A server process whose silence or failed start does not concern the others."""

    is_successor: ClassVar[bool] = False
    """Whether those that are made now take the place of others."""
    _started = False
    _asked_s: float | None = None

    def __init__(self, config: uvicorn.Config, sockets: list[socket]) -> None:
        super().__init__(config, sockets)
        self._is_successor = _Worker.is_successor

    def start(self) -> None:
        # The process begins with its parent's handlers, which would take the signal and stop nothing.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)

    def target(self, sockets: list[socket] | None = None) -> None:
        leave_when_stopped()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
        try:
            super().target(sockets)
        except SystemExit as failure:
            if failure.code != STARTUP_FAILURE or not self._is_successor:
                raise
            # With this status uvicorn ends all others, too. But a database that was there at the start comes back.
            time.sleep(_START_AGAIN_S)
            sys.exit(1)

    def _healthcheck(self, timeout: float) -> bool | None:
        # uvicorn waits for the answer. Until then it replaces no other process that has died, and obeys no signal.
        try:
            while self.parent_conn.poll():
                self._started, self._asked_s = self.parent_conn.recv(), None
            if self._asked_s is None:
                self._asked_s = time.monotonic()
                self.parent_conn.send(b"ping")
        except (OSError, EOFError, UnpicklingError):
            return None
        return None if self._has_waited(timeout) else self._started

    def terminate(self) -> None:
        # uvicorn also closes the connection, over which this process is asked until it has ended.
        if self.process.is_alive():
            self.process.terminate()
            log.info("process %d was asked to stop", self.pid)

    def is_silent(self, timeout: float) -> bool:
        """Return whether a process that may be ending has not answered for some seconds."""
        self._healthcheck(timeout)
        return self._has_waited(timeout)

    def _has_waited(self, timeout: float) -> bool:
        return self._asked_s is not None and time.monotonic() >= self._asked_s + timeout


# There is no setting for it.
supervision.Process = _Worker  # type: ignore[misc]


class Supervisor(supervision.Multiprocess):
    """Starts server processes, replaces those that died, and ends all when it is asked to.

    None of them listens any more once they are asked to stop.
    """

    processes: list[_Worker]  # type: ignore[assignment]  # see `supervision.Process` above

    def init_processes(self) -> None:
        super().init_processes()
        _Worker.is_successor = True

    def terminate_all(self) -> None:
        # As long as this process holds the port, clients connect and wait, though no process accepts them.
        for listener in self.sockets:
            listener.close()
        super().terminate_all()

    def join_all(self) -> None:
        # uvicorn waits for ever: a process that does not answer would keep this one from ending.
        for worker in self.processes:
            while worker.process.is_alive():
                worker.process.join(_LOOK_FOR_END_S)
                if worker.is_silent(self.config.timeout_worker_healthcheck):
                    log.error("process %d does not answer, and is ended without waiting", worker.pid)
                    worker.kill()
                    worker.process.join()


def _leave(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _watch(parent_id: int) -> None:
    # Not the pipe to the parent: processes that were forked later hold its other end too.
    while os.getppid() == parent_id:
        time.sleep(_LOOK_FOR_PARENT_S)
    os.kill(os.getpid(), signal.SIGTERM)
