"""The id that the next schema, spec, order or view version gets."""

from __future__ import annotations

from collections.abc import Iterable

from app.engine.model.document import MAX_INT
from app.errors import InvalidUpdate

MOST_OF_A_KIND = 10_000
"""Each new schema, spec, order or version is compared with all that are there; no table needs as many."""


def next_id(taken: Iterable[int], first: int, what: str) -> int:
    """Return one more than the highest id, `first` if there is none as high as that.

    Raises:
        InvalidUpdate: the highest id is the last one that there is, or there are too many.
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
