"""Connections to Postgres on which no statement is waited for without end. Importing it imports the driver."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, Final, TypeVar

import psycopg

_GRACE_S: Final = 10.0
"""So much later than its own limit Postgres has said that a statement took too long."""
_Result = TypeVar("_Result")


class PunctualConnection(psycopg.Connection[Any]):
    """A connection that is given up if Postgres does not end a statement that takes too long.

    The limit of a statement is kept by Postgres itself. A proxy that takes every byte and never answers keeps none, and
    the network's own limits do not notice it.
    """

    longest_wait_s: float | None = None
    stood_still = False
    """Whether Postgres has said that it ended the session, since nothing came in the middle of a transaction."""

    def wait(self, gen: Generator[Any, Any, _Result], *args: Any, **options: Any) -> _Result:
        """Wait as the driver does, but at most `longest_wait_s`; raises `OperationalError` then."""
        try:
            if self.longest_wait_s is None:
                return super().wait(gen, *args, **options)
            return super().wait(self._in_time(gen, self.longest_wait_s), *args, **options)
        except psycopg.OperationalError as error:
            if self.stood_still:  # the driver only says that the connection is gone
                raise psycopg.errors.IdleInTransactionSessionTimeout(str(error)) from error
            raise

    def hear(self, said: psycopg.errors.Diagnostic) -> None:
        """Note what Postgres says between two statements.

        The driver takes an error for a notice there.
        """
        if said.sqlstate == psycopg.errors.IdleInTransactionSessionTimeout.sqlstate:
            self.stood_still = True

    def obey_statement_timeout(self) -> None:
        """Wait for a statement a little longer than Postgres lets it run.

        For ever, if Postgres has no limit.
        """
        self.longest_wait_s = _GRACE_S
        self.autocommit = True  # else the question would begin a transaction
        found = self.execute("SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'")
        (limit_ms,) = found.fetchone() or (0,)
        self.longest_wait_s = limit_ms / 1000 + _GRACE_S if limit_ms else None

    def _in_time(self, gen: Generator[Any, Any, _Result], longest_s: float) -> Generator[Any, Any, _Result]:
        end_s = time.monotonic() + longest_s
        try:
            wanted = next(gen)
            while True:
                # The driver looks several times a second, with nothing if nothing came.
                ready = yield wanted
                if not ready and time.monotonic() > end_s:
                    self.close()
                    raise psycopg.OperationalError(f"no answer after {longest_s:.3g} s")
                wanted = gen.send(ready)
        except StopIteration as done:
            result: _Result = done.value
            return result
