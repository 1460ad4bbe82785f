"""Planning wishes: alone, or as one change with neighbours that want the same."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import groupby

from app.catalog.commits.intentions import D
from app.catalog.commits.plans import Names
from app.catalog.commits.wishes import Wish
from app.catalog.context.kinds import M
from app.errors import IcetowerError, Unavailable
from app.waits import has_companions


def plan_all(wishes: Sequence[Wish[M, D]], names: Names[M, D]) -> list[Wish[M, D]]:
    """Plan wishes in their order on what is planned; return those that are not refused."""
    if not has_companions():
        for wish in wishes[1:]:
            wish.read_elsewhere()  # for which no thread may have been free when it came
    standing: list[Wish[M, D]] = []
    for common, group in groupby(wishes, key=_common):
        neighbours = list(group)
        if common is None or len(neighbours) == 1:
            standing += [wish for wish in neighbours if wish.plan(names)]
        else:
            standing += _plan_joined(neighbours, names)
    return standing


def _common(wish: Wish[M, D]) -> Hashable | None:
    return wish.intentions[0].joins() if len(wish.intentions) == 1 else None


def _plan_joined(wishes: Sequence[Wish[M, D]], names: Names[M, D]) -> list[Wish[M, D]]:
    """Plan neighbours as one change; each that is refused is left out of it."""
    first = wishes[0]
    try:
        base = names.base_for(first.catalog, first.intentions[0])
        base.check_writable()
        joined = first.intentions[0].begin_joined(first.catalog, base)
        kept = [wish for wish in wishes if wish.join(joined, base)]
        if kept:
            leader, *others = kept
            leader.finish_joined(others, joined, base, names)
        return kept
    except Unavailable as error:
        # Others of them would wait for the same store as long again.
        for wish in wishes:
            wish.fail(error)
        return []
    except IcetowerError:
        # What is wrong with one of them may be seen only now: alone, each is answered for itself.
        return [wish for wish in wishes if wish.plan(names)]
