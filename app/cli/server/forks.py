"""Server processes that are forked from one, and share the memory of what it has imported."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess

import typer
from uvicorn import _subprocess

HAS_FORKS = sys.platform == "linux"
"""Elsewhere the system's own libraries may break in a forked process: each process starts from nothing."""

_LOOK_FOR_PARENT_S = 0.2


def in_a_child(work: Callable[[], None]) -> None:
    """Do something in a process of its own, which leaves nothing in this one, and wait for it.

    Raises:
        Exit: the work failed. What it raised has gone on in the child, up to where it is shown to the user.
    """
    child = os.fork()
    if child == 0:
        work()
        sys.stdout.flush()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise typer.Exit(status if status > 0 else 1)


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


def _watch(parent_id: int) -> None:
    # Not the pipe to the parent: processes that were forked later hold its other end too.
    while os.getppid() == parent_id:
        time.sleep(_LOOK_FOR_PARENT_S)
    os.kill(os.getpid(), signal.SIGTERM)
