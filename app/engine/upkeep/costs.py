"""What jobs cost, in GB-hours of memory, so that tables can be compared."""

from __future__ import annotations

from typing import Final

_BYTES_A_SECOND: Final = 2_000_000
"""What one core rewrites, with compression. OpenHouse counts with the same."""
_GB_OF_A_CORE: Final = 2.0
_START_OF_SPARK: Final = 0.05
"""A session that starts, plans and commits: about a minute of 3 GB."""
_IN_THE_CATALOG: Final = 0.001


def gb_hours(rewritten_bytes: int, *, on_spark: bool) -> float:
    """Return what it costs to rewrite so many bytes."""
    return (_START_OF_SPARK if on_spark else _IN_THE_CATALOG) + (
        rewritten_bytes / _BYTES_A_SECOND * _GB_OF_A_CORE / 3600
    )
