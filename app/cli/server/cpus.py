"""A CPU for each server process: threads on one CPU do not wake each other across two."""

from __future__ import annotations

import os
import sys
from tempfile import TemporaryFile

import typer

from app.cli.terminal.output import print_failure

if sys.platform == "linux":
    import fcntl


class Cpus:
    """The CPUs that this process may use, for the server processes that are forked from it."""

    def __init__(self, processes: int) -> None:
        """Look at what there is.

        Raises:
            Exit: the processes cannot have one each.
        """
        if sys.platform != "linux":
            print_failure("pin_workers: only on Linux can a process be kept on one CPU")
            raise typer.Exit(1)
        self._cpus = sorted(os.sched_getaffinity(0))
        if processes > len(self._cpus):
            print_failure(
                f"pin_workers: {processes} server processes cannot have a CPU each: {len(self._cpus)} are there"
            )
            raise typer.Exit(1)
        self._claims = TemporaryFile()  # noqa: SIM115 - open as long as the server

    def take_one(self) -> None:
        """Keep this thread, and those that it starts, on a CPU that no other process has taken.

        A lock of each process on one byte says which are taken: it ends with the process.
        """
        for index, cpu in enumerate(self._cpus):
            try:
                fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, index)
            except BlockingIOError:
                continue
            os.sched_setaffinity(0, {cpu})
            return
