"""Rebases: commits that lost a race, put on the branch as it is now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.catalog.commits.files.snapshot_files import SnapshotFiles
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base
from app.catalog.context.catalog import Catalog
from app.catalog.context.property_layers import layers_of
from app.catalog.manifests.table_manifests import TableManifests
from app.engine.change.requirements import Requirement
from app.engine.change.updates import Update
from app.engine.expressions.expressions import Expression
from app.engine.model.identifiers import Namespace
from app.engine.model.settings.rebase_settings import RebaseMode, allows_exactly_once, rebase_mode
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.properties.own_properties import NEAREST
from app.engine.rebase.late_commits import (
    LateCommit,
    exactly_once_key,
    filter_in_summary,
    late_commit_of,
    refusal_of,
)
from app.engine.rebase.new_lists import NewList, new_list
from app.engine.rebase.own_changes import OwnChanges, as_written, own_changes
from app.engine.rebase.proofs import refusal_of_changes
from app.engine.rebase.rebased_snapshots import Rebase, rebase_of
from app.engine.rebase.refusals import Reason, refusal
from app.errors import BadRequest, CorruptMetadata, NotFound
from app.standings import RebaseRefusal


@dataclass(frozen=True, slots=True)
class RebaseRequest:
    """What a request itself says about rebasing; None where it leaves that to the table."""

    mode: RebaseMode | None = None
    conflict_filter: Expression | None = None
    """Which rows it has read; None for all."""


NOTHING_ASKED = RebaseRequest()
"""A request that leaves everything to the table."""


@dataclass(frozen=True, slots=True)
class RebaseSettings:
    """What holds for one commit that lost a race."""

    mode: RebaseMode
    exactly_once: bool
    """Whether commits of writers may be rebased that write everything exactly once."""
    conflict_filter: Expression | None


@dataclass(slots=True)
class SettingsOfPlace:
    """Settings for one commit, from its request, table, namespace and warehouse, in this order.

    Namespace and warehouse are looked up once, and only if the commit lost a race and nothing before them decides.
    """

    _properties: Mapping[str, str] | None = field(default=None)

    def settings(
        self, catalog: Catalog, base: Base[TableMetadata], request: RebaseRequest, snapshot: Snapshot
    ) -> RebaseSettings:
        """Return the settings of a commit of a snapshot to a table.

        Raises:
            DatabaseUnavailable: the namespace cannot be looked up.
        """
        table, namespace = base.present(), base.identifier.namespace
        mode = request.mode or rebase_mode(table.properties)
        if mode is None:
            mode = rebase_mode(self._of_place(catalog, namespace)) or RebaseMode.OFF
        exactly_once = False
        if mode is not RebaseMode.OFF and exactly_once_key(snapshot) is not None:
            allowed = allows_exactly_once(table.properties)
            if allowed is None:
                allowed = allows_exactly_once(self._of_place(catalog, namespace))
            exactly_once = allowed is True
        return RebaseSettings(mode, exactly_once, request.conflict_filter)

    def _of_place(self, catalog: Catalog, namespace: Namespace) -> Mapping[str, str]:
        """Return the properties of namespace and warehouse; a namespace that is gone has none."""
        if self._properties is None:
            layers = layers_of(catalog, namespace, {})
            # What is nearer wins.
            self._properties = {
                name: value for place in reversed(NEAREST) for name, value in layers[place].items()
            }
        return self._properties


def read_ahead(catalog: Catalog, current: TableMetadata, snapshot: Snapshot) -> None:
    """Read the manifests that rebasing a snapshot will need into the server's cache.

    Raises:
        InvalidLocation, CorruptMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    source, added_by = TableManifests(catalog, current), snapshot.snapshot_id
    for manifest in [listed for listed in source.manifests(snapshot) if listed.added_snapshot_id == added_by]:
        source.entries(as_written(manifest))
        # If it comes first, it lands as it was sent, and the guard looks at it so.
        source.keep_listed(as_written(manifest), manifest)
    for snapshot_id in (snapshot.parent_snapshot_id, current.current_snapshot_id):
        listed = None if snapshot_id is None else current.snapshots_by_id.get(snapshot_id)
        if listed is not None:
            source.manifests(listed)


class Rebases:
    """Rebases commits in one attempt: manifests and manifest lists are written to its files."""

    def __init__(self, catalog: Catalog, files: StagedFiles) -> None:
        self._catalog = catalog
        self._files = files

    def rebase(
        self,
        base: Base[TableMetadata],
        requirements: Sequence[Requirement],
        updates: Sequence[Update],
        settings: RebaseSettings,
    ) -> Rebase | RebaseRefusal:
        """Return what a commit becomes on the branch as it is now, or why it is not rebased.

        Raises:
            Unavailable: the store does not answer, or refuses.
        """
        current = base.present()
        source = TableManifests(self._catalog, current, base.staged)
        late = late_commit_of(current, requirements, updates)
        if isinstance(late, RebaseRefusal):
            return late
        refused = refusal_of(current, late, settings.mode, exactly_once=settings.exactly_once)
        if refused is not None:
            return refused
        try:
            changes = own_changes(current, late, settings.mode, source)
            if isinstance(changes, RebaseRefusal):
                return changes
            for own in changes.own:
                source.keep_listed(as_written(own.listed), own.listed)
            conflict_filter = settings.conflict_filter
            if conflict_filter is None:
                conflict_filter = filter_in_summary(late.snapshot)
            refused = refusal_of_changes(current, late, changes, conflict_filter, source)
            if refused is not None:
                return refused
            at_head = () if late.head is None else source.manifests(late.head)
            listed = new_list(changes, late.snapshot.snapshot_id, at_head, source)
        except (NotFound, BadRequest, CorruptMetadata) as error:
            return refusal(Reason.UNREADABLE, f"{error}.")
        if isinstance(listed, RebaseRefusal):
            return listed
        try:
            return self._write(source, current, late, changes, listed)
        except (NotFound, CorruptMetadata) as error:
            return refusal(Reason.UNREADABLE, f"{error}.")
        except ValueError as error:
            # What others wrote lacks something that the format version asks for.
            return refusal(Reason.MANIFESTS, f"{error}.")

    def _write(
        self,
        source: TableManifests,
        current: TableMetadata,
        late: LateCommit,
        changes: OwnChanges,
        listed: NewList,
    ) -> Rebase:
        snapshot_id, writer = late.snapshot.snapshot_id, SnapshotFiles(self._catalog, self._files, current)
        written = [
            writer.write_manifest(item.spec_id, snapshot_id, item.entries, item.content)
            for item in listed.written
        ]
        manifests = [*listed.verbatim, *written, *listed.kept]
        parent_id = None if late.head is None else late.head.snapshot_id
        staged = writer.write_list(snapshot_id, parent_id, manifests)
        source.keep_list(staged.location, staged.lines)
        for own, numbered in zip(listed.verbatim, staged.lines.values, strict=False):
            source.keep_listed(as_written(own), numbered)
        return rebase_of(
            current,
            late,
            changes,
            listed,
            manifest_list=staged.location,
            sequence_number=staged.sequence_number,
            first_row_id=staged.first_row_id,
            added_rows=staged.added_rows,
        )
