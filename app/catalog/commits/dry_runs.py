"""Dry runs of commits: how each requirement and update fares, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app.catalog.commits.conflict_checks import conflicts_of_snapshot
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.guard import CommitGuard
from app.catalog.commits.intentions import Base, Planned
from app.catalog.commits.plans import (
    Plan,
    after,
    apply,
    check_no_part_has_landed,
    explain_refusal,
    load_base,
    note_added,
)
from app.catalog.commits.rebases import NOTHING_ASKED, RebaseRequest
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.locations import check_locations
from app.catalog.filesystem_tables.rules import several_tables
from app.engine.change.apply import find_offending_update
from app.engine.change.landed_since import refs_set_by
from app.engine.change.requirements import AssertCreate, Requirement, Value, expected_and_found
from app.engine.change.updates import AddSnapshot, Update
from app.engine.conflicts.report import ConflictReport
from app.engine.diff.metadata_diff import MetadataDiff, creation_diff, metadata_diff
from app.engine.guard.findings import Finding
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.rebase.rebased_snapshots import Rebase
from app.error_frames import let_go_of_frames
from app.errors import (
    AlreadyExists,
    BadRequest,
    CommitFailed,
    CommitRefused,
    IcetowerError,
    NoSuchNamespace,
    NotFound,
)

MAX_REFUSED_UPDATES = 20
"""After so many refusals the rest is not tried: each makes all earlier updates be applied again."""
MAX_BLAMED_UPDATES = 50
"""With more updates that do not go together, the one to blame is not looked for."""
MAX_CHECKED_SNAPSHOTS = 10
"""How many new snapshots are checked for conflicts in one request."""


@dataclass(slots=True)
class CheckedRequirement:
    """How one requirement fares; what was expected and found also where the two agree."""

    change: int
    """Which of the request's changes it belongs to, from 0."""
    requirement: Requirement
    expected: Value
    found: Value
    result: Literal["passed", "failed", "rebased", "not-checked"] = "not-checked"
    """It is rebased if it does not hold, and the server would rebase the commit."""
    error: IcetowerError | None = None


@dataclass(slots=True)
class TriedUpdate:
    """How one update fares."""

    change: int
    update: Update
    result: Literal["applied", "refused", "not-tried"] = "not-tried"
    error: IcetowerError | None = None


@dataclass(frozen=True, slots=True)
class CheckedSnapshot:
    """What a new snapshot conflicts with on its branch, or why that is not known."""

    snapshot_id: SnapshotId
    ref: str | None
    report: ConflictReport | None
    error: IcetowerError | None = None


@dataclass(frozen=True, slots=True)
class TableDryRun:
    """What a commit would do to one table."""

    identifier: TableIdentifier
    location: Location | None
    """Where its metadata is now; None if there is no table."""
    error: IcetowerError | None
    """What the commit would be answered with because of this table; None if it would land."""
    has_landed_already: bool
    """Whether the table has all that the commit would add, so that it would do nothing and be a success."""
    changes_table: bool
    requirements: Sequence[CheckedRequirement]
    updates: Sequence[TriedUpdate]
    difference: MetadataDiff | None
    """What would change, were all requirements met; None if the updates do not go together."""
    snapshots: Sequence[CheckedSnapshot]
    findings: Sequence[Finding]
    """What the guard against lost updates says of the new snapshots."""
    rebases: Sequence[Rebase]
    """What the server would put on the head of a branch instead of refusing it."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a commit to some tables would do."""

    tables: Sequence[TableDryRun]
    error: IcetowerError | None
    """What the commit would be answered with; None if it would land."""


def dry_run_commit(
    catalog: Catalog,
    identifier: TableIdentifier,
    requirements: Sequence[Requirement],
    updates: Sequence[Update],
    rebasing: RebaseRequest = NOTHING_ASKED,
) -> TableDryRun:
    """Return what a commit to a table would do now; nothing is written.

    Raises:
        NoSuchTable: no table has this name, and the commit does not create one.
        NoSuchNamespace: the table is to be created in a namespace that is not there.
        MetadataFileMissing, CorruptMetadata: the table's metadata file is gone, or cannot be read.
        CommitStateUnknown: so the commit would be answered: it may have landed earlier.
        FilesUnavailable: the store does not answer.
    """
    catalog.permit("dry_run_commit", identifier)
    commit = TableCommit(identifier, requirements, updates, rebasing=rebasing)
    found = dry_run_transaction(catalog, [commit])
    if isinstance(found.error, NotFound):
        raise found.error
    return found.tables[0]


