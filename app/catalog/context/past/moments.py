"""Moments of the past in names of warehouses, as `lake@2026-11-20T10:00:00Z`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from app.engine.model.data_types.moments import moment_text
from app.recoveries import InvalidMoment

SIGN = "@"
"""Between a warehouse's name and the moment; no name has it."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS = re.compile(r"[0-9]{1,15}", re.ASCII)
_SHAPE = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+ -]\d{2}:?\d{2})?)?", re.ASCII
)


def split_name(name: str) -> tuple[str, str | None]:
    """Return a warehouse's name or location, and the moment behind its `@`, if any."""
    before, sign, moment = name.rpartition(SIGN)
    looks_like_one = bool(re.match(r"\d{4}-|\d+$", moment, re.ASCII)) or (sign != "" and ":" not in before)
    return (before, moment) if sign and before and looks_like_one else (name, None)


def moment_ms(text: str, now_ms: int) -> int:
    """Return a moment in epoch milliseconds; finer parts of a second are cut off.

    Args:
        text: a date (its beginning, in UTC), a time in ISO 8601 (UTC if it names no zone), or epoch milliseconds.
        now_ms: the time now.

    Raises:
        InvalidMoment: it cannot be read, or is in the future.
    """
    found = _read(text)
    if found is None:
        raise InvalidMoment(
            f"Invalid time {text[:100]!r}: write a date or a time such as 2026-11-20T10:00:00Z, or epoch milliseconds"
        )
    if found > now_ms:
        raise InvalidMoment(f"Invalid time {text[:100]!r}: it is in the future; now is {moment_text(now_ms)}")
    return found


def _read(text: str) -> int | None:
    if _MILLISECONDS.fullmatch(text):
        return int(text)
    if not _SHAPE.fullmatch(text):
        return None
    # A plus that was not percent-encoded arrives as a space.
    spelled = re.sub(r" (\d{2}:?\d{2})$", r"+\1", text) if "T" in text else text
    try:
        at = datetime.fromisoformat(spelled)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    try:
        # Nothing was there before 1970, and the first hours of the year 1 cannot be shown in UTC.
        return max(0, (at - _EPOCH) // timedelta(milliseconds=1))
    except OverflowError:
        return None
