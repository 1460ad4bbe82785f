"""Lines: those who want the same thing wait, and the first one works for all of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import takewhile
from threading import Lock, get_ident
from typing import Generic, TypeVar

from app.waits import let_companions_come, wait_for

Item = TypeVar("Item")


class Lines(Generic[Item]):
    """One line for each key. While one works, those that come wait, and then go together.

    Who comes without company starts at once. What is worked on says itself what became of it. Threads and coroutines
    may stand in one line; a coroutine that waits holds no thread.
    """

    def __init__(self, most: int, longest_wait_s: float) -> None:
        """Prepare lines in which `most` items go together, and each waits only so long."""
        self._most = most
        self._longest_wait_s = longest_wait_s
        self._lock = Lock()
        self._waiting: dict[Hashable, list[Turn[Item]]] = {}

    def is_busy(self, key: Hashable) -> bool:
        """Return whether something is at work for a line now, so that what enters it will wait."""
        return key in self._waiting

    def enter(self, key: Hashable, item: Item) -> Turn[Item]:
        """Take a turn in a line; it leads if nothing is at work there. A turn that leads must work or leave."""
        return self._enter(Turn(key, item))

    def _enter(self, turn: Turn[Item]) -> Turn[Item]:
        with self._lock:
            line = self._waiting.get(turn.key)
            if line is None:
                self._waiting[turn.key] = []
                turn.leads = True
            else:
                turn.called = Future()
                line.append(turn)
        return turn

    def wait(self, turn: Turn[Item]) -> bool:
        """Wait in a thread until a turn leads or is worked on; False if its time is over."""
        return self._comes(turn, self._longest_wait_s)

    def _comes(self, turn: Turn[Item], longest_wait_s: float) -> bool:
        if not turn.leads:
            try:
                wait_for(turn.called, longest_wait_s)
            except TimeoutError:
                if self._has_left(turn):
                    return False
                wait_for(turn.called)  # just taken by another one, which is at work on it
        return True

    async def wait_here(self, turn: Turn[Item]) -> bool:
        """Like `wait`, for coroutines."""
        if turn.leads:
            return True
        called = asyncio.wrap_future(turn.called)
        # Unlike `wait_for`, this leaves the future alone when the time is over.
        await asyncio.wait([called], timeout=self._longest_wait_s)
        if not called.done():
            if self._has_left(turn):
                return False
            await asyncio.wait([called])
        return True

    def work(
        self,
        turn: Turn[Item],
        work: Callable[[list[Item]], None],
        begin: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Work, if the turn leads, on its item and those that wait behind it.

        Args:
            turn: what `enter` gave, and `wait` has returned True for.
            work: works on items of one key, in the order in which they came. An error that it raises reaches all
                whose items it was given.
            begin: entered before; those that come as long as that takes are worked on as well. If it raises, that
                reaches the first one only.
        """
        if self._takes_lead(turn):
            self._lead(turn, work, begin)
        if turn.error is not None:
            raise turn.error

    def join(self, key: Hashable, item: Item, work: Callable[[list[Item]], None]) -> bool:
        """Return once the item has been worked on; False if its turn did not come in time."""
        turn = self.enter(key, item)
        if not self.wait(turn):
            return False
        self.work(turn, work)
        return True

    def join_companions(self, item: Item, work: Callable[[list[Item]], None]) -> bool:
        """Like `join`, in a line for those that go side by side in this thread.

        Those of other threads have lines of their own: this one may be held up while one in it leads.
        """
        turn = self.enter(get_ident(), item)
        let_companions_come()
        if not self.wait(turn):
            return False
        self.work(turn, work)
        return True

    @contextmanager
    def hold(self, keys: Iterable[Hashable], longest_wait_s: float) -> Iterator[None]:
        """Have the lines of several keys stand still during the block.

        Those that come meanwhile wait. Others that are to hold a line wait apart, one for the other: between two of
        them come all that wait in the line itself. If the wait is too long, the block runs without the lines that are
        left: each that waits has a thread, and the one that leads a line may need it. All take the lines in one order,
        so that no two wait for each other.

        Args:
            keys: the lines; the caller must not lead any of them.
            longest_wait_s: for how long to wait for all of them together.
        """
        until, ordered = time.monotonic() + longest_wait_s, sorted(keys, key=repr)
        with ExitStack() as held:
            for key in (*map(line_of_holders, ordered), *ordered):
                turn = self._enter(Turn[Item](key))
                held.callback(self.leave, turn)
                if not self._comes(turn, max(0.0, until - time.monotonic())):
                    break
            yield

    def leave(self, turn: Turn[Item]) -> None:
        """Leave the line, unless the item is being worked on; the next one leads if this turn did."""
        if self._has_left(turn):
            return
        # No longer in the line: it leads, or is being worked on, or has been.
        if self._takes_lead(turn):
            self._call_next(turn.key)

    def _takes_lead(self, turn: Turn[Item]) -> bool:
        """Take the lead from a turn; False if it has none.

        Only one of two threads gets it, when one begins to work and the other one leaves.
        """
        with self._lock:
            leads, turn.leads = turn.leads, False
        return leads

    def _has_left(self, turn: Turn[Item]) -> bool:
        with self._lock:
            line = self._waiting.get(turn.key, [])
            if turn in line:
                line.remove(turn)
                return True
        return False

    def _lead(
        self,
        turn: Turn[Item],
        work: Callable[[list[Item]], None],
        begin: Callable[[], AbstractContextManager[object]],
    ) -> None:
        group = [turn]
        try:
            with begin():
                with self._lock:
                    line = self._waiting[turn.key]
                    others = list(takewhile(lambda each: each.has_item, line[: self._most - 1]))
                    del line[: len(others)]
                group += others
                work([each.item for each in group])
        except BaseException as error:  # noqa: BLE001 - raised again by `work`
            for each in group:
                each.error = error
        finally:
            self._call_next(turn.key)
            for each in group[1:]:
                each.called.set_result(None)

    def _call_next(self, key: Hashable) -> None:
        with self._lock:
            following = self._waiting[key]
            if not following:
                del self._waiting[key]
                return
            first = following.pop(0)
            first.leads = True
        first.called.set_result(None)


def line_of_holders(key: Hashable) -> Hashable:
    """Return the key of the line in which those wait that are to hold the line of a key."""
    return ("holders", key)


class Turn(Generic[Item]):
    """One item's turn in a line."""

    __slots__ = ("called", "error", "has_item", "item", "key", "leads")

    def __init__(self, key: Hashable, *item: Item) -> None:
        """Without an item it only holds the line, and is never worked on."""
        self.key = key
        self.has_item = bool(item)
        if item:
            (self.item,) = item
        self.called: Future[None]
        """Done as soon as it leads or has been worked on. Only a turn that did not lead at once has it."""
        self.leads = False
        """Whether it has to work for those behind it, and nothing has begun that."""
        self.error: BaseException | None = None
