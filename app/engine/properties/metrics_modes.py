"""Metrics modes: which metrics writers keep of a column, and how long its bounds are."""

from __future__ import annotations

import re
from typing import Final

from app.engine.properties.lookup import find_property

METRICS_DEFAULT: Final = "write.metadata.metrics.default"
NONE, COUNTS, FULL = -2, -1, 0
"""Modes; a number above is the length to which text and binary bounds are cut."""
_TRUNCATE: Final = re.compile(r"truncate\((\d{1,9})\)", re.ASCII)


def metrics_mode(text: str | None, otherwise: int | None = None) -> int:
    """Return the mode that a property says.

    As in the reference, one that cannot be read counts as not set.

    Args:
        text: the property's value; None if it is not set.
        otherwise: the mode if it is not set; the format's default if None.
    """
    match (text or "").strip().lower():
        case "none":
            return NONE
        case "counts":
            return COUNTS
        case "full":
            return FULL
        case other:
            found = _TRUNCATE.fullmatch(other)
            if found is not None and int(found[1]):
                return int(found[1])
            return DEFAULT_MODE if otherwise is None else otherwise


def _default() -> int:
    known = find_property(METRICS_DEFAULT)
    assert known is not None
    return metrics_mode(known.default, FULL)


DEFAULT_MODE: Final = _default()
"""That of a column of which no property says anything: `truncate(16)`."""
