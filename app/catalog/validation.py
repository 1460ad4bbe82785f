"""Dry runs of commits: what each requirement and update comes to, and what the commit would be answered with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.catalog.commit_plans import PlannedPut, Refusals, TableChange, plan_table, tell_standing
from app.catalog.conflict_checks import conflicts_of_snapshot
from app.catalog.context import Catalog
from app.catalog.guards import CommitGuard
from app.database.pointers import Pointer
from app.database.warehouses import Warehouse
from app.engine.change.apply import misfit_in
from app.engine.change.landed_since import refs_by_snapshot
from app.engine.change.requirements import AssertCreate, Requirement, Value, expected_and_found
from app.engine.change.updates import AddSnapshot, Update
from app.engine.conflicts.report import ConflictReport
from app.engine.diff.metadata_diff import MetadataDiff, creation_diff, metadata_diff
from app.engine.guard.findings import Finding
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
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
"""After so many the rest is not tried: each makes all that came before it be applied again."""
MAX_BLAMED_UPDATES = 50
"""Of more updates that do not go together nobody looks for the one to blame."""
MAX_CHECKED_SNAPSHOTS = 10
"""Of how many snapshots the files are looked at in one request."""


@dataclass(slots=True)
class CheckedRequirement:
    """How one requirement fares; what was expected and found also where the two agree."""

    change: int
    """Which of the request's changes it belongs to, from 0."""
    requirement: Requirement
    expected: Value
    found: Value
    result: Literal["passed", "failed", "not-checked"] = "not-checked"
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
    """What a new snapshot collides with on its branch; or why that cannot be told."""

    snapshot_id: SnapshotId
    ref: str | None
    report: ConflictReport | None
    error: IcetowerError | None = None


