"""Faults at chosen steps: each call to the store and each statement to the database is one, counted in order."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Self

import psycopg
from sqlalchemy import Engine, event

from app.database.connections import punctual_postgres
from app.database.connections.punctual_postgres import PunctualConnection
from app.errors import FilesUnavailable
from app.fileio.files import FileIO

_CALLS = frozenset(
    {
        "read",
        "read_at_most",
        "read_tail",
        "write_new",
        "write_once",
        "replace",
        "delete",
        "delete_empty_folder",
        "exists",
        "find_file",
        "list_files",
        "list_folder",
        "create_folder",
        "remove_folder",
    }
)
_ALWAYS = ("ROLLBACK", "PRAGMA", "SET ", "SELECT set_config", "SELECT setting::bigint", "select ", "show ")
"""What ends a transaction, or sets a connection up, is no step: a process that is killed does as much."""
_OTHERS = ("housekeeping", "receipts", "file deletions", "deletions", "clock", "store checks")
"""Threads that work for no request."""


class Fault(Enum):
    """How a step fails."""

    REFUSED = "refused"
    """With an error, before its effect."""
    SILENT = "silent"
    """Nobody answers, and it has no effect: who asked cannot know."""
    ANSWER_LOST = "answer lost"
    """It has its effect, and no answer comes."""
    OUTAGE = "outage"
    """As the one before, and nothing works after it until the end of the request."""
    DIED_BEFORE = "died before"
    DIED_AFTER = "died after"
    """The process has ended: nothing that it does any more has an effect."""


_DEATHS = (Fault.DIED_BEFORE, Fault.DIED_AFTER)


class Step(NamedTuple):
    """One step: where it stands among all depends on what the server still knows, so that it is told by its name."""

    name: str
    """Without what is new in each request, such as the numbers of files."""
    before: int
    """How many steps before it have its name."""

    @classmethod
    def after(cls, steps: list[Step], name: str) -> Step:
        """Return the step of this name that follows others."""
        plain = re.sub(r"[0-9a-f-]*\d[0-9a-f-]*", "#", name)
        return cls(plain, sum(step.name == plain for step in steps))


class Died(Exception):
    """What a dead process raises: its handlers have no effect any more."""


@dataclass(eq=False)
class Faults:
    """Counts the steps of a request, and lets one of them fail."""

    steps: list[Step] = field(default_factory=list)
    _fault: Fault | None = None
    _at: Step | None = None
    _is_over: bool = False
    _is_counting: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def at(self, step: Step | None = None, fault: Fault | None = None) -> Iterator[None]:
        """Count steps until the block ends, and let one of them fail."""
        self.steps = []
        self._at, self._fault, self._is_over, self._is_counting = step, fault, False, True
        try:
            yield
        finally:
            self._is_counting = False

    @property
    def is_dead(self) -> bool:
        """Whether the process counts as dead."""
        return self._is_over and self._fault in _DEATHS

    @property
    def has_failed(self) -> bool:
        """Whether the step was reached."""
        return self._is_over

    def around(self, name: str, effect: Callable[[], Any], failure: Callable[[Fault], Exception]) -> Any:
        """Take one step, or fail."""
        with self._lock:
            if threading.current_thread().name.startswith(_OTHERS):
                return self._of_others(effect)
            if self.is_dead:
                raise Died
            if not self._is_counting:
                is_now, fault = False, None
            else:
                if self.is_out:
                    raise failure(Fault.SILENT)
                step = Step.after(self.steps, name)
                self.steps.append(step)
                is_now = step == self._at
                fault = self._fault if is_now else None
                self._is_over = self._is_over or fault is not None
        if fault is None:
            return effect()
        if fault in (Fault.ANSWER_LOST, Fault.OUTAGE, Fault.DIED_AFTER):
            effect()
        raise Died if fault in _DEATHS else failure(fault)

    def _of_others(self, effect: Callable[[], Any]) -> Any:
        if self.is_dead:
            raise SystemExit  # ends the thread without a word
        return effect()

    @property
    def is_out(self) -> bool:
        """Whether nothing answers any more until the request has ended."""
        return self._is_counting and self._is_over and self._fault is Fault.OUTAGE

    def bury(self) -> None:
        """Let a new process begin."""
        self._is_over, self._fault = False, None


class FaultyFiles:
    """Another store, each call to which is a step."""

    def __init__(self, files: FileIO, faults: Faults) -> None:
        self._files = files
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._files, name)
        if name not in _CALLS:
            return found

        def call(location: str, *arguments: Any) -> Any:
            def effect() -> Any:
                result = found(location, *arguments)
                return iter(list(result)) if name == "list_files" else result

            def failure(_fault: Fault) -> Exception:
                return FilesUnavailable(f"Cannot {name} {location}: the store does not answer")

            return self._faults.around(f"{name} {location.rpartition('/')[2]}", effect, failure)

        return call


class _Cursor(sqlite3.Cursor):
    def execute(self, sql: str, *arguments: Any) -> Self:
        connection: Any = self.connection
        connection.take_step(sql, lambda: super(_Cursor, self).execute(sql, *arguments))
        return self

    def executemany(self, sql: str, *arguments: Any) -> Self:
        connection: Any = self.connection
        connection.take_step(sql, lambda: super(_Cursor, self).executemany(sql, *arguments))
        return self


def _connection_of(faults: Faults) -> type[sqlite3.Connection]:
    class FaultyConnection(sqlite3.Connection):
        def cursor(self, factory: Any = None) -> Any:
            return super().cursor(factory or _Cursor)

        def execute(self, sql: str, *arguments: Any) -> Any:
            return self.cursor().execute(sql, *arguments)

        def take_step(self, sql: str, effect: Callable[[], Any]) -> Any:
            if sql.lstrip().startswith(_ALWAYS):
                return effect()
            return faults.around(" ".join(sql.split())[:60], effect, _failure)

    return FaultyConnection


def _failure(fault: Fault) -> Exception:
    is_refused = fault is Fault.REFUSED
    error = sqlite3.OperationalError("database or disk is full" if is_refused else "disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL if is_refused else sqlite3.SQLITE_IOERR
    error.sqlite_errorname = "SQLITE_FULL" if is_refused else "SQLITE_IOERR"
    return error


@contextmanager
def faulty_sqlite(faults: Faults) -> Iterator[None]:
    """Make each statement to SQLite a step, on connections that are opened until the block ends."""
    factory = _connection_of(faults)

    def connect(dialect: Any, _record: object, _arguments: object, options: dict[str, Any]) -> None:
        if dialect.name == "sqlite":
            options["factory"] = factory

    event.listen(Engine, "do_connect", connect)
    try:
        yield
    finally:
        event.remove(Engine, "do_connect", connect)


_FULL = "DO $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$"


def _postgres_connection_of(faults: Faults) -> type[PunctualConnection]:
    class FaultyCursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, *arguments: Any, **options: Any) -> Self:
            def effect() -> Any:
                return super(FaultyCursor, self).execute(query, *arguments, **options)

            def failure(fault: Fault) -> Exception:
                if fault is not Fault.REFUSED:
                    self.connection.close()
                    return psycopg.OperationalError("the server closed the connection")
                try:
                    if sql == "COMMIT":
                        super(FaultyCursor, self).execute("ROLLBACK")
                    super(FaultyCursor, self).execute(_FULL)
                except psycopg.Error as error:
                    return error
                raise AssertionError

            sql = str(query).strip()
            if sql.startswith(_ALWAYS):
                effect()
            else:
                faults.around(" ".join(sql.split())[:60], effect, failure)
            return self

    class FaultyConnection(PunctualConnection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.cursor_factory = FaultyCursor

        @classmethod
        def connect(cls, *arguments: Any, **options: Any) -> Any:
            if faults.is_out:
                raise psycopg.OperationalError("connection refused")
            return super().connect(*arguments, **options)

    return FaultyConnection


@contextmanager
def faulty_postgres(faults: Faults) -> Iterator[None]:
    """Make each statement to Postgres a step, on connections that are opened until the block ends."""
    before = punctual_postgres.PunctualConnection
    punctual_postgres.PunctualConnection = _postgres_connection_of(faults)  # type: ignore[misc]  # for a while
    try:
        yield
    finally:
        punctual_postgres.PunctualConnection = before  # type: ignore[misc]  # as it was
