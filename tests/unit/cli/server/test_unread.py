"""Clients that do not take their answers: how long they are waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from app.cli.server import unread
from app.cli.server.lingering import LingeringTransport
from app.cli.server.unread import SLOWEST, UnreadAnswer

SECONDS = 0.5
PART = 100_000_000


class Holding(LingeringTransport):
    """Holds as much as a test says."""

    def __init__(self) -> None:
        self.held = PART
        self.is_reset = False

    @property
    def unread_bytes(self) -> int:
        return self.held

    def reset(self) -> None:
        self.is_reset = True


@dataclass
class Timer:
    """A call that is due at some time."""

    at_s: float
    call: Callable[[], None]
    is_off: bool = False

    def cancel(self) -> None:
        self.is_off = True


class Time:
    """The clock and the timers of an event loop; time passes when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._timers: list[Timer] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        self._timers.append(Timer(self.now_s + delay_s, call))
        return self._timers[-1]

    def pass_by(self, seconds: float) -> None:
        self.now_s += seconds
        due = [timer for timer in self._timers if timer.at_s <= self.now_s]
        self._timers = [timer for timer in self._timers if timer.at_s > self.now_s]
        for timer in due:
            if not timer.is_off:
                timer.call()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    passing = Time()
    monkeypatch.setattr(unread, "asyncio", SimpleNamespace(get_running_loop=lambda: passing))
    return passing


def is_given_up(time: Time, step: Callable[[Holding, UnreadAnswer], None], seconds: float) -> bool:
    """Return whether the connection is reset while a client does something again and again."""
    transport = Holding()
    answer = UnreadAnswer(transport, SECONDS)
    answer.begin()
    while not transport.is_reset and time.now_s < seconds:
        time.pass_by(0.01)
        step(transport, answer)
    return transport.is_reset


def nothing(_transport: Holding, _answer: UnreadAnswer) -> None: ...


def little(transport: Holding, _answer: UnreadAnswer) -> None:
    transport.held -= 1


def enough(transport: Holding, _answer: UnreadAnswer) -> None:
    transport.held -= SLOWEST


def part_after_part(transport: Holding, answer: UnreadAnswer) -> None:
    """Take a little, so that the next part is written."""
    transport.held -= 10
    answer.end(is_whole=False)
    transport.held += 10
    answer.begin()


def answer_after_answer(_transport: Holding, answer: UnreadAnswer) -> None:
    answer.end(is_whole=True)
    answer.begin()


@pytest.mark.parametrize("step", [nothing, little, part_after_part])
def test_client_that_takes_too_little_is_given_up(
    time: Time, step: Callable[[Holding, UnreadAnswer], None]
) -> None:
    assert is_given_up(time, step, 2 * SECONDS)


@pytest.mark.parametrize("step", [enough, answer_after_answer])
def test_client_that_takes_enough_is_waited_for(
    time: Time, step: Callable[[Holding, UnreadAnswer], None]
) -> None:
    assert not is_given_up(time, step, 20 * SECONDS)


def test_ended_watch_is_over(time: Time) -> None:
    def read(_transport: Holding, answer: UnreadAnswer) -> None:
        answer.end(is_whole=True)

    assert not is_given_up(time, read, 20 * SECONDS)