def dry_run_transaction(catalog: Catalog, commits: Sequence[TableCommit]) -> DryRun:
    """Return what a commit to several tables would do now; nothing is written.

    A table or namespace that is not there is part of the answer.

    Raises:
        TreeRefusal: file-system tables have no transactions over several.
        MetadataFileMissing, CorruptMetadata: a table's metadata file is gone, or cannot be read.
        CommitStateUnknown: so the commit would be answered: it or a part of it may have landed earlier.
        FilesUnavailable: the store does not answer.
    """
    catalog.permit("dry_run_transaction", *(commit.identifier for commit in commits))
    numbered: dict[TableIdentifier, list[tuple[int, TableCommit]]] = {}
    for number, commit in enumerate(commits):
        numbered.setdefault(commit.identifier, []).append((number, commit))
    if len(numbered) > 1 and not catalog.has_rows:
        raise several_tables()
    tables = [_TableDryRun(catalog, name, wanted) for name, wanted in numbered.items()]
    for table in tables:
        table.run()
    first = next((table.error for table in tables if table.error is not None), None)
    if first is not None and len(commits) > 1:
        check_no_part_has_landed((part for table in tables for part in table.parts), first)
    for table in tables:
        refusal = table.ask_the_guard()
        first = first or refusal
    # The database asks for namespaces last, when it inserts the names in their order.
    for table in sorted(tables, key=lambda item: item.identifier):
        missing = table.missing_namespace()
        table.error = table.error or missing
        first = first or missing
    return DryRun([table.result() for table in tables], first)


