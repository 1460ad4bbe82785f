"""A store over a network whose calls end in time, whatever the other side does."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from itertools import islice
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar

from app.engine.model.ids import Location
from app.errors import CommitStateUnknown, FilesUnavailable, InvalidSetting
from app.fileio.failures import not_opened
from app.fileio.files import ListedFile
from app.fileio.network.circuit import ANSWER_SECONDS, Circuit
from app.fileio.network.hdfs_store import HdfsStore
from app.fileio.network.object_store import ObjectStore
from app.fileio.tails import Tail
from app.fileio.trees import FolderEntry, tree_of

if TYPE_CHECKING:
    from app.fileio.network.azure_store import AzureStore

_BYTES_A_SECOND: Final = 1 << 20
"""Files may take so much longer as they are large."""
_STEPS: Final = 4
"""Creating a file once may be so many requests that wait for a store."""
_LISTED_TOGETHER: Final = 10_000
_LISTING_S: Final = 1800.0
"""For all pages of one folder's listing: more than ten million objects have. One without end is given up."""
_PROMPT_S: Final = 2.0
"""A failure that took longer was a time-out, or tries of one; it counts as silence."""

_T = TypeVar("_T")


class PunctualStore:
    """A FileIO whose calls end after a time, even where the library would wait for ever.

    No time-out of the library's ends a call while bytes trickle in, and a call in C cannot be broken off. So each
    runs in a thread of its own, which is left behind when its time is over. After repeated silence the store is not
    asked any more (`Circuit`), so few threads are left behind.
    """

    def __init__(
        self,
        store: ObjectStore | HdfsStore | AzureStore,
        answer_s: float = ANSWER_SECONDS,
        listing_s: float = _LISTING_S,
    ) -> None:
        self._store = store
        self._answer_s = answer_s
        self._listing_s = listing_s
        self._circuit = Circuit()
        self._workers = _Workers()

    def read(self, location: Location) -> bytes:
        return self._called("read", location, lambda call: self._store.read(location, call.allow_for))

    def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
        return self._called(
            "read", location, lambda call: self._store.read_at_most(location, max_bytes, call.allow_for)
        )

    def read_tail(self, location: Location, most_bytes: int) -> Tail:
        return self._called(
            "read", location, lambda call: self._store.read_tail(location, most_bytes, call.allow_for)
        )

    def write_new(self, location: Location, content: bytes) -> None:
        def write(call: _Call) -> None:
            call.allow_for(len(content))
            self._store.write_new(location, content)

        self._called("write", location, write)

    def write_once(self, location: Location, content: bytes) -> None:
        tree = tree_of(self._store, location)

        def write(call: _Call) -> None:
            # It is several requests, each with a time-out of its own, which say more than we could here.
            call.allow_for(len(content), _STEPS)
            tree.write_once(location, content)

        # What was given up may still be written.
        self._called("write", location, write, overdue=CommitStateUnknown)

    def check_writes_once(self, location: Location) -> None:
        # Nothing waits for it.
        tree_of(self._store, location).check_writes_once(location)

    def remove_folder(self, location: Location) -> bool:
        tree = tree_of(self._store, location)
        return self._called("delete", location, lambda _: tree.remove_folder(location))

    def replace(self, location: Location, content: bytes) -> None:
        self._called("write", location, lambda _: tree_of(self._store, location).replace(location, content))

    def list_folder(self, location: Location) -> list[FolderEntry] | None:
        return self._called("list", location, lambda _: tree_of(self._store, location).list_folder(location))

    def create_folder(self, location: Location) -> None:
        self._called("write", location, lambda _: tree_of(self._store, location).create_folder(location))

    def delete(self, location: Location) -> None:
        self._called("delete", location, lambda _: self._store.delete(location))

    def delete_empty_folder(self, location: Location) -> bool:
        return self._called("delete", location, lambda _: self._store.delete_empty_folder(location))

    def exists(self, location: Location) -> bool:
        return self._called("read", location, lambda _: self._store.exists(location))

    def find_file(self, location: Location) -> ListedFile | None:
        return self._called("read", location, lambda _: self._store.find_file(location))

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        found = self._store.list_files(prefix)

        def next_files(call: _Call) -> list[ListedFile]:
            # As many requests as there are pages, and a sick store says for ever that there is one more.
            call.allowed_s = self._listing_s
            return list(islice(found, _LISTED_TOGETHER))

        while files := self._called("list", prefix, next_files):
            yield from files

    def _called(
        self,
        verb: str,
        location: Location,
        work: Callable[[_Call], _T],
        overdue: type[FilesUnavailable | CommitStateUnknown] = FilesUnavailable,
    ) -> _T:
        refusal = self._circuit.refusal()
        if refusal is not None:
            raise FilesUnavailable(f"Cannot {verb} {location}: {refusal}")
        call, started_s = _Call(work, self._answer_s), time.monotonic()
        try:
            self._workers.run(call)
        except RuntimeError as error:
            # No thread can be started. It may be the probe, without which the circuit would stay open for ever.
            self._circuit.silent(str(error))
            raise FilesUnavailable(f"Cannot {verb} {location}: {error}") from error
        try:
            result: _T = call.result()
        except _OverdueError:
            reason = f"there was no whole answer after {call.allowed_s:.3g} s"
            self._circuit.silent(reason)
            raise overdue(f"Cannot {verb} {location}: {reason}") from None
        except InvalidSetting as error:  # which is only seen when the store is asked
            self._circuit.answered()
            raise not_opened(error) from error
        except FilesUnavailable as error:
            if time.monotonic() - started_s > _PROMPT_S:
                self._circuit.silent(str(error))
            else:
                self._circuit.answered()
            raise
        except BaseException:
            self._circuit.answered()
            raise
        self._circuit.answered()
        return result


