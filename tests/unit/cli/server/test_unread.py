"""Clients that do not take their answers: how long they are waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from app.cli.server.lingering import LingeringTransport
from app.cli.server.unread import SLOWEST, UnreadAnswer

SECONDS = 0.5
PATIENCE_SECONDS = 20
PART = 100_000_000


class Holding(LingeringTransport):
    """Holds as much as a test says."""

    def __init__(self) -> None:
        super().__init__(asyncio.Transport(), lambda: False, lambda: None)
        self.held = PART
        self.is_reset = False

    @property
    def unread_bytes(self) -> int:
        return self.held

    def reset(self) -> None:
        self.is_reset = True


def is_given_up(step: Callable[[Holding, UnreadAnswer], None], seconds: float = PATIENCE_SECONDS) -> bool:
    """Return whether the connection is reset while a client does something again and again."""

    async def run() -> bool:
        transport = Holding()
        answer = UnreadAnswer(transport, SECONDS)
        answer.begin()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not transport.is_reset and loop.time() < deadline:
            await asyncio.sleep(0.01)
            step(transport, answer)
        return transport.is_reset

    return asyncio.run(run())


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
def test_client_that_takes_too_little_is_given_up(step: Callable[[Holding, UnreadAnswer], None]) -> None:
    assert is_given_up(step)


@pytest.mark.parametrize("step", [enough, answer_after_answer])
def test_client_that_takes_enough_is_waited_for(step: Callable[[Holding, UnreadAnswer], None]) -> None:
    assert not is_given_up(step, 3 * SECONDS)


def test_ended_watch_is_over() -> None:
    def read(_transport: Holding, answer: UnreadAnswer) -> None:
        answer.end(is_whole=True)

    assert not is_given_up(read, 3 * SECONDS)
