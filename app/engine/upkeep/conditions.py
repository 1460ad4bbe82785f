"""What a plan of upkeep looks at: the table's health, and what has been done to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.engine.health.facts import HealthFacts
from app.engine.model.jobs import Job
from app.engine.upkeep.cold_partitions import WrittenPartition


@dataclass(frozen=True, slots=True)
class JobHistory:
    """What has come of one job on one table so far."""

    last_success_ms: int | None = None
    last_failure_ms: int | None = None
    failures: int = 0
    """In a row, up to now."""
    refused_options: Mapping[str, Any] | None = None
    """The options that were refused when it was tried last."""
    refused_ms: int = 0
    """When that was."""
    did_a_part: bool = False
    """Whether the last success left some of it to another day, for its budget."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A table as a plan sees it."""

    facts: HealthFacts
    now_ms: int
    expirable_snapshots: int
    """Snapshots that the table's own properties let go."""
    expiry_refused: str | None = None
    """Why it is not known which snapshots can expire; None if it is known."""
    snapshots_since: Mapping[Job, int] = field(default_factory=dict)
    """How many snapshots came since a job succeeded last; absent if it never did."""
    rows_changed_ms: int | None = None
    """When a snapshot last took rows away from main; None if none did."""
    latest_partitions: tuple[WrittenPartition, ...] = ()
    """The partitions that were written last; empty if it is not known when."""
    allows_deletes: bool = True
    """`gc.enabled`."""
    is_encrypted: bool = False
    has_collections: bool = False
    """Whether a column is a list or a map."""
    history: Mapping[Job, JobHistory] = field(default_factory=dict)
    rewritten_bytes: int = 0
    """What jobs have rewritten in the last 24 hours."""
    running: Job | None = None
    """The job that holds the table now."""
    damage: str | None = None
    """What the last job has found missing, or a manifest that cannot be read; nothing more is done then."""

    def history_of(self, job: Job) -> JobHistory:
        """Return what has come of a job so far."""
        return self.history.get(job, JobHistory())
