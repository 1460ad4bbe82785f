"""Requests that stand in a table's line: no thread is held while others go before them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Generic

from starlette.responses import Response

from app.api.dependencies import Visit
from app.api.idempotency import Once
from app.catalog.commits.intentions import D, Landed
from app.catalog.commits.landing import Landing
from app.catalog.context.catalog import Catalog
from app.errors import IcetowerError
from app.waits import let_companions_come

Begin = Callable[[Catalog], Landing[Any, D]]
Answer = Callable[[Landed[Any, D]], Response]


async def land_once(
    visit: Visit,
    begin: Begin[D],
    answer: Answer[D],
    replay: Callable[[str], Response],
    *,
    is_commit: bool = False,
) -> Response:
    """Land what a request wants, or answer like the first one under its Idempotency-Key.

    Args:
        visit: the request.
        begin: does all that need not wait, in a thread, and stands in the line.
        answer: makes the answer of what has landed.
        replay: answers again from what the success stored.
        is_commit: as for `run_once`.
    """
    standing = _Standing(visit, begin, answer, lambda: Once(visit, replay, is_commit=is_commit))
    try:
        answered = await visit.in_convoy(standing.begin)
    except asyncio.CancelledError:
        standing.break_off()
        raise
    return answered or await standing.end()


class _Standing(Generic[D]):
    """One request on its way."""

    def __init__(
        self, visit: Visit, begin: Begin[D], answer: Answer[D], read_key: Callable[[], Once]
    ) -> None:
        self._visit = visit
        self._read_key = read_key
        self._once: Once
        self._begin, self._shaped = begin, answer
        self._landing: Landing[Any, D]
        self._waiting: Landing[Any, D] | None = None
        """The landing that waits in its line, and nothing works on here."""
        self._is_broken_off = False

    def begin(self) -> Response | None:
        """Begin in a thread; return the answer, or None if it has to wait first."""
        self._once = self._read_key()
        earlier = self._once.earlier()
        if earlier is not None:
            return earlier
        try:
            self._landing = self._begin(self._once.catalog())
        except IcetowerError as error:
            return self._once.refused(error)
        # Those that come to the same table at the same time stand behind it by then.
        let_companions_come()
        if self._landing.works and not self._landing.waits_for_processes:
            return self._answer()
        self._waiting = self._landing
        if self._is_broken_off:
            self._waiting.leave()
        return None

    def break_off(self) -> None:
        """Leave the line, or let the thread leave it that goes on all the same."""
        # Whichever of the two comes second leaves.
        self._is_broken_off = True
        if self._waiting is not None:
            self._waiting.leave()

    async def end(self) -> Response:
        """Wait, and return the answer."""
        landing = self._landing
        try:
            await landing.wait_here()
            if landing.works:
                return await self._visit.in_thread(self._answer)
        except BaseException:
            landing.leave()  # Else those behind it would wait for it.
            raise
        try:
            return self._shaped(landing.finish())
        except IcetowerError as error:
            # It is done: to wait for room is for those who begin something.
            return await self._visit.parts.crew.run(partial(self._once.refused, error))

    def _answer(self) -> Response:
        try:
            landed = self._landing.finish()
        except IcetowerError as error:
            return self._once.refused(error)
        return self._shaped(landed)
