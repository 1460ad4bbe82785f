"""The gate: how many that wait for a lock hold a connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from app.catalog.context.threads.side_by_side import SideBySide
from app.database.connections import gates
from app.database.connections.gates import Gate
from app.shares import Group

pytestmark = pytest.mark.timeout(30)
CONNECTIONS = 10
OF_ONE_TABLE = 3


class Crowd:
    """Those that hold places until they may end."""

    def __init__(self, threads: ThreadPoolExecutor, longest_wait_s: float = 10.0) -> None:
        self.gate = Gate(CONNECTIONS, longest_wait_s)
        self.may_end = threading.Event()
        self.begun = threading.Semaphore(0)
        self.names: list[str] = []
        self._threads = threads

    def send(self, name: str, table: str = "t", warehouse: str = "lake") -> Future[None]:
        group = (warehouse, table)

        def work() -> None:
            self.gate.enter(group)
            try:
                self.names.append(name)
                self.begun.release()
                assert self.may_end.wait(20)
            finally:
                self.gate.leave(group)

        return self._threads.submit(work)

    def fill(self) -> list[Future[None]]:
        """Send more for one table than may go; the last two wait."""
        sent = [self.send(str(number)) for number in range(OF_ONE_TABLE)]
        for _ in sent:
            assert self.begun.acquire(timeout=10)
        return [*sent, self.send("late"), self.send("later")]


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    with ThreadPoolExecutor(3 * CONNECTIONS) as threads:
        crowd = Crowd(threads)
        yield crowd
        crowd.may_end.set()


def test_one_table_leaves_room_for_others_and_one_warehouse_too(crowd: Crowd) -> None:
    crowd.fill()
    crowd.send("other table", "u")
    assert crowd.begun.acquire(timeout=10)
    for number in range(CONNECTIONS):
        crowd.send(f"{number} of many", f"t{number}")
    crowd.send("other warehouse", warehouse="pond")
    while "other warehouse" not in crowd.names:
        assert crowd.begun.acquire(timeout=10)

    assert len(crowd.names) <= CONNECTIONS // 2 + 1


def test_those_that_wait_go_when_others_end(crowd: Crowd) -> None:
    sent = crowd.fill()
    crowd.may_end.set()
    for each in sent:
        each.result(10)

    assert sorted(crowd.names) == sorted([*map(str, range(OF_ONE_TABLE)), "late", "later"])


def test_who_waits_too_long_is_not_let_in_and_holds_up_nothing() -> None:
    with ThreadPoolExecutor(3 * CONNECTIONS) as threads:
        crowd = Crowd(threads, longest_wait_s=0.05)
        late = crowd.fill()[OF_ONE_TABLE:]
        for each in late:
            with pytest.raises(TimeoutError):
                each.result(10)
        crowd.may_end.set()
        crowd.send("next").result(10)

    assert "next" in crowd.names
    assert len(crowd.names) == OF_ONE_TABLE + 1


def test_a_place_that_comes_at_the_very_moment_when_the_time_is_over_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, group = Gate(CONNECTIONS), ("lake", "t")
    for _ in range(OF_ONE_TABLE):
        gate.enter(group)

    def be_late(_turn: Future[None], _timeout_s: float) -> None:
        gate.leave(group)
        raise TimeoutError

    monkeypatch.setattr(gates, "wait_for", be_late)
    with pytest.raises(TimeoutError):
        gate.enter(group)

    gate.enter(group)  # one place is free, that of the one which has left
    with pytest.raises(TimeoutError):
        gate.enter(group)


def test_who_goes_side_by_side_with_others_waits_alone(crowd: Crowd) -> None:
    group: Group = ("lake", "t")
    crowd.fill()
    said: list[str] = []

    def wait_for_turn() -> None:
        crowd.gate.enter(group)
        said.append("let in")
        crowd.gate.leave(group)

    def go_on() -> None:
        said.append("goes on")
        crowd.may_end.set()

    with ThreadPoolExecutor(2) as threads:
        SideBySide(threads.submit).go([wait_for_turn, go_on], lambda: None)

    assert said == ["goes on", "let in"]
