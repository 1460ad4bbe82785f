"""Pieces of work that go side by side in one thread: each goes on while the others wait."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from greenlet import getcurrent, greenlet

from app.waits import set_companions

Start = Callable[[Callable[[], None]], "Future[None]"]
"""Begins work in another thread."""
HANGS_S: Final = 0.05
"""After so long those whose disk has answered do not wait for the others any more."""
WAITS_AT_ONCE: Final = 8
"""In how many threads those who wait for the disk do so. More would cost more than they save: each has to wake up."""
_TIMED_OUT: Final = TimeoutError()


class _Traveller(greenlet):
    """One piece of work. It switches to the thread's own course, its parent, when it has to wait."""

    held_s = 0.0
    """For how long it held the thread without a pause, at the longest."""


class _Errand:
    """What one does that waits for the disk, in another thread."""

    __slots__ = ("_work", "done", "error")

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self.done: Future[None] = Future()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised again by the one whose errand it is
            self.error = error
        self.done.set_result(None)

    def raise_error(self) -> None:
        """Raise what the work has raised, once it is done."""
        error, self.error = self.error, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # it would lead back to this frame


@dataclass(frozen=True, slots=True)
class _Held:
    """A traveller that waits for a future."""

    traveller: _Traveller
    future: Future[None]
    end_s: float | None

    def is_over(self, now_s: float) -> bool:
        return self.future.done() or (self.end_s is not None and now_s >= self.end_s)


class SideBySide:
    """Does several pieces of work in one thread: each goes on while the others wait.

    Threads of their own would take turns too, but at every call of the operating system, and each turn costs more than
    the call. What is expected to wait says so through `app.waits`; whatever else waits holds up all.
    """

    def __init__(self, start: Start) -> None:
        """Wait for the disk in threads that `start` finds."""
        self._start = start
        self._working: list[tuple[_Traveller, _Errand]] = []
        self._arrived: deque[_Traveller] = deque()
        self._held: list[_Held] = []

    def go(self, works: Sequence[Callable[[], None]], note: Callable[[], None]) -> list[float]:
        """Do all of it, and return how long each held the thread without a pause.

        That is the longest such time of each, in seconds.

        Args:
            works: the pieces; they raise nothing.
            note: called now and then, when some of them may have ended.
        """
        set_companions(self)
        try:
            travellers = [_Traveller(work) for work in works]
            for each in travellers:
                self._go_on(each)
            while self._working or self._arrived or self._held:
                note()
                self._go_round()
        finally:
            set_companions(None)
        return [each.held_s for each in travellers]

    def do_meanwhile(self, work: Callable[[], None]) -> None:
        """As `app.waits` says."""
        errand = _Errand(work)
        _switch(errand)
        errand.raise_error()

    def do_elsewhere(self, work: Callable[[], None]) -> None:
        """As `app.waits` says."""
        self.wait_for(self._start(work), None)

    def wait_for(self, future: Future[None], timeout_s: float | None) -> None:
        """As `app.waits` says."""
        try:
            if not future.done() and _switch((future, timeout_s)) is not None:
                raise TimeoutError
            future.result()
        finally:
            del future  # an error that it has would lead back to this frame

    def let_come(self) -> None:
        """As `app.waits` says."""
        _switch(None)

    def _go_on(self, traveller: _Traveller, answer: BaseException | None = None) -> None:
        """Let one go on until it waits again, or ends."""
        since_s = time.monotonic()
        # What a new one is given are the arguments of its function, which has none.
        asked: Any = traveller.switch(answer) if bool(traveller) else traveller.switch()
        traveller.held_s = max(traveller.held_s, time.monotonic() - since_s)
        if traveller.dead:
            return
        if asked is None:
            self._arrived.append(traveller)
        elif isinstance(asked, tuple):
            future, timeout_s = asked
            end_s = None if timeout_s is None else time.monotonic() + timeout_s
            self._held.append(_Held(traveller, future, end_s))
        else:
            self._working.append((traveller, asked))

    def _go_round(self) -> None:
        """Let all go on that may, in the order in which they began to wait.

        Those for whom others wait come first: they may come as far as these.
        """
        working, self._working = self._working, []
        self._begin([errand for _, errand in working])
        # Who leads a line, and then those who stood behind it; not more, or one with few steps would wait for many.
        for _ in range(2):
            self._release(time.monotonic())
        arrived, self._arrived = self._arrived, deque()
        if working:
            wait([errand.done for _, errand in working], HANGS_S)
            for traveller, errand in working:
                if errand.done.done():
                    self._go_on(traveller)
                else:
                    self._held.append(_Held(traveller, errand.done, None))
            del working, errand
            if self._arrived:
                # Those who had come already go on with those who come now.
                arrived += self._arrived
                self._arrived = deque()
        elif not arrived and not self._working:
            self._wait_for_held()
        for traveller in arrived:
            self._go_on(traveller)

    def _release(self, now_s: float) -> None:
        """Let those go on whose future is done, or whose time is over."""
        over = [held for held in self._held if held.is_over(now_s)]
        if over:
            self._held = [held for held in self._held if held not in over]
            for held in over:
                self._go_on(held.traveller, None if held.future.done() else _TIMED_OUT)

    def _wait_for_held(self) -> None:
        ends = [held.end_s for held in self._held if held.end_s is not None]
        timeout_s = max(0.0, min(ends) - time.monotonic()) if ends else None
        wait([held.future for held in self._held], timeout_s, return_when=FIRST_COMPLETED)

    def _begin(self, errands: Sequence[_Errand]) -> None:
        """Begin them in a few threads."""
        waiting = deque(errands)

        def work() -> None:
            with suppress(IndexError):
                while True:
                    waiting.popleft().run()

        for _ in range(min(WAITS_AT_ONCE, len(errands))):
            self._start(work)


def _switch(asked: object) -> BaseException | None:
    parent = getcurrent().parent
    assert parent is not None
    answer: BaseException | None = parent.switch(asked)
    return answer
