"""What would become of a table as it is now by a commit: the one path that commits and dry runs take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.catalog.context import Catalog
from app.catalog.locations import check_locations
from app.database.file_deletions import QueuedExpiry
from app.database.pointers import Pointer, PointerKind
from app.database.warehouses import Warehouse
from app.engine.change.apply import apply_to_new, apply_updates
from app.engine.change.landed_since import LandedSince, landed_since
from app.engine.change.requirements import Report, Requirement, check_requirements, is_create, raise_refusal
from app.engine.change.updates import AddSnapshot, Update
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.errors import (
    CommitFailed,
    CorruptMetadata,
    IcetowerError,
    InvalidMetadata,
    LandedSnapshot,
    NoSuchTable,
    Standing,
    ViewExists,
)


@dataclass(frozen=True, slots=True)
class TableChange:
    """What one client wants of one table."""

    identifier: TableIdentifier
    requirements: Sequence[Requirement]
    updates: Sequence[Update]


@dataclass(frozen=True, slots=True)
class PlannedPut:
    """New metadata for one name, made from what was seen; `metadata` None when nothing is to be changed."""

    identifier: TableIdentifier
    kind: PointerKind
    seen: Pointer | None
    base: TableMetadata | ViewMetadata | None
    metadata: TableMetadata | ViewMetadata | None
    expiry: QueuedExpiry | None = None
    """Files that go out of reach, to be queued for deletion with the commit."""


class Refusals:
    """What becomes of the refusals that planning meets: the first one ends it.

    A dry run goes on instead, and takes notes.
    """

    def begin(self, change: TableChange, seen: Pointer | None, current: TableMetadata | None) -> None:
        """Take notice that the next refusals are of this change to the table as it stands."""

    def is_repetition(self) -> None:
        """Take notice that this change has landed already, so that nothing of it is looked at."""

    of_requirement: Report = staticmethod(raise_refusal)
    """Called after each requirement."""
    of_update: Report = staticmethod(raise_refusal)
    """Called after each update; returns whether to try the next one."""

    def of_all(self, error: IcetowerError) -> None:
        """Take the refusal of what all requirements and updates come to."""
        raise error


FIRST_ONE_ENDS_IT = Refusals()


def plan_table(
    catalog: Catalog,
    warehouse: Warehouse,
    identifier: TableIdentifier,
    changes: Sequence[TableChange],
    refusals: Refusals = FIRST_ONE_ENDS_IT,
) -> PlannedPut:
    """Return the metadata that all changes of one table make of it now; nothing is written.

    Raises:
        NoSuchTable: no table has this name.
        RequirementFailed: the table is not what a client built on.
        ViewExists: the table is to be created under a view's name.
        InvalidUpdate: an update cannot be applied.
        InvalidLocation: an update moves the table out of its warehouse.
        StaleUpdate: a snapshot was numbered before another commit landed.
        DanglingRef: a ref would lose its snapshot.
        CorruptMetadata: the current metadata file cannot be read.
    """
    now_ms = catalog.now_ms()
    seen = catalog.pointers.find(warehouse.id, identifier)
    base: TableMetadata | None = None
    if seen is not None and seen.kind is PointerKind.TABLE:
        base = read_base(catalog, warehouse, seen)
    current = base
    for change in changes:
        refusals.begin(change, seen, current)
        try:
            current = _changed(seen, base, current, change, now_ms, refusals)
        except CommitFailed as error:
            tell_standing(error, identifier, seen, current, change.updates)
            refusals.of_all(error)
        except IcetowerError as error:
            refusals.of_all(error)
    if current is None or current is base:
        return PlannedPut(identifier, PointerKind.TABLE, seen, base, None)
    try:
        check_locations(
            catalog,
            warehouse,
            current.location,
            current.properties,
            old_location=base.location if base else None,
            old_properties=base.properties if base else None,
        )
    except IcetowerError as error:
        refusals.of_all(error)
    return PlannedPut(identifier, PointerKind.TABLE, seen if base is not None else None, base, current)


def _changed(
    seen: Pointer | None,
    base: TableMetadata | None,
    current: TableMetadata | None,
    change: TableChange,
    now_ms: int,
    refusals: Refusals,
) -> TableMetadata | None:
    """Return what one change makes of a table."""
    if is_create(change.requirements):
        check_requirements(current, change.requirements, refusals.of_requirement)
        if current is None and seen is not None:
            raise ViewExists(f"View with same name already exists: {change.identifier}")
        return apply_to_new(change.updates, now_ms, refusals.of_update).finish(None)
    if current is None:
        raise NoSuchTable(change.identifier)
    if _is_repeated(current, change):
        refusals.is_repetition()
        return current
    check_requirements(current, change.requirements, refusals.of_requirement)
    draft = apply_updates(current, change.updates, now_ms, refusals.of_update)
    if not draft.has_changes:
        return current
    # Only the file that readers have seen goes into the metadata log, however many changes there are.
    return draft.finish(seen.metadata_location if seen is not None and current is base else None)


def _is_repeated(current: TableMetadata, change: TableChange) -> bool:
    """Tell whether this very change has landed already: a client or a proxy sent the request again.

    A snapshot id together with its manifest list can only come from the same commit. Refusing it would make
    the client delete files that the table uses.
    """
    added = [update.snapshot for update in change.updates if isinstance(update, AddSnapshot)]
    if not added:
        return False
    for snapshot in added:
        present = current.snapshots_by_id.get(snapshot.snapshot_id)
        if (
            present is None
            or present.manifest_list is None
            or present.manifest_list != snapshot.manifest_list
        ):
            return False
    return True


def read_base(catalog: Catalog, warehouse: Warehouse, pointer: Pointer) -> TableMetadata:
    """Return the metadata a pointer names.

    Raises:
        MetadataFileMissing: the file is gone.
        CorruptMetadata: the file is not table metadata.
        FilesUnavailable: the store does not answer.
    """
    try:
        return catalog.metadata_files.read_table(catalog.files_of(warehouse), pointer.metadata_location)
    except InvalidMetadata as error:
        raise CorruptMetadata(pointer.metadata_location, str(error)) from error


def tell_standing(
    error: CommitFailed,
    identifier: TableIdentifier,
    seen: Pointer | None,
    current: TableMetadata | None,
    updates: Sequence[Update] = (),
) -> None:
    """Let an error say how the table stood, and who came first, unless it says so already.

    Args:
        error: why the commit failed.
        identifier: the table.
        seen: its pointer.
        current: its metadata.
        updates: what the commit wanted to change.
    """
    if error.standing is None:
        landed = landed_since(current, updates, error) if current is not None else None
        error.standing = standing_of(identifier, seen, landed)


def standing_of(identifier: TableIdentifier, seen: Pointer | None, landed: LandedSince | None) -> Standing:
    """Return how a table stands, in the words of errors."""
    return Standing(
        namespace=identifier.namespace.levels,
        name=identifier.name,
        metadata_location=seen.metadata_location if seen else None,
        landed=None if landed is None else tuple(map(_landed, landed.snapshots)),
        landed_count=landed.count if landed else 0,
    )


def _landed(snapshot: Snapshot) -> LandedSnapshot:
    return LandedSnapshot(
        snapshot_id=snapshot.snapshot_id,
        operation=(snapshot.summary or {}).get("operation"),
        sequence_number=snapshot.sequence,
        timestamp_ms=snapshot.timestamp_ms,
    )
