"""Writes that wait for SQLite at one time share one transaction and its wait for the disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from sqlalchemy import Connection

from app.database.connections.driver_calls import run_on_sqlite
from app.database.connections.driver_errors import Undone, library_errors
from app.errors import DatabaseUnavailable, IcetowerError
from app.lines import Lines
from app.waits import alone, has_companions

MOST_TOGETHER = 32
_Result = TypeVar("_Result")
_Write = Callable[[Callable[[Connection], Any]], Any]


class SharedWrites:
    """Runs the writes that have come together in one transaction. Each keeps its own result or error."""

    def __init__(self, write: _Write, longest_wait_s: float) -> None:
        """Share what `write` runs; a write whose turn does not come in time changes nothing."""
        self._write = write
        self._lines = Lines[list[_Waiting]](MOST_TOGETHER, longest_wait_s)
        self._side_by_side = Lines[_Waiting](MOST_TOGETHER, longest_wait_s)

    def run(self, work: Callable[[Connection], _Result]) -> _Result:
        """Return what the work returns, once it is durable; raises what it would raise alone.

        The work may see rows that others write in the same transaction. No reader sees some of them only.

        Raises:
            DatabaseUnavailable: nothing was changed.
            CommitStateUnknown: the reply to COMMIT was lost.
        """
        waiting = _Waiting(work)
        if has_companions():
            if not self._side_by_side.join_companions(waiting, self._join):
                raise _late()
        else:
            self._join([waiting])
        if waiting.error is not None:
            raise waiting.error
        return cast(_Result, waiting.result)

    def _join(self, group: list[_Waiting]) -> None:
        """Run writes of this thread together with those of others."""
        with alone():  # else others would wait for this thread, and it for one of its own that hangs
            if not self._lines.join(None, group, self._run_groups):
                raise _late()

    def _run_groups(self, groups: list[list[_Waiting]]) -> None:
        waiting = [each for group in groups for each in group]
        for first in range(0, len(waiting), MOST_TOGETHER):
            self._run_all(waiting[first : first + MOST_TOGETHER])

    def _run_all(self, group: list[_Waiting]) -> None:
        # Nearly always none fails: savepoints, with a copy of each page that is changed, would be in vain.
        for run in (_run_straight, _run_each) if len(group) > 1 else ():
            try:
                self._write(partial(run, group=group))
                break
            except _OneFailed:
                continue
            except IcetowerError as error:
                for each in group:
                    each.end(error=error)
                return
            except _Broken:
                for each in group:
                    each.is_alone = True
        for each in group:
            if len(group) == 1 or each.is_alone:
                each.run_alone(self._write)


class _Waiting:
    """One write, and what became of it."""

    def __init__(self, work: Callable[[Connection], Any]) -> None:
        self.work = work
        self.end()

    def end(
        self, result: object = None, error: BaseException | None = None, *, is_alone: bool = False
    ) -> None:
        """Note the outcome; `is_alone` if only a transaction of its own can find it out."""
        self.result, self.error, self.is_alone = result, error, is_alone

    def run_alone(self, write: _Write) -> None:
        """Run it in a transaction of its own."""
        try:
            self.end(write(self.work))
        except BaseException as error:  # noqa: BLE001 - raised again in its own thread
            self.end(error=error)


def _late() -> DatabaseUnavailable:
    return DatabaseUnavailable("The database does not keep up: other writers came first for too long")


class _Broken(Exception):
    """The database undid the whole transaction by itself, as on a full disk."""


class _OneFailed(Exception):
    """One of the writes raised an error; the others have to go without it."""


def _run_straight(connection: Connection, group: list[_Waiting]) -> None:
    for each in group:
        try:
            each.end(each.work(connection))
        except BaseException as error:
            raise _OneFailed from error


def _run_each(connection: Connection, group: list[_Waiting]) -> None:
    for each in group:
        run_on_sqlite(connection, "SAVEPOINT one_of_many")
        try:
            each.end(each.work(connection))
        except BaseException as error:  # noqa: BLE001 - raised again in its own thread
            # What the driver or a collision says is for a transaction of its own to judge.
            each.end(error=error, is_alone=isinstance(error, (Undone, *library_errors())))
            try:
                run_on_sqlite(connection, "ROLLBACK TO one_of_many")
            except library_errors() as broken:
                raise _Broken from broken
        run_on_sqlite(connection, "RELEASE one_of_many")
