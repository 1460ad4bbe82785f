"""Rushes: the times in which writers of a table stand in its queue, and the sums of each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

FEWEST_WRITERS: Final = 2
"""A writer alone waits for no other: with the second one a queue forms."""
QUIET_MS: Final = 10_000
"""A queue that has been empty for so long is over; else each collision would be a queue of its own."""


@dataclass(slots=True)
class SlotCounts:
    """What has become of slots and their writers; `Counts` explains the names."""

    slots_given: int = 0
    slots_used: int = 0
    slots_lost: int = 0
    slots_passed: int = 0
    landed_after_losses: int = 0
    gave_up: int = 0

    def add(self, more: SlotCounts) -> None:
        """Add other counts to these."""
        for name, number in asdict(more).items():
            setattr(self, name, getattr(self, name) + number)


@dataclass(slots=True)
class Rush:
    """From when a queue forms until it has been empty for a while; on all servers."""

    since_ms: int
    empty_since_ms: int | None = None
    """Since when no writer is in the queue; None while there are some."""
    most_writers: int = 0
    longest_wait_ms: int = 0
    """Of a writer that has landed, from its first lost race on."""
    counts: SlotCounts = field(default_factory=SlotCounts)

    def note(self, writers: int, counts: SlotCounts, now_ms: int) -> None:
        """Note how many writers there are now, and what has happened since the last time."""
        self.counts.add(counts)
        self.most_writers = max(self.most_writers, writers)
        if writers:
            self.empty_since_ms = None
        elif self.empty_since_ms is None:
            self.empty_since_ms = now_ms

    def is_over_at(self, now_ms: int) -> bool:
        """Return whether the queue has been empty for a while."""
        return self.empty_since_ms is not None and now_ms - self.empty_since_ms >= QUIET_MS

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Rush:
        """Return what `dataclasses.asdict` has made of it."""
        return cls(**{**value, "counts": SlotCounts(**value["counts"])})
