"""Connections that only read, kept open and handed out most recently used first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sqlalchemy import Connection

from app.database.connections.driver_errors import library_errors, our_error
from app.errors import DatabaseUnavailable

_Result = TypeVar("_Result")


class _Reader:
    """One connection, as SQLAlchemy and as the driver see it."""

    __slots__ = ("connection", "driver_connection", "execute", "series")

    def __init__(self, connection: Connection, series: int) -> None:
        driver_connection: Any = connection.connection.dbapi_connection
        self.connection = connection
        self.series = series
        self.driver_connection = driver_connection
        self.execute: Callable[[str, Sequence[Any]], Any] = driver_connection.execute

    @property
    def is_dead(self) -> bool:
        return bool(getattr(self.driver_connection, "closed", False))

    def discard(self) -> None:
        """Close the connection without a message to a server that may be gone."""
        self.connection.invalidate()
        self.connection.close()


class Readers:
    """A pool of our own: SQLAlchemy's pool costs more than the read itself does on SQLite."""

    def __init__(self, connect: Callable[[], Connection], size: int, timeout_s: float) -> None:
        self._connect = connect
        self._timeout_s = timeout_s
        self._idle: deque[_Reader] = deque()
        self._permits: SimpleQueue[None] = SimpleQueue()
        self._series = 0
        self._is_closed = False
        for _ in range(size):
            self._permits.put(None)

    def fetch(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run one statement through the driver itself and return all its rows."""
        return self._use(lambda reader: reader.execute(sql, parameters).fetchall())

    def read(self, work: Callable[[Connection], _Result]) -> _Result:
        """Return what `work` reads."""
        return self._use(lambda reader: work(reader.connection))

    def renew(self) -> None:
        """Give up all connections that are open now.

        Those in use end what they are at.
        """
        self._series += 1
        self._discard_idle()

    def close(self) -> None:
        """Close the connections; those in use follow when they are given back."""
        self._is_closed = True
        self._discard_idle()

    def _discard_idle(self) -> None:
        with suppress(IndexError):  # Another thread may take the last one.
            while True:
                self._idle.pop().discard()

    def _use(self, work: Callable[[_Reader], _Result]) -> _Result:
        try:
            self._permits.get(timeout=self._timeout_s)
        except Empty as error:
            raise DatabaseUnavailable(
                "The database does not keep up: no connection became free in time"
            ) from error
        try:
            return self._use_idle_or_new(work)
        finally:
            self._permits.put(None)

    def _use_idle_or_new(self, work: Callable[[_Reader], _Result]) -> _Result:
        try:
            reader = self._idle.pop()
        except IndexError:
            return self._use_new(work)
        if reader.series != self._series:
            reader.discard()
            return self._use_idle_or_new(work)
        try:
            return self._use_once(reader, work)
        except library_errors() as error:
            if not reader.is_dead:
                raise our_error(error) from error
        # The server restarted, most likely: then all idle connections are dead, and a new one will do.
        self._discard_idle()
        return self._use_new(work)

    def _use_new(self, work: Callable[[_Reader], _Result]) -> _Result:
        series = self._series
        try:
            return self._use_once(_Reader(self._connect(), series), work)
        except library_errors() as error:
            raise our_error(error) from error

    def _use_once(self, reader: _Reader, work: Callable[[_Reader], _Result]) -> _Result:
        try:
            result = work(reader)
        except BaseException:
            reader.discard()
            raise
        self._idle.append(reader)
        if self._is_closed:
            self._discard_idle()
        return result
