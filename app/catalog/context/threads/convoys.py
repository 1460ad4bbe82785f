"""Convoys: requests that come at the same time go side by side in few threads."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from app.catalog.context.threads.crew import Crew, settle
from app.catalog.context.threads.side_by_side import SideBySide, Start
from app.shares import Group
from app.waits import waited_s

Result = TypeVar("Result")
Room = Callable[[], AbstractAsyncContextManager[None]]
MOST_TOGETHER: Final = 32
LONG_S: Final = 0.05
"""After so long those who wait for a convoy to come back do not wait for that one any more."""
SLOW_S: Final = 0.03
"""What takes a thread for so long without a pause would hold up those who go side by side with it."""
_MOST_REMEMBERED: Final = 10_000


class Convoys:
    """Work for warehouses whose files are on this machine, where waits for them are short.

    Those that come while a convoy of their warehouse is on its way wait, and then go together. Who comes without
    company starts at once. What took long before has a thread for itself, and a convoy that takes long is not waited
    for: so neither a large table nor a disk that hangs stops those who come later. Belongs to one event loop.
    """

    def __init__(self, crew: Crew, start: Start) -> None:
        """Take threads from a crew.

        Args:
            crew: the threads.
            start: begins what waits for the disk in another thread.
        """
        self._crew = crew
        self._start = start
        self._lines: dict[str, _Line] = {}
        self._slow: OrderedDict[Group, None] = OrderedDict()
        self._leading: set[asyncio.Task[None]] = set()

    async def run(
        self, warehouse: str, table: str, room: Room, work: Callable[[], Result], has_room: Callable[[], bool]
    ) -> Result:
        """Return what the work returns, or raise what it raises; it runs in a copy of this context.

        It goes on in its thread if the one who waits for it is cancelled.

        Args:
            warehouse: those of one warehouse go together.
            table: what the work is for.
            room: holds the place of a thread.
            work: says through `app.waits` where it waits.
            has_room: returns whether `room` would hold a place at once.

        Raises:
            Unavailable: no thread became free in time; nothing was begun.
        """
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        passenger = _Passenger(done, copy_context(), table, work, room, has_room)
        line = self._lines.setdefault(warehouse, _Line())
        try:
            if (warehouse, table) in self._slow:
                await self._travel(warehouse, [passenger])
            elif line.is_waited_for:
                line.waiting.append(passenger)
            else:
                with self._on_the_way(warehouse, line):
                    await self._travel(warehouse, [passenger])
            return await done
        except asyncio.CancelledError:
            with suppress(ValueError):  # it has begun
                line.waiting.remove(passenger)
            raise
        finally:
            del done, passenger  # an error that they have would lead back to this frame

    @contextmanager
    def _on_the_way(self, warehouse: str, line: _Line) -> Iterator[None]:
        """Let others wait for what travels in this block, unless that takes long."""
        is_late = False

        def let_them_go() -> None:
            line.is_waited_for = False
            if line.waiting:
                line.is_waited_for = True
                task = asyncio.get_running_loop().create_task(self._lead(warehouse, line))
                self._leading.add(task)
                task.add_done_callback(self._leading.discard)

        def be_late() -> None:
            nonlocal is_late
            is_late = True
            let_them_go()

        line.is_waited_for = True
        clock = asyncio.get_running_loop().call_later(LONG_S, be_late)
        try:
            yield
        finally:
            clock.cancel()
            if not is_late:
                let_them_go()

    async def _lead(self, warehouse: str, line: _Line) -> None:
        """Take along those who wait."""
        group = [line.waiting.popleft() for _ in range(min(MOST_TOGETHER, len(line.waiting)))]
        with self._on_the_way(warehouse, line):
            try:
                if group:  # else all were cancelled
                    await self._travel(warehouse, group)
            except BaseException as error:  # noqa: BLE001 - raised again by those who wait for it
                for each in group:
                    each.fail(error)

    async def _travel(self, warehouse: str, group: Sequence[_Passenger[Any]]) -> None:
        loop = asyncio.get_running_loop()

        def end() -> None:
            for each in group:
                each.end()

        def note() -> None:
            if any(each.has_news for each in group):
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(end)

        def travel() -> None:
            if len(group) == 1:
                group[0].go_alone()
                return
            held_s = SideBySide(self._start).go([each.go for each in group], note)
            for each, seconds in zip(group, held_s, strict=True):
                each.held_s = each.unsaid_s = seconds

        # One table may hold as many threads as it may: those of other tables do not wait for that.
        first = next((each for each in group if each.has_room()), group[0])
        async with first.room():
            await self._crew.run(travel)
        end()
        for each in group:
            self._remember((warehouse, each.table), each)

    def _remember(self, group: Group, passenger: _Passenger[Any]) -> None:
        if passenger.held_s < SLOW_S:
            if passenger.unsaid_s < SLOW_S:
                self._slow.pop(group, None)
            return
        self._slow[group] = None
        if len(self._slow) > _MOST_REMEMBERED:
            self._slow.popitem(last=False)


@dataclass(slots=True)
class _Line:
    """Those who wait to go to one warehouse."""

    waiting: deque[_Passenger[Any]] = field(default_factory=deque)
    is_waited_for: bool = False
    """Whether a convoy is on its way, and those who wait go when it comes back."""


class _Passenger(Generic[Result]):
    """One piece of work, and what came of it."""

    __slots__ = (
        "_context",
        "_done",
        "_error",
        "_has_ended",
        "_result",
        "_work",
        "has_room",
        "held_s",
        "room",
        "table",
        "unsaid_s",
    )

    def __init__(
        self,
        done: asyncio.Future[Result],
        context: Context,
        table: str,
        work: Callable[[], Result],
        room: Room,
        has_room: Callable[[], bool],
    ) -> None:
        self.table, self.room, self.has_room = table, room, has_room
        self.held_s = 0.0
        """For how long it held its thread without a pause, at the longest; alone, its processor time."""
        self.unsaid_s = 0.0
        """The same; alone, all its time but that in which it said that it waits."""
        self._context, self._work = context, work
        self._done: asyncio.Future[Result] | None = done
        self._result: Result | None = None
        self._error: BaseException | None = None
        self._has_ended = False

    @property
    def has_news(self) -> bool:
        """Whether it has ended, and the one who waits for it does not know yet."""
        return self._has_ended and self._done is not None

    def go(self) -> None:
        """Do the work, in a thread."""
        try:
            self._result = self._context.run(self._work)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._error = error
        self._has_ended = True

    def go_alone(self) -> None:
        """Do the work in a thread of its own, and note how long it took."""
        processor_s, since_s = time.thread_time(), time.monotonic() - waited_s()
        self.go()
        self.held_s = time.thread_time() - processor_s
        self.unsaid_s = time.monotonic() - waited_s() - since_s

    def fail(self, error: BaseException) -> None:
        """End it with an error, unless it has ended."""
        if not self._has_ended:
            self._error, self._has_ended = error, True
        self.end()

    def end(self) -> None:
        """Tell the one who waits for it, in the loop."""
        if self._has_ended and self._done is not None:
            settle(self._done, self._result, self._error)
            self._done = self._result = self._error = None  # kept by the others until all have ended
