"""Writing files through to the disk."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import Final

_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
"""Only macOS has it: there `fsync` ends when the disk's own cache has the bytes, which a loss of power empties."""


def sync(descriptor: int) -> None:
    """Write an opened file or directory through to the disk.

    It survives a loss of power then.

    Raises:
        OSError: that failed, or cannot be had for this one.
    """
    if _FULL_SYNC is not None:
        with contextlib.suppress(OSError):  # network file systems do not have it
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
    os.fsync(descriptor)
