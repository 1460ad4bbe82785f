"""Rewriting manifests: the preview, and the commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from app.catalog.commits.files.snapshot_files import SnapshotFiles
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base, Intention, Planned
from app.catalog.commits.landing import land_one
from app.catalog.commits.plans import load_base
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.recorded_places import RecordedPlace
from app.catalog.manifests.table_manifests import TableManifests, readable_or_refused
from app.catalog.upkeep.rewritten_manifests import (
    RewrittenManifests,
    listed_after,
    plan_manifests,
    store_manifests,
)
from app.engine.branches.heads import check_branch, head_of, new_head
from app.engine.change.apply import apply_updates
from app.engine.change.summaries import changed_partition_count, totals_after
from app.engine.manifest_rewrite.plan import RewriteGroup
from app.engine.manifest_rewrite.wishes import RewriteWish
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.table_metadata import TableMetadata
from app.errors import CommitStateUnknown, IcetowerError, ManifestsReplaced

_ATTEMPTS: Final = 5
"""How often manifests are written anew because others have replaced the old ones."""
_MOST_FILES_IN_LINE: Final = 20_000
"""So many files may be written again while other commits wait: about a second."""


@dataclass(frozen=True, slots=True)
class ManifestRewriteRequest:
    """A rewrite of a branch's manifests, as a client asks for it."""

    wish: RewriteWish = field(default_factory=RewriteWish)
    branch: str = MAIN_BRANCH


@dataclass(frozen=True, slots=True)
class ManifestRewrite:
    """What was rewritten, or would be."""

    branch: str
    snapshot_id: SnapshotId | None
    """The new snapshot; None if there is none."""
    created: int
    """In a preview, about how many would be."""
    replaced: int
    kept: int
    entries: int
    groups: Sequence[RewriteGroup] = ()
    uses_prepared: bool = True
    """Whether the new manifests are those that were stored before its turn."""

    def facts(self, location: Location | None, *, dry_run: bool) -> dict[str, Any]:
        """Return them by the names of the answer, with where the table's metadata is then."""
        facts: dict[str, Any] = {"dry-run": dry_run, "branch": self.branch}
        if self.snapshot_id is not None:
            facts["snapshot-id"] = self.snapshot_id
        return facts | {
            "metadata-location": location,
            "manifests-created": self.created,
            "manifests-replaced": self.replaced,
            "manifests-kept": self.kept,
            "entries-processed": self.entries,
            "groups": [
                {
                    "content": group.content.name.lower(),
                    "spec-id": group.spec_id,
                    "manifests": len(group.replaced),
                    "manifest-bytes": sum(stock.manifest.manifest_length for stock in group.replaced),
                    "files": group.tally.files,
                    "new-manifests": group.new_count,
                }
                for group in self.groups
            ],
        }


@dataclass(frozen=True)
class LandManifestRewrite(Intention[TableMetadata, ManifestRewrite]):
    """A rewrite whose new manifests are stored already, so that its turn is short.

    Whatever others have added to the branch since then stays. Only if they have replaced a manifest that was to be
    rewritten, it has to be planned anew: here if that is quick, else by the caller.
    """

    identifier: TableIdentifier
    request: ManifestRewriteRequest
    rewritten: RewrittenManifests
    plans_anew: bool = False
    """Whether it may be planned anew in its turn."""
    kind = TABLES

    def require(self, base: Base[TableMetadata]) -> bool:
        """Check that the table and the branch are there."""
        check_branch(base.present(), self.request.branch, "rewrite manifests of")
        return True

    def apply(
        self, catalog: Catalog, base: Base[TableMetadata], files: StagedFiles
    ) -> Planned[TableMetadata, ManifestRewrite]:
        """Write a manifest list with the new manifests in place of the old ones.

        Raises:
            ManifestsReplaced: an old one has gone, and to plan anew takes too long here.
            InvalidRequest, NoSuchRef, NotSupported: the wish does not fit the table any more.
            CorruptMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
        """
        metadata, branch = base.present(), self.request.branch
        head, rewritten = head_of(metadata, branch), self.rewritten
        new = SnapshotFiles(catalog, files, metadata)
        snapshot_id = new.new_id()
        listed = tuple(TableManifests(catalog, metadata).manifests(head)) if head is not None else ()
        if not rewritten.plan.groups:
            return Planned(None, ManifestRewrite(branch, None, 0, 0, len(listed), 0))
        after = listed_after(listed, rewritten, snapshot_id) if self._fits(metadata) else None
        if after is None:
            plan = plan_manifests(catalog, self.identifier, metadata, branch, self.request.wish)
            if not plan.groups:
                return Planned(None, ManifestRewrite(branch, None, 0, 0, len(listed), 0, uses_prepared=False))
            if not self.plans_anew or plan.tally.files > _MOST_FILES_IN_LINE:
                raise ManifestsReplaced(
                    f"Cannot rewrite manifests of {self.identifier}: other commits replaced some of them each time "
                    "before the new ones were ready. Nothing was changed; try again when fewer commits delete or "
                    "overwrite"
                )
            rewritten = store_manifests(catalog, plan, files)
            after = listed_after(listed, rewritten, snapshot_id)
        assert after is not None
        plan = rewritten.plan
        done = ManifestRewrite(
            branch,
            snapshot_id,
            len(rewritten.added),
            len(plan.replaced),
            len(after) - len(rewritten.added),
            plan.tally.files,
            plan.groups,
            uses_prepared=rewritten is self.rewritten,
        )
        summary = {
            "operation": "replace",
            "manifests-created": str(done.created),
            "manifests-kept": str(done.kept),
            "manifests-replaced": str(done.replaced),
            "entries-processed": str(done.entries),
            **changed_partition_count(()),
            **totals_after(head, (), ()),
        }
        updates = new_head(metadata, branch, new.write_snapshot(head, snapshot_id, after, summary))
        draft = apply_updates(metadata, updates, catalog.now_ms())
        return Planned(draft.finish(base.stored_at), done, updates=updates)

    def _fits(self, metadata: TableMetadata) -> bool:
        """Return whether the new manifests are such as this table has."""
        planned = self.rewritten.plan.metadata
        return (planned.uuid, planned.format_version) == (metadata.uuid, metadata.format_version)

    def remembered_as(self, at: RecordedPlace, *, changed: bool, detail: ManifestRewrite | None) -> str:  # noqa: ARG002 - the answer says it
        """Return the answer itself: the snapshot may be gone when it is asked for again."""
        assert detail is not None
        return orjson.dumps(detail.facts(at.location, dry_run=False)).decode()


