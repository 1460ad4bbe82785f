"""Ids of schemas, specs, sort orders and view versions: the next one, and the last added."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from app.engine.model.document import MAX_INT
from app.errors import InvalidUpdate

Id = TypeVar("Id", bound=int)

LAST_ADDED = -1
"""In place of an id: the schema, spec, order or view version that this request added last."""
MOST_OF_A_KIND = 10_000
"""Each new schema, spec, order or version is compared with all others, and no table needs more."""


def named_id(named: Id, last_added: Id | None, otherwise: str) -> Id:
    """Return the id that an update names, which may be `LAST_ADDED`.

    Raises:
        InvalidUpdate: nothing was added; `otherwise` is the message.
    """
    if named != LAST_ADDED:
        return named
    if last_added is None:
        raise InvalidUpdate(otherwise)
    return last_added


def next_id(taken: Iterable[int], first: int, what: str) -> int:
    """Return one more than the highest id, and at least `first`.

    Raises:
        InvalidUpdate: the highest id is the last one possible, or there are too many.
    """
    ids = tuple(taken)
    if len(ids) >= MOST_OF_A_KIND:
        raise InvalidUpdate(
            f"Cannot add another {what}: there are {len(ids)}, which is the most there can be"
        )
    highest = max(ids, default=first - 1)
    if highest >= MAX_INT:
        raise InvalidUpdate(f"Cannot number another {what}: {highest} is the last id there is")
    return max(highest + 1, first)
