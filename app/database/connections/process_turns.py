"""Turns: processes of one machine on one database let each other go first at a name."""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import stat
import struct
import tempfile
import time
import weakref
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from zlib import crc32

from sqlalchemy import make_url

from app.waits import do_meanwhile

log = logging.getLogger(__name__)

LONGEST_WAIT_S = 1.0
"""Enough for a commit on a slow store; who waits in vain goes on, as the check-and-put keeps all safe."""
_SLOTS = 4096
_LOOK_S = 0.0005
_MARK = struct.Struct("=d")
_ASKED_FOR_S = 2.0
_held_slots: ContextVar[frozenset[int]] = ContextVar("held_slots", default=frozenset())
"""Whose turns this thread or request has. They are those of one process, so one variable is enough."""


class ProcessTurns:
    """Turns at names, in a small file that all processes on a database map into memory.

    A process that has lost a race asks for turns at the name. For the next two seconds all take turns there: one
    reads, writes its file and moves the pointer while the others wait. Otherwise a process that is a little faster
    could win every race. Where none has asked, a look into the shared memory is all that it costs. Only politeness
    depends on it: without the file, or after a wait that is too long, all goes on without turns.
    """

    def __init__(self, path: str | None, longest_wait_s: float = LONGEST_WAIT_S) -> None:
        """Share turns through the file at a path; without one there are none."""
        self._longest_wait_s = longest_wait_s
        self._descriptor, self._marks = -1, None
        if path is not None:
            try:
                self._descriptor, self._marks = self._shared(path)
            except (OSError, ValueError) as error:  # mmap says so of a file that is too short, on a full disk
                log.warning("Processes on this database take no turns: cannot use %s: %s", path, error)

    @staticmethod
    def beside(database_url: str) -> ProcessTurns:
        """Return the turns of the processes of this machine on a database.

        Their file lies beside a SQLite database. For Postgres, and where SQLite is given a URI instead of a path, it is
        in this user's folder for temporary files: replicas on other machines take no part.
        """
        url = make_url(database_url)
        path = url.database or ":memory:"
        if url.get_backend_name() != "sqlite" or path.startswith("file:"):
            return ProcessTurns(_own_file(sha256(database_url.encode()).hexdigest()[:32]))
        return ProcessTurns(None if path == ":memory:" else f"{path}-turns")

    def ask(self, names: Collection[str]) -> None:
        """Make all processes take turns at these names for a while."""
        if self._marks is not None:
            for slot in _slots(names):
                _MARK.pack_into(self._marks, slot * _MARK.size, time.monotonic())

    def is_asked(self, names: Collection[str]) -> bool:
        """Return whether a process has asked for turns at one of these names a short time ago."""
        return any(self._is_asked(slot) for slot in _slots(names))

    @contextmanager
    def hold(self, names: Collection[str]) -> Iterator[None]:
        """Have the turn at these names during the block, where a process has asked for turns.

        Threads of one process do not wait for each other here, and who has a turn already does not wait for it again.
        """
        before = _held_slots.get()
        with ExitStack() as held:
            for slot in _slots(names):
                if slot not in before and self._is_asked(slot):
                    self._take(slot, held)
            yield

    def _shared(self, path: str) -> tuple[int, mmap.mmap]:
        size = _SLOTS * _MARK.size
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        weakref.finalize(self, os.close, descriptor)
        missing = size - os.fstat(descriptor).st_size
        if missing > 0:  # written, not only made longer: a page without a place on a full disk would be fatal
            os.pwrite(descriptor, bytes(missing), size - missing)
            os.fsync(descriptor)
        return descriptor, mmap.mmap(descriptor, size)

    def _is_asked(self, slot: int) -> bool:
        if self._marks is None:
            return False
        (asked_s,) = _MARK.unpack_from(self._marks, slot * _MARK.size)
        return bool(0 <= time.monotonic() - asked_s < _ASKED_FOR_S)

    def _take(self, slot: int, held: ExitStack) -> None:
        """Take the turn. Who waits longest holds the place of the next one, where the others queue up.

        So the process that had the last turn cannot take the following one as well while another one waits.
        """
        end_s = time.monotonic() + self._longest_wait_s
        turn, following = 2 * slot, 2 * slot + 1
        if self._lock(following, end_s):
            try:
                if self._lock(turn, end_s):
                    held.callback(self._unlock, turn)
                    held.callback(_held_slots.reset, _held_slots.set(_held_slots.get() | {slot}))
            finally:
                self._unlock(following)

    def _lock(self, byte: int, end_s: float) -> bool:
        while True:
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            except OSError as error:
                if not isinstance(error, BlockingIOError | PermissionError) or time.monotonic() >= end_s:
                    return False
            else:
                return True
            do_meanwhile(_look_again_soon)

    def _unlock(self, byte: int) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, byte)


def _look_again_soon() -> None:
    time.sleep(_LOOK_S)


def _own_file(name: str) -> str | None:
    """Return a path in a temporary folder of this user; None if others can change it."""
    folder = Path(tempfile.gettempdir()) / f"icetower-turns-{os.geteuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        log.warning("Processes on this database take no turns: cannot use %s: %s", folder, error)
        return None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        log.warning("Processes on this database take no turns: others can change %s", folder)
        return None
    return str(folder / name)


def _slots(names: Collection[str]) -> list[int]:
    """Return where names have their marks, in the order in which all processes take turns."""
    return sorted({crc32(name.encode()) % _SLOTS for name in names})
