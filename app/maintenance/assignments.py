"""What somebody who carries out a job is given, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from app.engine.model.identifiers import TableIdentifier
from app.engine.model.jobs import Job, JobState


@dataclass(frozen=True, slots=True)
class Assignment:
    """One job to be done to one table, which is held for it."""

    table: TableIdentifier
    job: Job
    job_id: str
    """Each request that carries it out sends this as `X-Icetower-Job`."""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ending:
    """What has become of a job."""

    state: JobState
    message: str = ""
    """One sentence for people; empty if the figures say it all."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """Numbers by name, such as `rewritten-bytes`."""
    is_still_at_work: bool = False
    """Whether it may go on elsewhere: the table stays held until the lease runs out."""

    def with_remark(self, remark: str) -> Ending:
        """Return the same with one more sentence."""
        said = self.message.rstrip()
        end = "" if not said or said.endswith((".", "…")) else "."
        return replace(self, message=f"{said}{end} {remark}".strip())

    def outcome(self) -> dict[str, Any]:
        """Return what is kept with the job."""
        return {**self.figures, **({"message": self.message} if self.message else {})}


class Worker(Protocol):
    """Carries out jobs of some kinds."""

    def carry_out(self, assignment: Assignment) -> Ending:
        """Do the job, and return what became of it.

        It raises nothing that can be expected to happen: that a job fails is an ending, too.
        """
        ...
