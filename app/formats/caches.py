"""Caches within a byte budget, safe to use from many threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar, cast

from app.errors import GivenUp

Value = TypeVar("Value")
Found = TypeVar("Found")


class BoundedCache(Generic[Value]):
    """The values used last, up to a number of bytes; safe to use from many threads."""

    def __init__(self, max_bytes: int, largest_share: float = 0.25) -> None:
        """Keep so many bytes; one value may take a share of them, or is not kept."""
        self._max_bytes = max_bytes
        self._largest_bytes = max_bytes * largest_share
        self.held_bytes = 0
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Value | None:
        """Return the value and count it as used now."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Value, size_bytes: int) -> None:
        """Keep a value, unless it is larger than one may be; forget those used longest ago."""
        if size_bytes > self._largest_bytes:
            return
        with self._lock:
            previous = self._values.pop(key, None)
            if previous is not None:
                self.held_bytes -= previous[1]
            self._values[key] = (value, size_bytes)
            self.held_bytes += size_bytes
            while self.held_bytes > self._max_bytes:
                _, (_, forgotten_bytes) = self._values.popitem(last=False)
                self.held_bytes -= forgotten_bytes

    def forget(self, key: Hashable) -> None:
        """Drop a value if it is there."""
        with self._lock:
            found = self._values.pop(key, None)
            if found is not None:
                self.held_bytes -= found[1]


class ReadThroughCache(BoundedCache[Value]):
    """A cache that reads a missing value once, however many threads ask for it.

    The others wait for the first, also if the value is too large to be kept.
    """

    def __init__(self, max_bytes: int, largest_share: float = 0.25) -> None:
        super().__init__(max_bytes, largest_share)
        self._being_read: dict[Hashable, Future[Any]] = {}
        self._reading_lock = threading.Lock()

    def find_or_read(self, key: Hashable, read: Callable[[], tuple[Found, int]]) -> Found:
        """Return the value of a key; if it is missing, `read` returns it with its size in bytes."""
        kept: Any = self.find(key)
        if kept is not None:
            return cast("Found", kept)
        with self._reading_lock:
            # A thread that was reading the value has kept it before it leaves `_being_read`.
            kept = self.find(key)
            if kept is not None:
                return cast("Found", kept)
            reading = self._being_read.get(key)
            is_ours = reading is None
            if reading is None:
                reading = self._being_read[key] = Future()
        if not is_ours:
            try:
                return cast("Found", reading.result())
            except GivenUp:  # for that one's client; this one's may still be there
                return self.find_or_read(key, read)
            finally:
                del reading
        try:
            value, size_bytes = read()
        except BaseException as error:
            reading.set_exception(error)
            raise
        else:
            self.put(key, cast("Value", value), size_bytes)
            reading.set_result(value)
            return value
        finally:
            with self._reading_lock:
                del self._being_read[key]
            # It has the error, whose frames have it: what was read would stay until a garbage collection.
            del reading
