"""Landing: how use cases get their intentions through the door, alone or with others."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import groupby
from typing import Any, Generic

from app.catalog.commits.door import land_all
from app.catalog.commits.intentions import D, Intention, Landed
from app.catalog.commits.wishes import Wish
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import M
from app.errors import Unavailable


class Landing(Generic[M, D]):
    """One intention on its way through the door.

    Intentions for one name wait for each other inside this process. Those that came together land together where
    each allows that: one metadata file, one move of the pointer, and each has its own result.
    """

    def __init__(self, catalog: Catalog, intention: Intention[M, D]) -> None:
        """Stand in the line of the intention's name; `finish` or `leave` must follow."""
        self._wish = Wish(catalog, [intention])
        self._lines = catalog.server.commit_lines
        key = _line_of(catalog, intention)
        if self._lines.is_busy(key):
            self._wish.read_ahead()
        self._turn = self._lines.enter(key, self._wish)
        catalog.server.step("in_line")

    @property
    def works(self) -> bool:
        """Whether `finish` carries out the intention now, and does not only return what came of it."""
        return self._turn.leads

    @property
    def waits_for_processes(self) -> bool:
        """Whether `finish` may wait for the turns of other processes first."""
        return self._wish.catalog.server.turns.is_asked(self._wish.names)

    def wait(self) -> None:
        """Wait in a thread until `finish` may be called.

        Raises:
            Unavailable: its turn did not come in time; nothing was changed, and it has left.
        """
        if not self._lines.wait(self._turn):
            raise self._late()

    async def wait_here(self) -> None:
        """Like `wait`, for coroutines."""
        if not await self._lines.wait_here(self._turn):
            raise self._late()

    def finish(self) -> Landed[M, D]:
        """Return the result, carrying the intention out if need be; raises like `land_one`."""
        server = self._wish.catalog.server
        self._lines.work(self._turn, _work, lambda: server.turns.hold(self._wish.names))
        return self._wish.results()[0]

    def leave(self) -> None:
        """Give the intention up, unless it is being carried out."""
        self._lines.leave(self._turn)

    def _late(self) -> Unavailable:
        identifier = self._wish.intentions[0].identifier
        return Unavailable(f"Too many commits to {identifier} wait already; nothing was changed")


def land_one(catalog: Catalog, intention: Intention[M, D]) -> Landed[M, D]:
    """Carry out one intention, and return its result.

    Raises:
        NotFound, AlreadyExists, CommitFailed, BadRequest: the intention is refused, or the guard rejects it.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer; the new files stay.
        Unavailable: the database or the store does not answer, or its turn did not come; nothing was changed.
    """
    landing = Landing(catalog, intention)
    landing.wait()
    return landing.finish()


def land(catalog: Catalog, intentions: Sequence[Intention[M, D]]) -> list[Landed[M, D]]:
    """Carry out intentions in one transaction, and return each one's result, name by name.

    Raises like `land_one`. The first attempt waits for no other commit: it may be one to a name that hangs.
    """
    wish = Wish(catalog, intentions)
    land_all([wish], {_line_of(catalog, intention) for intention in intentions})
    return wish.results()


def _line_of(catalog: Catalog, intention: Intention[M, D]) -> Hashable:
    """Return in which line the commits to a name wait for each other."""
    return catalog.warehouse.id, intention.kind.of_pointer, intention.identifier


def _work(wishes: list[Wish[Any, Any]]) -> None:
    """Land wishes for one name in their order, as many together as may."""
    for alone, group in groupby(wishes, key=_goes_alone):
        if alone:
            for wish in group:
                land_all([wish])
        else:
            land_all(list(group))


def _goes_alone(wish: Wish[Any, Any]) -> bool:
    return not wish.intentions[0].lands_with_others()