class _TableDryRun:
    """One table's part of a dry run, which notes every refusal and goes on."""

    def __init__(
        self, catalog: Catalog, identifier: TableIdentifier, commits: Sequence[tuple[int, TableCommit]]
    ) -> None:
        self._catalog = catalog
        self._files = StagedFiles(catalog, is_dry_run=True)
        self._base = replace(load_base(catalog, TABLES, identifier), staged=self._files.contents.get)
        self._commits = commits
        self._notes: list[_Notes] = []
        self._planned: list[Planned[TableMetadata, None] | None] = []
        self._findings: Sequence[Finding] = ()
        self.identifier = identifier
        self.error: IcetowerError | None = None

    def run(self) -> None:
        """Plan the commits to the table as the door would, and note what each comes to."""
        now, added = self._base, set[SnapshotId]()
        for number, commit in self._commits:
            notes = _Notes(number, commit, now)
            self._notes.append(notes)
            noted = replace(
                commit, report_requirement=self._note_requirement, report_update=self._note_update
            )
            try:
                note_added(commit, added)
                planned = apply(self._catalog, noted, now, self._files)
                notes.is_repeated = planned is None
                if planned is not None and planned.rebase is not None:
                    notes.note_rebase()
            except IcetowerError as error:
                planned = Planned(None, None)
                self._note_whole(error)
            self._planned.append(planned)
            now = after(now, planned)
        if now is not self._base and now.metadata is not None:
            try:
                check_locations(self._catalog, self.identifier, now.metadata, self._base.metadata)
            except IcetowerError as error:
                self._note_whole(error)

    @property
    def parts(self) -> list[tuple[TableCommit, Base[TableMetadata]]]:
        """Its commits, each with the table as it is."""
        return [(commit, self._base) for _, commit in self._commits]

    def _note_requirement(self, position: int, error: IcetowerError | None) -> bool:
        checked = self._notes[-1].requirements[position]
        checked.result = "passed" if error is None else "failed"
        checked.error = error
        self._note_error(error)
        return True

    def _note_update(self, position: int, error: IcetowerError | None) -> bool:
        notes = self._notes[-1]
        tried = notes.updates[position]
        tried.result = "applied" if error is None else "refused"
        tried.error = error
        self._note_error(error)
        notes.refused_updates += error is not None
        return notes.refused_updates < MAX_REFUSED_UPDATES

    def _note_whole(self, error: IcetowerError) -> None:
        """Note the refusal of what all requirements and updates come to."""
        notes = self._notes[-1]
        notes.does_not_go_together = True
        self._note_error(error)
        applied = [tried for tried in notes.updates if tried.result == "applied"]
        if len(applied) > MAX_BLAMED_UPDATES:
            return
        updates = [tried.update for tried in applied]
        position = find_offending_update(notes.base.metadata, updates, self._catalog.now_ms(), error)
        if position is not None:
            applied[position].result, applied[position].error = "refused", error

    def _note_error(self, error: IcetowerError | None) -> None:
        """Note the first error, which is the one that the commit would be answered with.

        Raises:
            CommitStateUnknown: it would not be refused, because it may have landed earlier.
        """
        if error is None:
            return
        if not isinstance(error, BadRequest | CommitFailed | AlreadyExists | NotFound):
            # Not a refusal: something here does not work.
            raise error
        if self.error is not None:
            return
        self.error = error
        notes = self._notes[-1]
        explain_refusal(self._catalog, notes.base, notes.commit, error)

    @property
    def _plan(self) -> Plan[TableMetadata, None]:
        return Plan(self._base, [commit for _, commit in self._commits], self._planned)

    def ask_the_guard(self) -> CommitRefused | None:
        """Return why the guard would reject this table's part; it only looks when all else is well."""
        if self.error is not None:
            return None
        guard = CommitGuard(self._catalog, is_dry_run=True)
        try:
            guard.check(self._plan)
        except CommitRefused as refused:
            self.error = refused
            return refused
        finally:
            self._findings = guard.findings
        return None

    def missing_namespace(self) -> NoSuchNamespace | None:
        """Return the error of a table that is to be created in a namespace that is not there."""
        if self._plan.metadata is None or self._base.seen is not None:
            return None
        try:
            self._catalog.load_namespace(self.identifier.namespace)
        except NoSuchNamespace as missing:
            return missing
        return None

    def result(self) -> TableDryRun:
        """Return what has come of it all. Its errors are an answer, and keep nothing of the request."""
        errors = [self.error]
        for notes in self._notes:
            errors += [item.error for item in notes.requirements] + [item.error for item in notes.updates]
        for error in filter(None, errors):
            let_go_of_frames(error)
        seen = self._base.seen
        return TableDryRun(
            identifier=self.identifier,
            location=seen.metadata_location if seen is not None else None,
            error=self.error,
            has_landed_already=all(notes.is_repeated for notes in self._notes),
            changes_table=self._plan.metadata is not None,
            requirements=[item for notes in self._notes for item in notes.requirements],
            updates=[item for notes in self._notes for item in notes.updates],
            difference=self._difference(),
            snapshots=self._checked_snapshots(),
            findings=self._findings,
            rebases=[item.rebase for item in self._planned if item is not None and item.rebase is not None],
        )

    def _difference(self) -> MetadataDiff | None:
        if any(notes.refused_updates or notes.does_not_go_together for notes in self._notes):
            return None
        before, made = self._base.metadata, self._plan.metadata
        if made is None:
            return None
        if before is None:
            return creation_diff(made)
        if any(isinstance(item.requirement, AssertCreate) for item in self._notes[0].requirements):
            # What was to be a new table is no later version of the one that is there.
            return None
        return metadata_diff(before, made)

    def _checked_snapshots(self) -> list[CheckedSnapshot]:
        found: list[CheckedSnapshot] = []
        for notes in self._notes:
            refs = refs_set_by(notes.commit.updates)
            for tried in notes.updates:
                if isinstance(tried.update, AddSnapshot) and not notes.is_repeated:
                    snapshot = tried.update.snapshot
                    ref = refs.get(snapshot.snapshot_id)
                    is_one_too_many = len(found) >= MAX_CHECKED_SNAPSHOTS
                    base = None if is_one_too_many else notes.base.metadata
                    found.append(self._checked_snapshot(base, snapshot, ref))
        return found

    def _checked_snapshot(
        self, base: TableMetadata | None, snapshot: Snapshot, ref: str | None
    ) -> CheckedSnapshot:
        if base is None or ref is None:
            return CheckedSnapshot(snapshot.snapshot_id, ref, None)
        try:
            report = conflicts_of_snapshot(self._catalog, base, snapshot, ref)
        except IcetowerError as error:
            # A commit does not look into the files, so one that cannot be read is no reason against it.
            return CheckedSnapshot(snapshot.snapshot_id, ref, None, error)
        return CheckedSnapshot(snapshot.snapshot_id, ref, report)


class _Notes:
    """What was seen of one commit."""

    def __init__(self, number: int, commit: TableCommit, base: Base[TableMetadata]) -> None:
        self.commit = commit
        self.base = base
        self.is_repeated = False
        self.does_not_go_together = False
        self.refused_updates = 0
        self.requirements = [
            CheckedRequirement(number, item, *expected_and_found(base.metadata, item))
            for item in commit.requirements
        ]
        self.updates = [TriedUpdate(number, item) for item in commit.updates]

    def note_rebase(self) -> None:
        """Note that what does not hold keeps nothing from landing."""
        for checked in self.requirements:
            if checked.result == "passed" and _differ(checked.expected, checked.found):
                checked.result = "rebased"


def _differ(expected: Value, found: Value) -> bool:
    """Return whether a requirement does not hold; upper and lower case of uuids are the same."""
    return str(expected).lower() != str(found).lower()
