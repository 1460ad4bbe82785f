"""Lines: threads that want the same thing wait, and the first one works for all of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Event, Lock
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Lines(Generic[Item]):
    """One line for each key. While a thread works, those that come wait, and then go together.

    A thread without company starts at once. What is worked on says itself what became of it.
    """

    def __init__(self, most: int, longest_wait_s: float) -> None:
        """Prepare lines in which `most` items go together, and each waits only so long."""
        self._most = most
        self._longest_wait_s = longest_wait_s
        self._lock = Lock()
        self._waiting: dict[Hashable, list[_Place[Item]]] = {}

    def is_busy(self, key: Hashable) -> bool:
        """Say whether a thread is at work for a line now, so that one that joins it will wait."""
        return key in self._waiting

    def join(self, key: Hashable, item: Item, work: Callable[[list[Item]], None]) -> bool:
        """Return once the item has been worked on.

        Returns False if its turn did not come in time, and never will.

        Args:
            key: the line.
            item: what this thread wants.
            work: works on items of one key, in the order in which they came. An error that it raises reaches all
                whose items it was given.
        """
        place = _Place(item)
        with self._lock:
            line = self._waiting.get(key)
            if line is None:
                self._waiting[key] = []
                place.leads = True
            else:
                line.append(place)
        if not place.leads and not self._waited(key, place):
            return False
        if place.leads:
            self._lead(key, place, work)
        if place.error is not None:
            raise place.error
        return True

    def _waited(self, key: Hashable, place: _Place[Item]) -> bool:
        if place.called.wait(self._longest_wait_s):
            return True
        with self._lock:
            if place in self._waiting[key]:
                self._waiting[key].remove(place)
                return False
        place.called.wait()  # just taken by another thread, which is at work on it
        return True

    def _lead(self, key: Hashable, place: _Place[Item], work: Callable[[list[Item]], None]) -> None:
        with self._lock:
            line = self._waiting[key]
            group, line[:] = [place, *line[: self._most - 1]], line[self._most - 1 :]
        try:
            work([each.item for each in group])
        except BaseException as error:  # noqa: BLE001 - raised again by `join`
            for each in group:
                each.error = error
        finally:
            with self._lock:
                following = self._waiting[key]
                if following:
                    following[0].leads = True
                    following.pop(0).called.set()
                else:
                    del self._waiting[key]
            for each in group[1:]:
                each.called.set()


class _Place(Generic[Item]):
    """One item's place in a line."""

    __slots__ = ("called", "error", "item", "leads")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.called = Event()
        self.leads = False
        self.error: BaseException | None = None
