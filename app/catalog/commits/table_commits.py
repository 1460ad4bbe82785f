"""Commits to tables, as clients send them: alone and in transactions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base, Intention, Planned, check_slots
from app.catalog.commits.landed_before import was_never_on
from app.catalog.commits.landing import Landing, land
from app.catalog.commits.rebases import (
    NOTHING_ASKED,
    RebaseRequest,
    Rebases,
    SettingsOfPlace,
    read_ahead,
)
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, LoadedTable
from app.catalog.context.places.locations import check_place_is_free
from app.engine.change.apply import apply_to_new, apply_updates
from app.engine.change.requirements import (
    AssertCreate,
    AssertRefSnapshotId,
    AssertTableUuid,
    Report,
    Requirement,
    check_requirements,
    is_create,
    raise_refusal,
)
from app.engine.change.updates import (
    AddSnapshot,
    AssignUuid,
    RemoveSnapshotRef,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from app.engine.model.ancestry import is_ancestor
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import SnapshotId, TableUuid, is_same_uuid
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.settings.rebase_settings import RebaseMode
from app.engine.model.table_metadata import TableMetadata
from app.engine.rebase.late_commits import is_behind, snapshot_to_rebase
from app.engine.rebase.rebased_snapshots import Rebase, lists_of_writer
from app.errors import (
    CommitFailed,
    CommitStateUnknown,
    IcetowerError,
    PointerMoved,
    RequirementFailed,
    StaleUpdate,
)
from app.fileio.wanted import check_wanted
from app.standings import RebaseRefusal

log = logging.getLogger(__name__)

_BESIDE_SNAPSHOTS: Final = tuple(
    TableMetadata.model_fields.keys()
    - {
        "last_updated_ms",
        "last_sequence_number",
        "current_snapshot_id",
        "refs",
        "snapshot_log",
        "metadata_log",
    }
)

_NOTHING: Final = SetProperties(updates={})


@dataclass(frozen=True)
class TableCommit(Intention[TableMetadata, None]):
    """What one client wants of one table. Without reports, the first refusal is raised."""

    identifier: TableIdentifier
    requirements: Sequence[Requirement]
    updates: Sequence[Update]
    report_requirement: Report = raise_refusal
    report_update: Report = raise_refusal
    asks_first: bool = False
    """Whether it does not land while slots are reserved for others, but raises `Reserved`."""
    is_part: bool = False
    """Whether other parts land with it: those that cannot be known again would land twice if this one were."""
    rebasing: RebaseRequest = NOTHING_ASKED
    place: SettingsOfPlace = field(default_factory=SettingsOfPlace, compare=False)
    kind = TABLES

    @property
    def writer(self) -> str | None:
        """The id of its snapshot, which clients keep between attempts; None without one."""
        return next(
            (str(item.snapshot.snapshot_id) for item in self.updates if isinstance(item, AddSnapshot)), None
        )

    @property
    def meant_for(self) -> TableUuid | None:
        """The table that its requirements name, or that it creates."""
        named = next((item.uuid for item in self.requirements if isinstance(item, AssertTableUuid)), None)
        # Asked of a commit that was refused, too, whose requirements may contradict each other.
        if named is not None or not any(isinstance(item, AssertCreate) for item in self.requirements):
            return named
        return next((item.uuid for item in self.updates if isinstance(item, AssignUuid)), None)

    def prepare(self, catalog: Catalog) -> None:
        """Read what a rebase will need: commits that land now may move the branch."""
        snapshot = snapshot_to_rebase(self.updates)
        if snapshot is None or self.rebasing.mode is RebaseMode.OFF:
            return
        try:
            _, current = catalog.read_now(TABLES, self.identifier)
            base = Base(TABLES, self.identifier, None, current)
            settings = self.place.settings(catalog, base, self.rebasing, snapshot)
            if settings.mode is not RebaseMode.OFF:
                read_ahead(catalog, current, snapshot)
        except IcetowerError as error:
            # Its turn will show whether that matters.
            log.debug("could not read ahead for a commit to %s: %s", self.identifier, error)

    def lands_with_others(self) -> bool:
        """Say whether it commits to a table that is there."""
        return not is_create(self.requirements)

    def require(self, base: Base[TableMetadata]) -> bool:
        """Check every requirement; False if this very commit has landed already."""
        current = base.metadata
        if is_create(self.requirements):
            repeated = (
                current is not None and self._is_meant_for(current) and self._is_repeated_creation(current)
            )
            if isinstance(repeated, SetSnapshotRef):
                raise _unknown(repeated)
            if repeated:
                return False
            check_requirements(current, self.requirements, self.report_requirement)
            if current is None:
                base.check_free()
            return True
        present = base.present()
        repeated = self._is_repeated(present)
        if isinstance(repeated, bool):
            if repeated:
                return False
            if not is_behind(present, self.requirements, _without_staged(present, self.updates)):
                check_requirements(current, self.requirements, self.report_requirement)
        # What is only behind may be rebased, and what is unclear may be found in older metadata: `apply` can say that,
        # which knows the catalog.
        return True

    def apply(
        self, catalog: Catalog, base: Base[TableMetadata], files: StagedFiles
    ) -> Planned[TableMetadata, None]:
        """Apply every update, rebased if other snapshots came first and the table asks for that.

        Raises:
            Reserved: it has to ask for the slots of others first.
        """
        if is_create(self.requirements):
            report = self._reporting(self.report_update, None)
            new = apply_to_new(self.updates, catalog.now_ms(), report).finish(None)
            check_place_is_free(catalog, self.identifier, new)
            return Planned(new, None)
        updates, rebase = _without_staged(base.present(), self.updates), None
        unclear = self._is_repeated(base.present())
        if isinstance(unclear, SetSnapshotRef):
            is_staged = not any(isinstance(item, AddSnapshot) for item in updates)
            if not is_staged or not was_never_on(catalog, base, unclear):
                raise _unknown(unclear)
            check_requirements(base.metadata, self.requirements, self.report_requirement)
        if is_behind(base.present(), self.requirements, updates):
            came_of_it = self._rebased(catalog, base, files)
            if isinstance(came_of_it, Rebase):
                updates, rebase = came_of_it.updates, came_of_it
            refused = came_of_it if isinstance(came_of_it, RebaseRefusal) else None
            report = self._reporting(self.report_requirement, refused, is_rebased=rebase is not None)
            check_requirements(base.metadata, self.requirements, report)
        else:
            refused = None
            self._check_slots(base)
        report = self._reporting(self.report_update, refused)
        draft = apply_updates(base.present(), updates, catalog.now_ms(), report)
        # Only the file that readers have seen goes into the metadata log, however many commits land together.
        return Planned(draft.finish(base.stored_at) if draft.has_changes else None, None, rebase=rebase)

    def _is_repeated(self, present: TableMetadata) -> bool | SetSnapshotRef:
        return (self.meant_for is None or self._is_meant_for(present)) and _is_repeated(present, self.updates)

    def _is_meant_for(self, current: TableMetadata) -> bool:
        return self.meant_for is not None and is_same_uuid(self.meant_for, current.uuid)

    def _is_repeated_creation(self, current: TableMetadata) -> bool | SetSnapshotRef:
        """Return the same where the table has the uuid that the creation gives.

        A uuid is given once, so a creation without rows, too, has landed.

        Raises:
            CommitStateUnknown: not all that was asked for is there: it may have been changed since.
        """
        if self.is_part or any(isinstance(update, AddSnapshot) for update in self.updates):
            return _is_repeated(current, self.updates)
        if not _holds_beside_snapshots(current, self.updates):
            raise CommitStateUnknown(
                f"Cannot tell whether this commit has landed: the table has the uuid {current.uuid} that it gives, "
                "but not all else that it asks for. Nothing was changed or deleted"
            )
        return True

    def _check_slots(self, base: Base[TableMetadata]) -> None:
        if self.asks_first and self.writer:
            check_slots(base, self.writer)

    def _rebased(
        self, catalog: Catalog, base: Base[TableMetadata], files: StagedFiles
    ) -> Rebase | RebaseRefusal | None:
        """Return what becomes of a commit that is behind; None where the mode is off."""
        snapshot = next(item.snapshot for item in self.updates if isinstance(item, AddSnapshot))
        settings = self.place.settings(catalog, base, self.rebasing, snapshot)
        if settings.mode is RebaseMode.OFF:
            return None
        self._check_slots(base)
        return Rebases(catalog, files).rebase(base, self.requirements, self.updates, settings)

    @staticmethod
    def _reporting(report: Report, refused: RebaseRefusal | None, *, is_rebased: bool = False) -> Report:
        """Return a report that adds why there was no rebase, or leaves out what one made good.

        It raises `GivenUp` once the client has gone: a request may hold many thousand items.
        """

        def reported(position: int, error: IcetowerError | None) -> bool:
            check_wanted()
            if isinstance(error, CommitFailed):
                error.not_rebased = refused
            return report(position, None if is_rebased else error)

        return reported


def _without_staged(current: TableMetadata, updates: Sequence[Update]) -> Sequence[Update]:
    """Return updates of which none adds a snapshot that was staged in the table before.

    In its place is one that changes nothing. A refusal would make the writer, which is the same, delete files that the
    staged snapshot uses.
    """
    staged = {
        position
        for position, item in enumerate(updates)
        if isinstance(item, AddSnapshot)
        and current.snapshots_by_id.get(item.snapshot.snapshot_id) == item.snapshot
    }
    if not staged:
        return updates
    return [_NOTHING if position in staged else item for position, item in enumerate(updates)]


def _is_repeated(current: TableMetadata, updates: Sequence[Update]) -> bool | SetSnapshotRef:
    """Return whether a commit has landed already: a client or a proxy sent the request again.

    A snapshot id together with its manifest list can only come from the same writer; a snapshot that was rebased says
    which list its writer had made. A refusal would make the client delete files that the table uses. But a snapshot
    that was only staged is not a commit to a branch: where the request sets refs to it, they must be there, or have
    been. The first of them that may have been there is returned: only older metadata can say whether it was.

    Raises:
        CommitStateUnknown: the snapshot is there, and not all else that was asked for: it may have been changed since.
    """
    added = [update.snapshot for update in updates if isinstance(update, AddSnapshot)]
    for snapshot in added:
        present = current.snapshots_by_id.get(snapshot.snapshot_id)
        # Old writers of version 1 make no list.
        if present is None or (
            present != snapshot and snapshot.manifest_list not in lists_of_writer(present)
        ):
            return False
    # Each is looked for in the table's history, and a request may set one ref many thousand times.
    moves = {
        (update.ref_name, update.snapshot_id): update
        for update in updates
        if isinstance(update, SetSnapshotRef) and update.snapshot_id in current.snapshots_by_id
    }
    for move in moves.values() if added else ():
        has_reached = _has_reached(current, move.ref_name, move.snapshot_id)
        if not has_reached:
            return move if has_reached is None else False
    if added and not _holds_beside_snapshots(current, updates):
        raise CommitStateUnknown(
            f"Cannot tell whether this commit has landed: the table has snapshot {added[0].snapshot_id}, but not all "
            "else that the commit asks for. Nothing was changed or deleted"
        )
    return bool(added)


def _unknown(move: SetSnapshotRef) -> CommitStateUnknown:
    return CommitStateUnknown(
        f"Cannot tell whether this commit has landed: the table has snapshot {move.snapshot_id}, but "
        f"{move.ref_name} is not on it. Nothing was changed or deleted"
    )


def _holds_beside_snapshots(current: TableMetadata, updates: Sequence[Update]) -> bool:
    """Return whether updates would change nothing but snapshots and refs."""
    others = [
        item for item in updates if not isinstance(item, AddSnapshot | SetSnapshotRef | RemoveSnapshotRef)
    ]
    if not others:
        return True
    try:
        after = apply_updates(current, others, current.last_updated_ms).finish(None)
    except IcetowerError:
        return False
    return all(getattr(after, name) == getattr(current, name) for name in _BESIDE_SNAPSHOTS)


def _has_reached(current: TableMetadata, name: str, snapshot_id: SnapshotId) -> bool | None:
    """Return whether a ref is at a snapshot or past it, or was; None if it may have been.

    Only main has a log.
    """
    check_wanted()
    log = current.snapshot_log
    if name == MAIN_BRANCH and any(entry.snapshot_id == snapshot_id for entry in log):
        return True
    ref = current.snapshot_refs.get(name)
    if ref is not None and is_ancestor(current, snapshot_id, ref.snapshot_id):
        return True
    # The log is cut where snapshots expired, and where main was replaced: what is older may have been in it. An empty
    # one was never cut if no snapshot has left the table: each has taken one sequence number.
    if log:
        is_log_cut = log[0].timestamp_ms > current.snapshots_by_id[snapshot_id].timestamp_ms
    else:
        is_log_cut = len(current.snapshots) != current.last_sequence
    return None if name != MAIN_BRANCH or is_log_cut else False


def begin_commit(catalog: Catalog, commit: TableCommit) -> Landing[TableMetadata, None]:
    """Begin to advance a table, or to create it if the only requirement is `assert-create`.

    `Landing.finish` then raises:
        NoSuchTable: no table has this name.
        NoSuchNamespace: the table is to be created in a namespace that is not there.
        RequirementFailed: the table is not what the client built on.
        ViewExists: the table is to be created under a view's name.
        InvalidUpdate: an update cannot be applied.
        InvalidLocation: an update moves the table out of its warehouse.
        CommitRefused: the guard rejects what a new snapshot looks like.
        StaleUpdate: a snapshot was numbered before another commit landed.
        DanglingRef: a ref would lose its snapshot.
        PointerMoved: other commits won every attempt.
        Reserved: the commit has to ask for the slots of others first.
        CommitStateUnknown: the database did not answer; the new file stays.
        CorruptMetadata: the current metadata file cannot be read.
    """
    catalog.permit("commit_table", commit.identifier)
    return Landing(catalog, commit)


def has_lost_race(commit: TableCommit, error: CommitFailed) -> bool:
    """Return whether a commit failed only because others came first."""
    if commit.writer is None:
        return False
    if isinstance(error, RequirementFailed):
        return isinstance(error.requirement, AssertRefSnapshotId)
    return isinstance(error, StaleUpdate | PointerMoved)


def commit_transaction(catalog: Catalog, commits: Sequence[TableCommit]) -> list[LoadedTable]:
    """Advance several tables in one database transaction: all of them or none.

    Commits to one table are applied in order, each with its requirements checked against what the earlier ones left.

    Raises:
        NoSuchTable: no table has one of the names; nothing was changed.
        RequirementFailed: a table is not what the client built on; nothing was changed.
        InvalidUpdate: an update cannot be applied; nothing was changed.
        CommitRefused: the guard rejects what a new snapshot looks like; nothing was changed.
        CommitStateUnknown: the database did not answer; the new files stay.
    """
    catalog.permit("commit_transaction", *(commit.identifier for commit in commits))
    parts = [replace(commit, is_part=len(commits) > 1) for commit in commits]
    return [landed.loaded for landed in land(catalog, parts)]
