"""Connections that only read: threads that give up the idle ones at the same time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from app.database.connections.readers import Readers

THREADS, ROUNDS = 16, 1_000


class Opened:
    """A connection that does nothing."""

    @property
    def connection(self) -> Opened:
        return self

    @property
    def dbapi_connection(self) -> Opened:
        return self

    def execute(self, _sql: str, _parameters: object) -> None:
        """Run nothing."""

    def invalidate(self) -> None:
        """Give nothing up."""

    close = invalidate


@pytest.fixture
def hasty() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before_s)


@pytest.mark.usefixtures("hasty")
def test_several_threads_may_give_up_the_idle_ones_at_once() -> None:
    """As after a restart of Postgres, when each finds its own connection dead."""
    readers = Readers(lambda: _any(Opened()), 2 * THREADS, 60.0)
    failures: list[BaseException] = []
    filled, begun = threading.Barrier(THREADS), threading.Barrier(THREADS)

    def give_up() -> None:
        for _ in range(ROUNDS):
            filled.wait()
            readers.read(lambda _connection: readers.read(lambda _inner: None))
            begun.wait()
            try:
                readers.renew()
            except Exception as error:  # noqa: BLE001 - compared below
                failures.append(error)

    threads = [threading.Thread(target=give_up) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []


def _any(value: object) -> Any:
    return value