class _OverdueError(Exception):
    """The time of a call is over."""


class _Call:
    """One call, the time that it may take, and what came of it."""

    def __init__(self, work: Callable[[_Call], Any], answer_s: float) -> None:
        self._work = work
        self._answer_s = self.allowed_s = answer_s
        self._is_over = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None

    def allow_for(self, size_bytes: int, steps: int = 1) -> None:
        """Allow more time for a large file, as soon as its size is known, and for several requests."""
        self.allowed_s = self._answer_s * steps + size_bytes / _BYTES_A_SECOND

    def run(self) -> None:
        """Do the work, in a thread that may be left behind."""
        try:
            self._result = self._work(self)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._error = error
        self._is_over.set()

    def result(self) -> Any:
        """Return what the work returns, or raise what it raises; raises `_OverdueError` in time."""
        begun_s = time.monotonic()
        while not self._is_over.wait(left_s := begun_s + self.allowed_s - time.monotonic()):
            if left_s <= 0:
                raise _OverdueError
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self._result


class _Workers:
    """Threads for calls, used again and again while there is a store that they work for.

    In a new thread the first call to a library takes longer. There are never more than calls at once; one that was
    left behind and ends after all is used again.
    """

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[_Call | None]] = []
        weakref.finalize(self, _send_home, self._idle).atexit = False

    def run(self, call: _Call) -> None:
        """Let a thread run a call."""
        try:
            self._idle.pop().put(call)
        except IndexError:
            calls: SimpleQueue[_Call | None] = SimpleQueue()
            calls.put(call)
            # A daemon: a call that never ends must not keep the process from ending.
            threading.Thread(
                target=_work, args=(calls, weakref.ref(self)), name="store calls", daemon=True
            ).start()

    def take_back(self, calls: SimpleQueue[_Call | None]) -> None:
        """Use the thread that waits for these calls again."""
        self._idle.append(calls)


def _work(calls: SimpleQueue[_Call | None], workers: weakref.ref[_Workers]) -> None:
    while (call := calls.get()) is not None:
        call.run()
        del call  # it holds the store, and so the workers
        if (those := workers()) is None:
            return
        those.take_back(calls)
        del those


def _send_home(idle: list[SimpleQueue[_Call | None]]) -> None:
    for calls in idle:
        calls.put(None)
