"""Scratch folders of Spark, which go with their process, or with a later one."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "icetower-spark-"
_NEW_S: Final = 600.0
"""A folder that is no older may not be locked yet."""


def new_scratch_folder() -> Path:
    """Make a folder for this process, and delete those of processes that were killed.

    What Spark puts aside while it sorts may be as large as a table. A folder is locked by its process: whatever ends
    the process ends the lock.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            _delete_if_left(folder)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    fcntl.flock(_opened(folder), fcntl.LOCK_EX)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _delete_if_left(folder: Path) -> None:
    found = folder.lstat()
    # Others may put anything into the folder for temporary files.
    if found.st_uid != os.geteuid() or time.time() - found.st_mtime < _NEW_S:
        return
    lock = _opened(folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
