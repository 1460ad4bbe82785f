"""JSON of upkeep in the server itself: what is wanted."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.api.bodies.json_body import ExtensionBody
from app.catalog.upkeep.manifest_rewrites import ManifestRewriteRequest
from app.engine.manifest_rewrite.wishes import LEAST_TARGET_BYTES, RewriteWish
from app.engine.model.document import INT, LONG, Bool, Int
from app.engine.model.ids import SnapshotId, SpecId
from app.engine.model.refs import MAIN_BRANCH


class ManifestRewriteBody(ExtensionBody):
    dry_run: Bool = False
    spec_id: Annotated[SpecId, INT] | None = None
    cluster_by: Annotated[str, Field(min_length=1)] | None = None
    target_size_bytes: Annotated[Int, Field(ge=LEAST_TARGET_BYTES)] | None = None
    branch: Annotated[str, Field(min_length=1)] = MAIN_BRANCH
    all: Bool = False
    max_bytes: Annotated[int, LONG, Field(ge=0)] | None = None

    def request(self) -> ManifestRewriteRequest:
        """Return the request for the use case."""
        wish = RewriteWish(self.spec_id, self.cluster_by, self.target_size_bytes, self.all, self.max_bytes)
        return ManifestRewriteRequest(wish, self.branch)


class DanglingDeletesBody(ExtensionBody):
    dry_run: Bool = False
    branch: Annotated[str, Field(min_length=1)] = MAIN_BRANCH


class PartitionStatisticsBody(ExtensionBody):
    dry_run: Bool = False
    snapshot_id: Annotated[SnapshotId, LONG] | None = None
