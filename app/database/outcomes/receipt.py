"""A receipt: what became of one request that changes something."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

ID_LENGTH = 32
"""Of a commit id: 12 hexadecimal digits of its time in epoch milliseconds, then random ones."""
_TIME_LENGTH = 12


class Outcome(StrEnum):
    """What became of a request."""

    LANDED = "landed"
    UNCHANGED = "unchanged"
    """A success that had nothing to change."""
    FAILED = "failed"
    """Nothing was changed, and nothing will be."""
    IN_PROGRESS = "in-progress"
    UNKNOWN = "unknown"
    """The reply to COMMIT was lost, or the server failed; the database has to be asked."""

    @property
    def is_final(self) -> bool:
        """Whether it can no longer become another one."""
        return self in (Outcome.LANDED, Outcome.UNCHANGED, Outcome.FAILED)


@dataclass(frozen=True, slots=True)
class ReceiptHead:
    """What is known of a request before it is carried out."""

    commit_id: str
    operation: str
    """The name of the operation, as `commit_table`."""
    warehouse: str
    """The warehouse's name; empty for what is about the server as a whole."""
    principal: str
    request_id: str | None
    """Its `X-Request-Id`, if the client sent one."""
    key: str | None
    """Its Idempotency-Key."""
    began_ms: int
    job: str | None = None
    """The job of upkeep that sent it, if one did."""


@dataclass(frozen=True, slots=True)
class LandedChange:
    """What a request changed of one table, view, namespace or warehouse."""

    kind: str
    event: str
    """What pointer history calls it, such as "committed"."""
    levels: tuple[str, ...] = ()
    """The levels of the namespace; none for a warehouse."""
    name: str | None = None
    """The name of the table or view, or of the warehouse."""
    location_before: str | None = None
    location_after: str | None = None
    snapshot_ids: tuple[int, ...] = ()
    """The snapshots that it added, oldest first."""
    current_snapshot_id: int | None = None
    rebased: bool = False
    """Whether the server has put its snapshots on top of others than the client had seen."""


@dataclass(frozen=True, slots=True)
class CommitReceipt:
    """What became of a request."""

    head: ReceiptHead
    outcome: Outcome
    noted_ms: int
    """When this was noted."""
    changes: tuple[LandedChange, ...] = ()
    landed_together: int = 1
    """How many requests landed by the same move of a pointer, this one among them."""
    error: Mapping[str, Any] = field(default_factory=dict)
    """What a request that did not land was answered with: the protocol's error object."""
    age_ms: int = field(default=0, compare=False)
    """How long ago it was noted, by the database's clock; only known of what was read there."""

    def facts(self) -> str:
        """Return what its row keeps as JSON."""
        if self.error:
            return json.dumps({"error": self.error})
        stored: dict[str, Any] = {"changes": [_stored(change) for change in self.changes]}
        if self.landed_together > 1:
            stored["together"] = self.landed_together
        return json.dumps(stored)


def landed(
    head: ReceiptHead, at_ms: int, changes: Sequence[LandedChange], together: int = 1
) -> CommitReceipt:
    """Return the receipt of a request that lands."""
    return CommitReceipt(head, Outcome.LANDED, at_ms, tuple(changes), together)


def facts_from(stored: str) -> dict[str, Any]:
    """Return the fields of a receipt that its row keeps as JSON."""
    facts = json.loads(stored)
    return {
        "changes": tuple(_change(change) for change in facts.get("changes", ())),
        "landed_together": facts.get("together", 1),
        "error": facts.get("error", {}),
    }


_FIELDS = tuple(item.name for item in fields(LandedChange))


def _stored(change: LandedChange) -> dict[str, Any]:
    # Every commit writes this: `asdict` would take longer than the insertion of the row.
    return {name: value for name in _FIELDS if (value := getattr(change, name))}


def _change(stored: dict[str, Any]) -> LandedChange:
    for name in ("levels", "snapshot_ids"):
        stored[name] = tuple(stored.get(name, ()))
    return LandedChange(**stored)


def id_of_time(epoch_ms: int) -> str:
    """Return what the commit ids of a moment begin with; later ones are greater."""
    return f"{max(epoch_ms, 0):0{_TIME_LENGTH}x}"


def time_of_id(commit_id: str) -> int:
    """Return when a commit id was made, in epoch milliseconds."""
    return int(commit_id[:_TIME_LENGTH], 16)
