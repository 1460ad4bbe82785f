"""Branches and tags: names for snapshots, with their retention."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from app.engine.model.document import LONG, Document, Int, Long
from app.engine.model.ids import SnapshotId

MAIN_BRANCH = "main"


class SnapshotRef(Document):
    """A branch or a tag. Ages are durations in milliseconds, at least 1.

    Spec: #snapshot-references
    """

    snapshot_id: Annotated[SnapshotId, LONG]
    type: Literal["branch", "tag"]
    min_snapshots_to_keep: Annotated[Int, Field(gt=0)] | None = None
    max_snapshot_age_ms: Annotated[Long, Field(gt=0)] | None = None
    max_ref_age_ms: Annotated[Long, Field(gt=0)] | None = None

    @property
    def is_branch(self) -> bool:
        return self.type == "branch"
