"""Requests whose client leaves while they are worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.errors import GivenUp
from app.fileio.wanted import ask_if_wanted


@contextmanager
def patient_for(questions: int) -> Iterator[Callable[[], int]]:
    """Let the client go after so many questions whether it is there; yield how many were asked."""
    asked = 0

    def ask() -> None:
        nonlocal asked
        asked += 1
        if asked > questions:
            raise GivenUp("its client has gone")

    token = ask_if_wanted.set(ask)
    try:
        yield lambda: asked
    finally:
        ask_if_wanted.reset(token)
