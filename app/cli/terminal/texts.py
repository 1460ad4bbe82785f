"""Texts for people: numbers, times, and names that must do nothing to a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from app.engine.model.data_types.moments import moment_text as instant_text

LONGEST_TEXT = 100_000
"""More than anybody reads; a message or name of a strange server may have any length."""
_DOES_SOMETHING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tabs and line ends, changes of direction, and halves of characters."""


def shortened(lines: Sequence[str], most: int) -> list[str]:
    """Return the first lines, and how many more there are."""
    more = len(lines) - most
    return [*lines[:most], f"… and {more} more"] if more > 0 else list(lines)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def property_lines(properties: Mapping[str, str] | None) -> list[str]:
    """Return one line for each property."""
    return [f"{key} = {value}" for key, value in sorted((properties or {}).items())]


def moment_text(epoch_ms: object) -> str:
    """Return a time for people to read."""
    if not isinstance(epoch_ms, int):
        return ""
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return str(epoch_ms)


def exact_moment_text(epoch_ms: object) -> str:
    """Return a time to the millisecond, as `--to-time`, `--at` and `lake@TIME` take it.

    To the second it would stand for a moment before, when something else was current.
    """
    if not isinstance(epoch_ms, int):
        return ""
    try:
        return instant_text(epoch_ms)
    except OverflowError:
        return str(epoch_ms)


def plain(text: str) -> str:
    """Return text that does nothing to a terminal, at most `LONGEST_TEXT` characters of it.

    Names and messages come from servers and files of others: control characters are written out.
    """
    shown = _DOES_SOMETHING.sub(lambda found: ascii(found[0])[1:-1], text[:LONGEST_TEXT])
    more = len(text) - LONGEST_TEXT
    return f"{shown}… and {more} more characters" if more > 0 else shown
