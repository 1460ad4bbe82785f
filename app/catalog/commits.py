"""Commits: the one door through which a pointer is made or moved."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from app import telemetry
from app.catalog.commit_plans import PlannedPut, TableChange, plan_table, read_base, standing_of
from app.catalog.context import Call, Catalog
from app.catalog.guards import CommitGuard
from app.catalog.locations import is_allowed
from app.catalog.staged_files import StagedFile, discard, stage
from app.database.pointers import (
    Advance,
    Creation,
    NameTaken,
    PutOutcome,
    Unmoved,
)
from app.database.warehouses import Warehouse
from app.engine.change.landed_since import landed_between
from app.engine.change.requirements import Requirement
from app.engine.change.updates import Update
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.properties import DELETE_AFTER_COMMIT, bool_property
from app.engine.model.table_metadata import TableMetadata
from app.errors import (
    CommitFailed,
    CommitStateUnknown,
    IcetowerError,
    PointerMoved,
)

__all__ = [
    "LoadedTable",
    "PlannedPut",
    "TableChange",
    "commit_table",
    "commit_transaction",
    "plan_table",
    "put",
    "read_base",
]

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.005
LONGEST_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table or view as it stands: its metadata, and where the file is (None for a staged create)."""

    identifier: TableIdentifier
    location: Location | None
    metadata: Any
    json: bytes


def commit_table(
    catalog: Catalog,
    call: Call,
    warehouse: Warehouse,
    identifier: TableIdentifier,
    requirements: Sequence[Requirement],
    updates: Sequence[Update],
) -> LoadedTable:
    """Advance a table by one commit, or create it if the only requirement is `assert-create`.

    Raises:
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
        CommitStateUnknown: the database did not answer; the new file stays.
        CorruptMetadata: the current metadata file cannot be read.
    """
    changes = [TableChange(identifier, requirements, updates)]
    guard = CommitGuard(catalog, warehouse)

    def plan() -> list[PlannedPut]:
        return [guard.check(plan_table(catalog, warehouse, identifier, changes), changes)]

    return put(catalog, call, warehouse, plan)[0]


def commit_transaction(
    catalog: Catalog, call: Call, warehouse: Warehouse, changes: Sequence[TableChange]
) -> list[LoadedTable]:
    """Advance several tables in one database transaction: all of them or none.

    Changes of one table are applied in order, each with its requirements checked against what the earlier
    ones left.

    Raises:
        NoSuchTable: no table has one of the names; nothing was changed.
        RequirementFailed: a table is not what the client built on; nothing was changed.
        InvalidUpdate: an update cannot be applied; nothing was changed.
        CommitRefused: the guard rejects what a new snapshot looks like; nothing was changed.
        CommitStateUnknown: the database did not answer; the new files stay.
    """
    by_table: dict[TableIdentifier, list[TableChange]] = {}
    for change in changes:
        by_table.setdefault(change.identifier, []).append(change)

    guard = CommitGuard(catalog, warehouse)

    def plan() -> list[PlannedPut]:
        planned = [plan_table(catalog, warehouse, name, wanted) for name, wanted in by_table.items()]
        return [guard.check(item, by_table[item.identifier]) for item in planned]

    return put(catalog, call, warehouse, plan)


def put(
    catalog: Catalog,
    call: Call,
    warehouse: Warehouse,
    plan: Callable[[], list[PlannedPut]],
) -> list[LoadedTable]:
    """Carry out what `plan` wants of the pointers it sees, planning anew each time another commit wins.

    No database connection is held while files are read or written.

    Raises:
        NoSuchNamespace: a name to be created lacks its namespace.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer; the new files stay.
    """
    attempts = max(1, catalog.rules.commit_attempts)
    planned: list[PlannedPut] = []
    first_planned: list[PlannedPut] = []
    for attempt in range(attempts):
        if attempt:
            telemetry.COMMIT_RETRIES.inc()
            catalog.pause(random.uniform(0.2, 1.0) * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt))  # noqa: S311 - back-off, not a secret
        try:
            planned = plan()
        except CommitFailed:
            telemetry.COMMITS.labels(kind="table", outcome="conflict").inc()
            raise
        first_planned = first_planned or planned
        wanted = [item for item in planned if item.metadata is not None]
        if not wanted:
            return _nothing_to_do(catalog, call, planned)
        staged = _stage_all(catalog, warehouse, wanted)
        unmoved = [Unmoved(item.seen) for item in planned if item.metadata is None and item.seen is not None]
        match _check_and_put(catalog, call, warehouse, wanted, staged, unmoved):
            case PutOutcome.ADVANCED:
                return _landed(catalog, warehouse, planned, dict(zip(map(id, wanted), staged, strict=True)))
            case PutOutcome.MOVED:
                for file in staged:
                    discard(catalog, warehouse, file)
            case PutOutcome.UNKNOWN:
                _confirm(catalog, warehouse, wanted, staged)
                return _landed(catalog, warehouse, planned, dict(zip(map(id, wanted), staged, strict=True)))
            case outcome:
                assert_never(outcome)
    telemetry.COMMITS.labels(kind="table", outcome="conflict").inc()
    raise _outrun(planned, first_planned, attempts)


