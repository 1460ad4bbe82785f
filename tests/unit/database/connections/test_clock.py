"""The database's time, as a process whose own clock is wrong says it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from app.database.connections.clock import DatabaseClock
from app.database.connections.database import Database
from app.errors import DatabaseUnavailable
from tests.servers.postgres import PostgresServer

DAY_MS = 86_400_000


class Apart:
    """An own clock that is some time ahead of the true one."""

    def __init__(self, days: float) -> None:
        self.days = days

    def __call__(self) -> int:
        return time.time_ns() + round(self.days * DAY_MS) * 1_000_000


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    with closing(Database.open(postgres_server.url())) as opened:
        yield opened


def is_now(moment_ms: int) -> bool:
    return abs(moment_ms - time.time_ns() // 1_000_000) < 60_000


@pytest.mark.postgres
@pytest.mark.parametrize("days", [-40, -1, 0, 2, 400])
def test_the_time_is_that_of_the_database(database: Database, days: float) -> None:
    assert is_now(DatabaseClock(database, Apart(days)).now_ms())


@pytest.mark.postgres
@pytest.mark.parametrize("days", [3, -3])
def test_it_does_not_matter_if_the_own_clock_is_set(database: Database, days: float) -> None:
    own = Apart(0)
    found = DatabaseClock(database, own)
    assert is_now(found.now_ms())

    own.days = days
    assert is_now(found.now_ms())
    found._measure()

    assert is_now(found.now_ms())


@pytest.mark.postgres
def test_a_steady_clock_that_has_slept_is_measured_again(database: Database) -> None:
    steady = Apart(0)
    found = DatabaseClock(database, steady_ns=steady)
    assert is_now(found.now_ms())

    steady.days = -3
    found._measure()

    assert is_now(found.now_ms())


class Away(Database):
    """A database that does not answer; only what the clock asks of one."""

    dialect_name = "postgresql"

    def __init__(self) -> None:
        self.asked = threading.Event()

    def read(self, work: Callable[[Any], Any]) -> Any:
        self.asked.set()
        raise DatabaseUnavailable("gone")


def test_while_the_database_does_not_answer_time_goes_on_from_what_it_last_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away, own = Away(), Apart(2)
    found = DatabaseClock(away, own)
    monkeypatch.setattr(Away, "read", lambda *_: time.time_ns() // 1_000_000)
    assert is_now(found.now_ms())
    monkeypatch.undo()

    own.days = -2
    found._measure()

    assert away.asked.is_set()
    assert is_now(found.now_ms())


def test_where_no_thread_can_be_started_the_database_is_asked_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.database.connections.clock.MEASURED_AGAIN_AFTER_S", 0.0)
    away = Away()
    found = DatabaseClock(away)
    with monkeypatch.context() as there:
        there.setattr(Away, "read", lambda *_: time.time_ns() // 1_000_000)
        assert is_now(found.now_ms())

    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", start)
        assert is_now(found.now_ms())
    assert not away.asked.is_set()

    assert is_now(found.now_ms())
    assert away.asked.wait(60)


def test_a_first_answer_that_comes_late_is_believed_more_than_the_own_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away, steady = Away(), Apart(0)

    def answer_an_hour_later(*_: object) -> int:
        steady.days += 1 / 24
        return time.time_ns() // 1_000_000

    monkeypatch.setattr(Away, "read", answer_an_hour_later)

    assert is_now(DatabaseClock(away, Apart(9), steady).now_ms())


def test_without_a_database_the_own_clock_has_to_do() -> None:
    away = Away()

    assert is_now(DatabaseClock(away, Apart(0)).now_ms())
    assert away.asked.is_set()


def test_sqlite_has_no_clock_of_its_own() -> None:
    away = Away()
    away.dialect_name = "sqlite"

    assert not is_now(DatabaseClock(away, Apart(2)).now_ms())
    assert not away.asked.is_set()