@dataclass(frozen=True, slots=True)
class TableVerdict:
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a commit to some tables would do."""

    tables: Sequence[TableVerdict]
    error: IcetowerError | None
    """What the commit would be answered with; None if it would land."""


def validate_commit(
    catalog: Catalog,
    warehouse: Warehouse,
    identifier: TableIdentifier,
    requirements: Sequence[Requirement],
    updates: Sequence[Update],
) -> TableVerdict:
    """Tell what a commit to a table would do now; nothing is written.

    Raises:
        NoSuchTable: no table has this name, and the commit does not create one.
        NoSuchNamespace: the table is to be created in a namespace that is not there.
        MetadataFileMissing: the table's metadata file is gone.
        CorruptMetadata: the table's metadata file cannot be read.
        FilesUnavailable: the store does not answer.
    """
    verdict = validate_transaction(catalog, warehouse, [TableChange(identifier, requirements, updates)])
    if isinstance(verdict.error, NotFound):
        raise verdict.error
    return verdict.tables[0]


def validate_transaction(catalog: Catalog, warehouse: Warehouse, changes: Sequence[TableChange]) -> Verdict:
    """Tell what a commit to several tables would do now; nothing is written.

    A table or namespace that is not there is part of the verdict.

    Raises:
        MetadataFileMissing: a table's metadata file is gone.
        CorruptMetadata: a table's metadata file cannot be read.
        FilesUnavailable: the store does not answer.
    """
    numbered: dict[TableIdentifier, list[tuple[int, TableChange]]] = {}
    for number, change in enumerate(changes):
        numbered.setdefault(change.identifier, []).append((number, change))
    trials = [_Trial(catalog, warehouse, name, wanted) for name, wanted in numbered.items()]
    for trial in trials:
        trial.run()
    first = next((trial.error for trial in trials if trial.error is not None), None)
    for trial in trials:
        refusal = trial.ask_the_guard()
        first = first or refusal
    # The database asks for namespaces last, when it inserts the names in their order.
    for trial in sorted(trials, key=lambda item: item.identifier):
        missing = trial.missing_namespace()
        trial.error = trial.error or missing
        first = first or missing
    return Verdict([trial.verdict() for trial in trials], first)


class _Trial(Refusals):
    """One table's part of a dry run: takes notes of every refusal, and goes on as far as that makes sense."""

    def __init__(
        self,
        catalog: Catalog,
        warehouse: Warehouse,
        identifier: TableIdentifier,
        changes: Sequence[tuple[int, TableChange]],
    ) -> None:
        self._catalog = catalog
        self._warehouse = warehouse
        self._changes = changes
        self._notes: list[_ChangeNotes] = []
        self._planned: PlannedPut | None = None
        self._findings: Sequence[Finding] = ()
        self.identifier = identifier
        self.error: IcetowerError | None = None

    def run(self) -> None:
        """Plan the commit as the commit would."""
        wanted = [change for _, change in self._changes]
        self._planned = plan_table(self._catalog, self._warehouse, self.identifier, wanted, self)

    def begin(self, change: TableChange, seen: Pointer | None, current: TableMetadata | None) -> None:
        number = self._changes[len(self._notes)][0]
        self._notes.append(_ChangeNotes(number, change, seen, current))

    def is_repetition(self) -> None:
        self._notes[-1].is_repeated = True

    def of_requirement(self, position: int, error: IcetowerError | None) -> bool:
        checked = self._notes[-1].requirements[position]
        checked.result = "passed" if error is None else "failed"
        checked.error = error
        self._take(error)
        return True

    def of_update(self, position: int, error: IcetowerError | None) -> bool:
        notes = self._notes[-1]
        tried = notes.updates[position]
        tried.result = "applied" if error is None else "refused"
        tried.error = error
        self._take(error)
        notes.refused_updates += error is not None
        return notes.refused_updates < MAX_REFUSED_UPDATES

    def of_all(self, error: IcetowerError) -> None:
        notes = self._notes[-1]
        notes.does_not_go_together = True
        self._take(error)
        applied = [tried for tried in notes.updates if tried.result == "applied"]
        if len(applied) > MAX_BLAMED_UPDATES:
            return
        updates = [tried.update for tried in applied]
        place = misfit_in(notes.current, updates, self._catalog.now_ms(), error)
        if place is not None:
            applied[place].result, applied[place].error = "refused", error

    def _take(self, error: IcetowerError | None) -> None:
        """Remember the first error, which is the one that the commit would be answered with."""
        if error is None:
            return
        if not isinstance(error, BadRequest | CommitFailed | AlreadyExists | NotFound):
            # Not a verdict: something here does not work.
            raise error
        if self.error is not None:
            return
        self.error = error
        if isinstance(error, CommitFailed):
            notes = self._notes[-1]
            tell_standing(error, self.identifier, notes.seen, notes.current, notes.change.updates)

    def ask_the_guard(self) -> CommitRefused | None:
        """Return why the guard would reject this table's part, which it only looks at when all else is well."""
        if self.error is not None or self._planned is None:
            return None
        guard = CommitGuard(self._catalog, self._warehouse, is_rehearsal=True)
        try:
            guard.check(self._planned, [change for _, change in self._changes])
        except CommitRefused as refused:
            self.error = refused
            return refused
        finally:
            self._findings = guard.findings
        return None

    def missing_namespace(self) -> NoSuchNamespace | None:
        """Return the error of a table that is to be created in a namespace that is not there."""
        planned, namespace = self._planned, self.identifier.namespace
        if planned is None or planned.metadata is None or planned.seen is not None:
            return None
        if self._catalog.namespaces.find(self._warehouse.id, namespace) is not None:
            return None
        return NoSuchNamespace(namespace)

    def verdict(self) -> TableVerdict:
        """Return what has come of it all."""
        assert self._planned is not None
        seen = self._notes[0].seen
        base = self._notes[0].current
        return TableVerdict(
            identifier=self.identifier,
            location=seen.metadata_location if seen is not None and base is not None else None,
            error=self.error,
            has_landed_already=all(notes.is_repeated for notes in self._notes),
            changes_table=self._planned.metadata is not None,
            requirements=[item for notes in self._notes for item in notes.requirements],
            updates=[item for notes in self._notes for item in notes.updates],
            difference=self._difference(self._planned),
            snapshots=self._checked_snapshots(),
            findings=self._findings,
        )

    def _difference(self, planned: PlannedPut) -> MetadataDiff | None:
        if any(notes.refused_updates or notes.does_not_go_together for notes in self._notes):
            return None
        before, after = planned.base, planned.metadata
        if not isinstance(after, TableMetadata):
            return None
        if not isinstance(before, TableMetadata):
            return creation_diff(after)
        if any(isinstance(item.requirement, AssertCreate) for item in self._notes[0].requirements):
            # What was to be a new table is no later version of the one that is there.
            return None
        return metadata_diff(before, after)

    def _checked_snapshots(self) -> list[CheckedSnapshot]:
        found: list[CheckedSnapshot] = []
        for notes in self._notes:
            refs = refs_by_snapshot(notes.change.updates)
            for tried in notes.updates:
                if isinstance(tried.update, AddSnapshot) and not notes.is_repeated:
                    snapshot = tried.update.snapshot
                    ref = refs.get(snapshot.snapshot_id)
                    is_one_too_many = len(found) >= MAX_CHECKED_SNAPSHOTS
                    base = None if is_one_too_many else notes.current
                    found.append(self._checked_snapshot(base, snapshot, ref))
        return found

    def _checked_snapshot(
        self, base: TableMetadata | None, snapshot: Snapshot, ref: str | None
    ) -> CheckedSnapshot:
        if base is None or ref is None:
            return CheckedSnapshot(snapshot.snapshot_id, ref, None)
        try:
            report = conflicts_of_snapshot(self._catalog, self._warehouse, base, snapshot, ref)
        except IcetowerError as error:
            # A commit does not look into the files, so that one that cannot be read is no reason against it.
            return CheckedSnapshot(snapshot.snapshot_id, ref, None, error)
        return CheckedSnapshot(snapshot.snapshot_id, ref, report)


class _ChangeNotes:
    """What was seen of one change."""

    def __init__(
        self, number: int, change: TableChange, seen: Pointer | None, current: TableMetadata | None
    ) -> None:
        self.change = change
        self.seen = seen
        self.current = current
        self.is_repeated = False
        self.does_not_go_together = False
        self.refused_updates = 0
        self.requirements = [
            CheckedRequirement(number, item, *expected_and_found(current, item))
            for item in change.requirements
        ]
        self.updates = [TriedUpdate(number, item) for item in change.updates]