def _outrun(planned: list[PlannedPut], first_planned: list[PlannedPut], attempts: int) -> PointerMoved:
    """Return the error of a commit that lost every race, with what is known of who won them."""
    error = PointerMoved(planned[0].identifier, attempts)
    for item, before in zip(planned, first_planned, strict=True):
        if item.seen != before.seen or len(planned) == 1:
            landed = None
            if isinstance(item.base, TableMetadata) and isinstance(before.base, TableMetadata):
                landed = landed_between(before.base, item.base)
            error.standing = standing_of(item.identifier, item.seen, landed)
            break
    return error


def _stage_all(catalog: Catalog, warehouse: Warehouse, wanted: list[PlannedPut]) -> list[StagedFile]:
    staged: list[StagedFile] = []
    try:
        for item in wanted:
            assert item.metadata is not None
            previous = item.seen.metadata_location if item.seen else None
            staged.append(stage(catalog, warehouse, item.metadata, previous))
    except IcetowerError:
        for file in staged:
            discard(catalog, warehouse, file)
        raise
    return staged


def _change_of(warehouse: Warehouse, item: PlannedPut, file: StagedFile) -> Advance | Creation:
    if item.seen is not None:
        return Advance(item.seen, file.location, file.metadata.uuid, expiry=item.expiry)
    return Creation(warehouse.id, item.kind, item.identifier, file.metadata.uuid, file.location)


def _check_and_put(
    catalog: Catalog,
    call: Call,
    warehouse: Warehouse,
    wanted: list[PlannedPut],
    staged: list[StagedFile],
    unmoved: list[Unmoved],
) -> PutOutcome:
    changes = [_change_of(warehouse, item, file) for item, file in zip(wanted, staged, strict=True)]
    claim = replace(call.claim, result=staged[0].location) if call.claim else None
    catalog.step("before_put")
    try:
        outcome = catalog.pointers.check_and_put([*changes, *unmoved], call.author(catalog.now_ms()), claim)
    except NameTaken:
        return PutOutcome.MOVED
    except IcetowerError:
        # Raised only when the transaction certainly did not happen.
        for file in staged:
            discard(catalog, warehouse, file)
        raise
    catalog.step("after_put")
    return outcome


def _confirm(
    catalog: Catalog, warehouse: Warehouse, wanted: list[PlannedPut], staged: list[StagedFile]
) -> None:
    """Find out whether a commit landed whose reply was lost; return if it did.

    All pointers were put in one transaction, so the first one tells for all.

    Raises:
        CommitStateUnknown: it did not, or it cannot be told; nothing is deleted.
    """
    first = wanted[0]
    try:
        if catalog.pointers.has_landed(_change_of(warehouse, first, staged[0])):
            return
    except IcetowerError as error:
        log.warning("could not confirm a commit of %s: %s", first.identifier, error)
    telemetry.COMMITS.labels(kind=first.kind.value, outcome="unknown").inc()
    raise CommitStateUnknown(
        f"Cannot tell whether the commit to {first.identifier} landed: the database did not answer. "
        "Nothing was deleted; reload it and see"
    )


def _nothing_to_do(catalog: Catalog, call: Call, planned: list[PlannedPut]) -> list[LoadedTable]:
    if call.claim is not None:
        seen = planned[0].seen
        catalog.idempotency_keys.record(call.claim, 200, seen.metadata_location if seen else "")
    return [_as_it_was(item) for item in planned]


def _as_it_was(item: PlannedPut) -> LoadedTable:
    assert item.base is not None
    assert item.seen is not None
    return LoadedTable(item.identifier, item.seen.metadata_location, item.base, item.base.to_json())


def _landed(
    catalog: Catalog, warehouse: Warehouse, planned: list[PlannedPut], staged: dict[int, StagedFile]
) -> list[LoadedTable]:
    """Answer for pointers that have moved: from here on nothing may fail the request."""
    answers: list[LoadedTable] = []
    for item in planned:
        file = staged.get(id(item))
        if file is None:
            answers.append(_as_it_was(item))
            continue
        catalog.metadata_files.keep(file.location, file.metadata, file.json)
        telemetry.COMMITS.labels(kind=item.kind.value, outcome="landed").inc()
        if item.seen is not None and isinstance(file.metadata, TableMetadata):
            _forget_old_files(catalog, warehouse, item, file.metadata)
        answers.append(LoadedTable(item.identifier, file.location, file.metadata, file.json))
    return answers


def _forget_old_files(
    catalog: Catalog, warehouse: Warehouse, item: PlannedPut, metadata: TableMetadata
) -> None:
    """Delete metadata files that the log has let go, if the table asks for it; failures are only logged."""
    if not bool_property(metadata.properties, DELETE_AFTER_COMMIT, default=False):
        return
    assert item.seen is not None
    assert isinstance(item.base, TableMetadata)
    kept = {entry.metadata_file for entry in metadata.metadata_log}
    doomed = [entry.metadata_file for entry in item.base.metadata_log if entry.metadata_file not in kept]
    try:
        # The same files registered under a second name are that table's history too, or its present.
        if not doomed or catalog.pointers.others_with_uuid(metadata.uuid, item.seen.id):
            return
        files = catalog.files_of(warehouse)
        for location in doomed:
            if is_allowed(catalog, warehouse, location):
                files.delete(location)
    except IcetowerError as error:
        log.warning("could not delete old metadata files of %s: %s", metadata.location, error)
