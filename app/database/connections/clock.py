"""The clock of the database, which all servers on it share; their own may differ by hours."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, and_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from app.database.connections.database import Database
from app.errors import IcetowerError

log = logging.getLogger(__name__)

MEASURED_AGAIN_AFTER_S: Final = 10.0
_LONGEST_MEASURING_MS: Final = 2_000
MAY_BE_OFF_MS: Final = _LONGEST_MEASURING_MS
"""By less than this a server's idea of the database's time is off."""
_AGREE_MS: Final = 100
"""Clocks that differ by less than this agree: what is measured is no more exact on a busy machine."""
_STEADY_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""On Linux one that goes on while the machine sleeps."""


def steady_ns() -> int:
    """Return the time since some moment, by a clock that cannot be set."""
    return time.clock_gettime_ns(_STEADY_CLOCK)


class database_now_ms(FunctionElement[int]):  # noqa: N801 - an SQL function
    """The time of the database when the statement runs, in epoch milliseconds.

    On Postgres it is asked in a subquery, once: a time that may differ from row to row finds no row through an index.
    """

    type = BigInteger()
    inherit_cache = True


@compiles(database_now_ms, "postgresql")
def _on_postgres(_element: database_now_ms, _compiler: SQLCompiler, **_options: Any) -> str:
    return "(SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT))"


@compiles(database_now_ms, "sqlite")
def _on_sqlite(_element: database_now_ms, _compiler: SQLCompiler, **_options: Any) -> str:
    return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"


def read_now_ms(database: Database) -> int:
    """Return the time of the database, in epoch milliseconds.

    Raises:
        DatabaseUnavailable: it does not answer.
    """
    return database.read(lambda connection: int(connection.execute(select(database_now_ms())).scalar_one()))


def earlier_now_ms(database_ms: int) -> int:
    """Return the earlier of the times of the database and this machine: by it ages count.

    What dates them is near this machine's clock. By a database's that is days ahead, what was just made would be old.
    """
    return min(database_ms, time.time_ns() // 1_000_000)


def is_held(until_ms: ColumnElement[int], longest_ms: int) -> ColumnElement[bool]:
    """Say whether a lease holds.

    One that ends later than any lease can was written before the database's clock was set back, and does not.

    Args:
        until_ms: when it ends.
        longest_ms: how long a lease of its kind is at most. Twice that is believed, so that none ends because the clock
            goes back by a small step.
    """
    left_ms = until_ms - database_now_ms()
    return and_(left_ms > 0, left_ms <= 2 * longest_ms)


def is_held_at(until_ms: int, now_ms: int, longest_ms: int) -> bool:
    """Say the same as `is_held` of a lease that was read."""
    return 0 < until_ms - now_ms <= 2 * longest_ms


class DatabaseClock:
    """The time of the database, for all that a server decides and writes down.

    Servers on one database can only agree on its clock: their own may be days apart. It is asked at the first
    question, and again in the background every few seconds in which somebody asks. Between the two a steady clock
    counts, which does not notice if the machine's own one is set. SQLite has no clock but that of the machine.
    """

    def __init__(
        self,
        database: Database,
        own_ns: Callable[[], int] = time.time_ns,
        steady_ns: Callable[[], int] = steady_ns,
    ) -> None:
        self._database = database
        self._own_ns = own_ns
        self._steady_ns = steady_ns
        self._measure_at_s = 0.0 if database.dialect_name != "sqlite" else float("inf")
        self._began_ms: int | None = None
        """The time when the steady clock was at 0; None as long as it is not known."""
        self._is_apart = False

    def now_ms(self) -> int:
        """Return the time, in epoch milliseconds.

        While the database does not answer, time goes on from what it last said.
        """
        if time.monotonic() >= self._measure_at_s:
            self._measure_at_s = float("inf")
            if self._began_ms is not None:
                self._measure_soon()
            else:
                self._measure()
        began_ms = self._began_ms
        return self._own_ms() if began_ms is None else began_ms + self._steady_ms()

    def _own_ms(self) -> int:
        return self._own_ns() // 1_000_000

    def _steady_ms(self) -> int:
        return self._steady_ns() // 1_000_000

    def _measure_soon(self) -> None:
        try:
            threading.Thread(target=self._measure, name="clock", daemon=True).start()
        except RuntimeError as error:
            log.warning("cannot ask for the database's time: %s", error)
            self._measure_at_s = time.monotonic() + MEASURED_AGAIN_AFTER_S

    def _measure(self) -> None:
        try:
            before_ms = self._steady_ms()
            now_ms = read_now_ms(self._database)
            after_ms = self._steady_ms()
            if after_ms - before_ms < _LONGEST_MEASURING_MS:
                self._note(now_ms - (before_ms + after_ms) // 2)
            elif self._began_ms is None:
                # Nothing ends too early by a time that may be a little late. The own one may be days ahead.
                self._note(now_ms - after_ms)
        except IcetowerError as error:
            log.info("could not ask for the database's time: %s", error)
        finally:
            self._measure_at_s = time.monotonic() + MEASURED_AGAIN_AFTER_S

    def _note(self, began_ms: int) -> None:
        own_began_ms = self._own_ms() - self._steady_ms()
        ahead_ms = began_ms - own_began_ms
        is_apart = abs(ahead_ms) > _AGREE_MS
        if is_apart and not self._is_apart:
            log.warning(
                "this machine's clock is %.1f s %s that of the database, whose time is taken",
                abs(ahead_ms) / 1000,
                "behind" if ahead_ms >= 0 else "ahead of",
            )
        self._is_apart = is_apart
        known_ms = self._began_ms
        if known_ms is None or abs(began_ms - known_ms) > _AGREE_MS:
            self._began_ms = began_ms if is_apart else own_began_ms
