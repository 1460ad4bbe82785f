"""How long a request is worked on: until its client has gone, or its time is over."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from starlette.requests import Request

from app.errors import GivenUp

LONGEST_WORK_S: Final = 600.0
"""Longer than any client waits."""
_LOOK_S: Final = 0.5


class Patience:
    """Asked by a request's threads, between two files, whether to go on. Looks for the client now and then.

    It is made on the event loop, and may be asked in any thread.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._begun_s = time.monotonic()
        self._look_at_s = self._begun_s + _LOOK_S

    def __call__(self) -> None:
        """Return if the answer is still wanted.

        Raises:
            GivenUp: it is not.
        """
        now_s = time.monotonic()
        if now_s < self._look_at_s:
            return
        self._look_at_s = now_s + _LOOK_S
        if now_s - self._begun_s > LONGEST_WORK_S:
            raise GivenUp(f"The request was given up after {LONGEST_WORK_S:g} s: ask for less at once")
        if asyncio.run_coroutine_threadsafe(self._request.is_disconnected(), self._loop).result():
            raise GivenUp("The request was given up: its client has gone")