def preview_manifest_rewrite(
    catalog: Catalog, identifier: TableIdentifier, request: ManifestRewriteRequest
) -> tuple[ManifestRewrite, Location]:
    """Return what would be rewritten now, and where the table is; nothing is changed.

    Raises:
        NoSuchTable, NoSuchRef: there is no such table or branch.
        InvalidRequest: the branch is a tag, or the table has no such spec or partition field.
        NotSupported: the table is encrypted.
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: the metadata or a manifest cannot be read.
    """
    catalog.permit("rewrite_manifests", identifier)
    base = load_base(catalog, TABLES, identifier)
    plan = plan_manifests(catalog, identifier, base.present(), request.branch, request.wish)
    assert base.seen is not None
    would = ManifestRewrite(
        request.branch,
        None,
        sum(group.new_count for group in plan.groups),
        len(plan.replaced),
        len(plan.listed) - len(plan.replaced),
        plan.tally.files,
        plan.groups,
    )
    return would, base.seen.metadata_location


def rewrite_manifests(
    catalog: Catalog, identifier: TableIdentifier, request: ManifestRewriteRequest
) -> tuple[ManifestRewrite, Location]:
    """Rewrite manifests in one commit; return what was done, and where the table is.

    Raises:
        NoSuchTable, NoSuchRef: there is no such table or branch.
        InvalidRequest: the branch is a tag, or the table has no such spec or partition field.
        NotSupported: the table is encrypted.
        ManifestsReplaced: others replaced manifests faster than they could be rewritten.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer; the new files stay.
        CommitRefused: a manifest list or a manifest is damaged or gone.
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: the metadata cannot be read.
    """
    catalog.permit("rewrite_manifests", identifier)
    for left in reversed(range(_ATTEMPTS)):
        files = StagedFiles(catalog, remembers_contents=False)
        try:
            return _rewrite(catalog, identifier, request, files, is_last=not left)
        except CommitStateUnknown:
            raise  # It may have landed, so every file stays.
        except IcetowerError as error:
            files.discard()
            if not isinstance(error, ManifestsReplaced) or not left:
                raise
    raise AssertionError


def _rewrite(
    catalog: Catalog,
    identifier: TableIdentifier,
    request: ManifestRewriteRequest,
    files: StagedFiles,
    *,
    is_last: bool,
) -> tuple[ManifestRewrite, Location]:
    base = load_base(catalog, TABLES, identifier)
    with readable_or_refused(identifier):
        plan = plan_manifests(catalog, identifier, base.present(), request.branch, request.wish)
        rewritten = store_manifests(catalog, plan, files)
    catalog.server.step("manifests_stored")
    landed = land_one(catalog, LandManifestRewrite(identifier, request, rewritten, plans_anew=is_last))
    assert landed.detail is not None
    assert landed.loaded.location is not None
    if not landed.detail.uses_prepared:
        files.discard()
    return landed.detail, landed.loaded.location
