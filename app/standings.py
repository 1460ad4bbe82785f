"""Standings: where a table stood when a commit to it failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LandedSnapshot:
    """A snapshot that came before a commit could."""

    snapshot_id: int
    operation: str | None
    sequence_number: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a table when a commit to it failed."""

    namespace: tuple[str, ...]
    name: str
    metadata_location: str | None = None
    """Where its metadata was; None if there was no table."""
    landed: Sequence[LandedSnapshot] | None = None
    """The newest snapshots that landed since the commit was prepared, newest first; None if unknown."""
    landed_count: int = 0
    """How many they are in all."""


@dataclass(frozen=True, slots=True)
class RebaseRefusal:
    """Why the server did not rebase a commit that lost a race."""

    reason: str
    """One of a few words."""
    message: str
    """One short sentence."""
