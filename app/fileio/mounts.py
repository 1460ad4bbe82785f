"""Mounts: which local files lie on other machines, where a look may take for ever."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_KEPT_S: Final = 30.0
"""So long a list of mounts is believed: it is read where nothing else is done meanwhile."""
_DISTANT: Final = frozenset(
    {
        "9p",
        "afs",
        "autofs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "gfs2",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "panfs",
        "pvfs2",
        "smb3",
        "smbfs",
        "virtiofs",
        "wekafs",
    }
)
"""`autofs` mounts others when they are looked at."""
_NEAR_OF_FUSE: Final = frozenset({"fuse.fuse-overlayfs", "fuseblk"})
"""Disks of this machine; behind all others of FUSE there is a program that may wait for anything."""
_OF_THE_KERNEL: Final = ("/proc/", "/sys/")
"""Below these no table lies, and most machines have mounts there that look like others."""


class Mounts:
    """The devices of file systems on other machines, as Linux lists them.

    Other operating systems have no such list, and all files count as near.
    """

    def __init__(
        self, listing: str = "/proc/self/mountinfo", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._listing = Path(listing)
        self._clock = clock
        self._distant: frozenset[int] = frozenset()
        self._until_s = 0.0

    def distant(self) -> frozenset[int]:
        """Return the devices, as `os.stat` has them, of file systems that may wait for a network."""
        now_s = self._clock()
        if now_s >= self._until_s:
            # What was distant stays so: `autofs` takes away a mount that is not used, and the next look brings it back.
            self._distant |= self._read()
            self._until_s = now_s + _KEPT_S
        return self._distant

    def _read(self) -> frozenset[int]:
        try:
            lines = self._listing.read_bytes().decode("latin-1").splitlines()
        except OSError:
            return frozenset()
        return frozenset(_device_of(line) for line in lines if _is_distant(line))


MOUNTS: Final = Mounts()
"""Those of this process."""


def _is_distant(line: str) -> bool:
    if line.split(" ", 5)[4].startswith(_OF_THE_KERNEL):
        return False
    kind = line.partition(" - ")[2].partition(" ")[0]
    return kind in _DISTANT or (kind.startswith("fuse") and kind not in _NEAR_OF_FUSE)


def _device_of(line: str) -> int:
    major, _, minor = line.split(" ", 3)[2].partition(":")
    return os.makedev(int(major), int(minor))
