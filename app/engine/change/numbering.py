"""The id that the next schema, spec, order or view version gets."""

from __future__ import annotations

from collections.abc import Iterable

from app.engine.model.document import MAX_INT
from app.errors import InvalidUpdate


def next_id(taken: Iterable[int], first: int, what: str) -> int:
    """Return one more than the highest id, `first` if there is none as high as that.

    Raises:
        InvalidUpdate: the highest id is the last one that there is.
    """
    highest = max(taken, default=first - 1)
    if highest >= MAX_INT:
        raise InvalidUpdate(f"Cannot number another {what}: {highest} is the last id there is")
    return max(highest + 1, first)
