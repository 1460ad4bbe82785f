"""Writes that share one transaction of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from sqlalchemy import Connection

from app.database.connections.database import Database
from app.database.connections.driver_errors import ConstraintBroken, Undone
from app.database.connections.shared_writes import MOST_TOGETHER, SharedWrites
from app.errors import CommitStateUnknown, DatabaseUnavailable

PATIENCE_S = 30
Work = Callable[[Connection], Any]


class Shared:
    """A database of one table, and writes that are made to come together."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = Database.open(f"sqlite:///{path}")
        self.transactions = 0
        self.fails: BaseException | None = None
        self.writes = SharedWrites(self.write, PATIENCE_S)
        with sqlite3.connect(path) as setup:
            setup.execute("CREATE TABLE things (name TEXT PRIMARY KEY)")

    def write(self, work: Work) -> Any:
        self.transactions += 1
        if self.fails is not None:
            raise self.fails
        return self.database.write(work)

    def together(self, *works: Work, fails: BaseException | None = None) -> list[Future[Any]]:
        """Run works that all came while another one was at work, in this order; their transaction may fail."""
        began, may_go_on = Event(), Event()

        def first(_connection: Connection) -> None:
            began.set()
            assert may_go_on.wait(PATIENCE_S)

        with ThreadPoolExecutor(len(works) + 1) as pool:
            pool.submit(self.writes.run, first)
            assert began.wait(PATIENCE_S)
            ends = []
            for number, work in enumerate(works, 1):
                ends.append(pool.submit(self.writes.run, work))
                while len(self.writes._lines._waiting[None]) < number:
                    assert not ends[-1].done()
            self.transactions, self.fails = 0, fails
            may_go_on.set()
        return ends

    def names(self) -> set[str]:
        with sqlite3.connect(self.path) as connection:
            return {name for (name,) in connection.execute("SELECT name FROM things")}


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    shared = Shared(tmp_path / "things.db")
    yield shared
    shared.database.close()


def adding(name: str, error: BaseException | None = None) -> Work:
    def work(connection: Connection) -> str:
        connection.exec_driver_sql("INSERT INTO things VALUES (?)", (name,))
        if error is not None:
            raise error
        return f"added {name}"

    return work


def test_those_that_wait_share_one_transaction_and_have_their_own_results(shared: Shared) -> None:
    ends = shared.together(*(adding(f"t{number}") for number in range(5)))

    assert [end.result() for end in ends] == [f"added t{number}" for number in range(5)]
    assert shared.transactions == 1
    assert shared.names() == {f"t{number}" for number in range(5)}


def test_without_company_it_is_an_ordinary_write(shared: Shared) -> None:
    assert shared.writes.run(adding("alone")) == "added alone"
    with pytest.raises(ConstraintBroken):
        shared.writes.run(adding("alone"))
    assert shared.names() == {"alone"}


def test_one_that_is_refused_is_undone_alone(shared: Shared) -> None:
    refusal = ValueError("no")

    first, refused, last = shared.together(adding("a"), adding("b", refusal), adding("c"))

    assert (first.result(), last.result()) == ("added a", "added c")
    assert refused.exception() is refusal
    assert shared.names() == {"a", "c"}
    assert shared.transactions == 2


def test_what_the_database_refuses_is_judged_in_a_transaction_of_its_own(shared: Shared) -> None:
    first, twice, last = shared.together(adding("a"), adding("a"), adding("c"))

    assert (first.result(), last.result()) == ("added a", "added c")
    assert isinstance(twice.exception(), ConstraintBroken)
    assert shared.names() == {"a", "c"}
    assert shared.transactions == 3


def test_what_collided_is_tried_again_alone(shared: Shared) -> None:
    attempts: list[int] = []

    def colliding(connection: Connection) -> str:
        attempts.append(len(attempts))
        if len(attempts) <= 2:
            raise Undone(ValueError("lost"), 3)
        return str(adding("b")(connection))

    ends = shared.together(adding("a"), colliding)

    assert [end.result() for end in ends] == ["added a", "added b"]
    assert len(attempts) == 3


def test_if_the_whole_transaction_is_gone_each_runs_alone(shared: Shared) -> None:
    """As SQLite undoes it by itself on a full disk."""
    attempts: list[int] = []

    def undoing(connection: Connection) -> None:
        attempts.append(len(attempts))
        if len(attempts) <= 2:
            connection.exec_driver_sql("ROLLBACK")
            raise sqlite3.OperationalError("database or disk is full")

    ends = shared.together(adding("a"), undoing, adding("c"))

    assert [end.result() for end in ends] == ["added a", None, "added c"]
    assert shared.names() == {"a", "c"}
    assert shared.transactions == 5


@pytest.mark.parametrize("error", [CommitStateUnknown("lost"), DatabaseUnavailable("away")])
def test_an_outcome_of_the_transaction_is_that_of_all(shared: Shared, error: Exception) -> None:
    ends = shared.together(adding("a"), adding("b"), fails=error)

    assert [end.exception() for end in ends] == [error, error]
    assert shared.names() == set()


def test_no_more_than_so_many_go_together(shared: Shared) -> None:
    ends = shared.together(*(adding(f"t{number}") for number in range(MOST_TOGETHER + 3)))

    assert len({end.result() for end in ends}) == MOST_TOGETHER + 3
    assert shared.transactions == 2


def test_who_waits_too_long_has_changed_nothing(shared: Shared) -> None:
    hasty = SharedWrites(shared.write, 0.01)
    began, may_go_on = Event(), Event()

    def slow(_connection: Connection) -> None:
        began.set()
        assert may_go_on.wait(PATIENCE_S)

    with ThreadPoolExecutor(1) as pool:
        end = pool.submit(hasty.run, slow)
        assert began.wait(PATIENCE_S)
        with pytest.raises(DatabaseUnavailable, match="does not keep up"):
            hasty.run(adding("late"))
        may_go_on.set()
        end.result()
    assert shared.names() == set()
