"""Landing: how use cases get their intentions through the door, alone or with others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from app.catalog.commits.door import land_all
from app.catalog.commits.intentions import D, Intention, Landed
from app.catalog.commits.wishes import Wish
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import M
from app.errors import Unavailable


def land_one(catalog: Catalog, intention: Intention[M, D]) -> Landed[M, D]:
    """Carry out one intention, and return its result.

    Intentions for one name wait for each other inside this process. Those that came together land together where
    each allows that: one metadata file, one move of the pointer, and each has its own result.

    Raises:
        NotFound, AlreadyExists, CommitFailed, BadRequest: the intention is refused, or the guard rejects it.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer; the new files stay.
        Unavailable: the database or the store does not answer, or its turn did not come; nothing was changed.
    """
    wish = Wish(catalog, [intention])
    key = (catalog.warehouse.id, intention.kind.of_pointer, intention.identifier)
    if catalog.server.commit_lines.is_busy(key):
        intention.prepare(catalog)
    if not catalog.server.commit_lines.join(key, wish, _work):
        raise Unavailable(f"Too many commits to {intention.identifier} wait already; nothing was changed")
    return wish.results()[0]


def land(catalog: Catalog, intentions: Sequence[Intention[M, D]]) -> list[Landed[M, D]]:
    """Carry out intentions in one transaction, and return each one's result, name by name.

    Raises like `land_one`, but waits for no other commit.
    """
    wish = Wish(catalog, intentions)
    land_all([wish])
    return wish.results()


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
