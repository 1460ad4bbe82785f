"""Terms of a move: what becomes of the entry at the source, and what is accepted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from app.moving.choices import Choice, PathMap

ALLOWABLE: Final = frozenset(
    {
        "encrypted",
        "fenced",
        "files-missing",
        "location-overlaps",
        "location-shared",
        "outside-warehouse",
        "same-uuid",
    }
)
"""Codes of findings that refuse an entry unless they are allowed; all others refuse it in any case, or never."""


class Mode(StrEnum):
    """What becomes of an entry at the source once it is registered at the target."""

    ADOPT = "adopt"
    """It is dropped there; its files stay."""
    FENCE = "fence"
    """It stays, with a property that says where the table is now."""
    LOOK_ON = "look-on"
    """It stays the table's only home: at the target it is read-only."""
    KEEP = "keep"
    """It stays, and nothing marks it: both catalogs can commit, and each would undo what the other does."""


def _ignore(_step: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Terms:
    """How entries are moved."""

    mode: Mode
    choice: Choice = field(default_factory=Choice)
    paths: PathMap = field(default_factory=PathMap)
    allowed: frozenset[str] = frozenset()
    """Codes of findings that are no reason to refuse an entry."""
    dry_run: bool = False
    moved_to: str = ""
    """What a fence says: the target."""
    step: Callable[[str], None] = _ignore
    """Called with the name of each step as it is reached; crash tests stop the process there."""
