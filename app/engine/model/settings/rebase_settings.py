"""Which commits that lost a race are rebased by the server: properties and their values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

REBASE = "icetower.rebase"
REBASE_EXACTLY_ONCE = "icetower.rebase.exactly-once"
_ALLOW = "allow"


class RebaseMode(StrEnum):
    """Which commits the server rebases when another commit came first."""

    OFF = "off"
    APPENDS = "appends"
    """Appends that only add manifests."""
    CONFLICT_FREE = "conflict-free"
    """Also other commits, if they surely conflict with nothing that came first."""


def mode_named(text: str) -> RebaseMode | None:
    """Return the mode of this name; None if there is none."""
    name = text.strip().lower()
    return RebaseMode(name) if name in set(RebaseMode) else None


def rebase_mode(properties: Mapping[str, str]) -> RebaseMode | None:
    """Return the mode that properties choose: what is no mode is off; None if they do not say."""
    if REBASE not in properties:
        return None
    return mode_named(properties[REBASE]) or RebaseMode.OFF


def allows_exactly_once(properties: Mapping[str, str]) -> bool | None:
    """Return whether exactly-once writers may be rebased; None if the properties do not say."""
    if REBASE_EXACTLY_ONCE not in properties:
        return None
    return properties[REBASE_EXACTLY_ONCE].strip().lower() == _ALLOW


def modes_in_words() -> str:
    """Return the names of the modes, for messages."""
    *first, last = RebaseMode
    return f"{', '.join(first)} or {last}"
