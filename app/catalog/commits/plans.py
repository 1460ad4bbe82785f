"""What becomes of one name by intentions: the one path that commits and dry runs take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Generic

from app.catalog.commits.files.foreign_files import foreign_of_registered
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base, D, Intention, Landed, Planned
from app.catalog.commits.landed_before import (
    check_never_landed,
    check_not_under_another_name,
    record_of_removal,
)
from app.catalog.commits.races import explain
from app.catalog.context.catalog import Catalog, find_and_read
from app.catalog.context.kinds import Kind, Loaded, M
from app.catalog.context.places.file_names import new_file_uuid
from app.catalog.context.places.locations import check_locations, has_place_alone
from app.catalog.context.places.table_places import claimed_places, homes_of, with_real_folders
from app.catalog.context.registrations import new_registration
from app.catalog.filesystem_tables.places import WarehouseTree
from app.catalog.filesystem_tables.rules import next_version_location
from app.catalog.manifests.table_manifests import readable_or_refused
from app.database.outcomes.receipt import LandedChange
from app.database.pointers.left_files import TakenIn
from app.database.pointers.moves import Advance, Creation
from app.database.pointers.pointer import Pointer
from app.engine.change.updates import AddSnapshot, Update
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SnapshotId, TableUuid, is_same_uuid
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.errors import (
    AlreadyExists,
    BadRequest,
    CommitFailed,
    CommitStateUnknown,
    IcetowerError,
    InvalidUpdate,
    NoSuchTable,
    NotAllowed,
    NotFound,
)
from app.fileio.locations import folder_name
from app.fileio.wanted import check_wanted
from app.formats.metadata.names import next_metadata_location


@dataclass(frozen=True, slots=True)
class Plan(Generic[M, D]):
    """What intentions make of one name together, one after the other."""

    base: Base[M]
    intentions: Sequence[Intention[M, D]]
    planned: Sequence[Planned[M, D] | None]
    """What each comes to; None for one that has been done already."""
    foreign: frozenset[str] = frozenset()
    """Folders outside the table's own places in which it names new files, as far as the guard has seen them."""

    @property
    def metadata(self) -> M | None:
        """The new metadata; None if nothing changes."""
        return next((item.metadata for item in reversed(self._changes)), None)

    @property
    def now(self) -> Base[M]:
        """What the next plan for this name builds on."""
        last = next(reversed(self._changes), None)
        return after(self.base, last)

    @property
    def changes(self) -> bool:
        """Whether anything changes."""
        return bool(self._changes)

    @property
    def updates(self) -> list[Update]:
        """All updates as they are applied, for the guard, and those that the server made."""
        found: list[Update] = []
        for intention, item in zip(self.intentions, self.planned, strict=True):
            found += intention.updates if item is None or item.rebase is None else item.rebase.updates
            found += () if item is None else item.updates
        return found

    @property
    def rebased(self) -> bool:
        """Whether the server has put snapshots on top of others than their client had seen."""
        return any(item.rebase is not None for item in self._changes)

    @property
    def change(self) -> LandedChange:
        """What a receipt says of it, without the locations, which are those of the whole commit."""
        before, now, identifier = self.base.metadata, self.metadata, self.base.identifier
        kind, last = self.base.kind.of_pointer, self.intentions[-1]
        event = last.created_as if self.base.found is None else last.advanced_as
        if not isinstance(now, TableMetadata):
            return LandedChange(kind, event, identifier.namespace.levels, identifier.name)
        known = before.snapshots_by_id if isinstance(before, TableMetadata) else {}
        added = takewhile(lambda item: item.snapshot_id not in known, reversed(now.snapshots))
        return LandedChange(
            kind,
            event,
            identifier.namespace.levels,
            identifier.name,
            snapshot_ids=tuple(snapshot.snapshot_id for snapshot in added)[::-1],
            current_snapshot_id=now.current_snapshot.snapshot_id if now.current_snapshot else None,
            rebased=self.rebased,
        )

    def stage(self, catalog: Catalog, files: StagedFiles) -> Staged[M, D]:
        """Write the new metadata file, unless it is there already or nothing changes.

        Raises:
            FilesUnavailable: the store does not answer, or refuses.
        """
        base, changes = self.base, self._changes
        if not changes:
            assert base.seen is not None
            present = base.present()
            seen = base.seen
            as_it_was = Loaded(
                base.identifier, seen.metadata_location, present, present.to_json(), seen.registration
            )
            return Staged(self, as_it_was, None)
        metadata, location = changes[-1].metadata, changes[-1].stored_at
        assert metadata is not None
        content = metadata.to_json()
        if not catalog.has_rows:
            return self._stage_version(catalog, metadata, content)
        if location is None:
            previous = base.seen.metadata_location if base.seen is not None else None
            file_uuid, codec = new_file_uuid(catalog.server), base.kind.default_codec
            location = next_metadata_location(
                metadata.location, metadata.properties, previous, file_uuid, codec
            )
            files.write_metadata(location, content, base.seen)
        move = self._move_to(catalog, location, metadata)
        loaded = Loaded(base.identifier, location, metadata, content, move.registration_after)
        return Staged(self, loaded, move)

    def _stage_version(self, catalog: Catalog, metadata: M, content: bytes) -> Staged[M, D]:
        """Name the file of a file-system table's next version: to create it is the move itself."""
        base = self.base
        assert self._changes[-1].stored_at is None, "nothing is registered where versions are files"
        folder = WarehouseTree(catalog.warehouse.root_location).folder_of(base.identifier)
        seen = base.seen.metadata_location if base.seen is not None else None
        location = next_version_location(folder, seen, base.metadata)
        move = replace(self._move_to(catalog, location, metadata), content=content)
        return Staged(self, Loaded(base.identifier, location, metadata, content), move)

    @property
    def event(self) -> str:
        """What pointer history calls it where the pointer advances."""
        return self.intentions[-1].advanced_as

    def _move_to(
        self, catalog: Catalog, location: Location, metadata: TableMetadata | ViewMetadata
    ) -> Advance | Creation:
        base, intention = self.base, self.intentions[-1]
        registration = new_registration() if any(item.stored_at for item in self._changes) else 0
        if any(item.is_read_only for item in self._changes):
            registration = -registration
        read_since_ms = next((item.read_since_ms for item in self._changes if item.stored_at), None)
        before = base.metadata if isinstance(base.metadata, TableMetadata | ViewMetadata) else None
        places = claimed_places(metadata, location, before)
        foreign = self.foreign
        if registration and isinstance(metadata, TableMetadata):
            foreign |= foreign_of_registered(metadata)
        if base.seen is None:
            kind, event = base.kind.of_pointer, intention.created_as
            is_alone = not registration and has_place_alone(catalog, metadata)
            alone = folder_name(metadata.location) if is_alone else None
            return Creation(
                catalog.warehouse.id,
                kind,
                base.identifier,
                metadata.uuid,
                location,
                event,
                with_real_folders(places),
                registration,
                read_since_ms,
                foreign,
                alone,
            )
        expiries = [item.expiry for item in self._changes if item.expiry is not None]
        assert len(expiries) <= 1, "a move of a pointer queues one expiry"
        if not registration:
            places -= homes_of(base.seen.metadata_location)  # There already: most commits add no place.
        expiry = next(iter(expiries), None) or record_of_removal(before, metadata)
        return Advance(
            base.seen,
            location,
            metadata.uuid,
            self.event,
            expiry,
            with_real_folders(places),
            registration,
            read_since_ms,
            foreign=foreign,
            taken_in=_together([item.taken_in for item in self._changes if item.taken_in is not None]),
        )

    @property
    def _changes(self) -> list[Planned[M, D]]:
        return [item for item in self.planned if item is not None and item.metadata is not None]


@dataclass(frozen=True, slots=True)
class Staged(Generic[M, D]):
    """A plan whose files are written."""

    plan: Plan[M, D]
    loaded: Loaded[M]
    """The table or view as it will be, or as it is if nothing changes."""
    move: Advance | Creation | None
    """The move of the pointer; None if nothing changes."""

    def results(self) -> list[Landed[M, D]]:
        """Return each intention's own result."""
        base, loaded = self.plan.base, self.loaded
        return [
            Landed(base, loaded, changed=False, detail=None)
            if item is None
            else Landed(base, loaded, item.metadata is not None, item.detail, item.rebase)
            for item in self.plan.planned
        ]


def _together(taken: Sequence[TakenIn]) -> TakenIn | None:
    if not taken:
        return None
    known = frozenset.intersection(*(each.known for each in taken))
    return TakenIn(min(each.looked_ms for each in taken), known)


class Names(Generic[M, D]):
    """The names that one attempt is about, and what is planned for each so far."""

    def __init__(self) -> None:
        self._plans: dict[TableIdentifier, Plan[M, D]] = {}
        self._files: list[StagedFiles] = []

    @property
    def plans(self) -> list[Plan[M, D]]:
        """One plan for each name."""
        return list(self._plans.values())

    def plan(
        self, catalog: Catalog, intentions: Sequence[Intention[M, D]], files: StagedFiles
    ) -> list[Plan[M, D]]:
        """Apply intentions to what is planned so far, and return one plan for each of their names.

        Raises:
            NotFound, AlreadyExists, CommitFailed, BadRequest: one of them is refused.
            CorruptMetadata: a current metadata file cannot be read.
            CommitStateUnknown: one is refused, and another one has landed earlier.
            Unavailable: the database or the store does not answer.
            GivenUp: the client has gone, or its time is over.
        """
        self.note_files(files)
        groups: dict[TableIdentifier, list[Intention[M, D]]] = {}
        for intention in intentions:
            groups.setdefault(intention.identifier, []).append(intention)
        try:
            return [self._plan_one(catalog, group, files) for group in groups.values()]
        except (NotFound, AlreadyExists, CommitFailed, BadRequest) as error:
            if len(intentions) > 1:
                check_no_part_has_landed(
                    ((intention, self.base_for(catalog, intention)) for intention in intentions), error
                )
            raise

    def base_for(self, catalog: Catalog, intention: Intention[M, D]) -> Base[M]:
        """Return what the next intention for its name builds on; raises like `load_base`."""
        earlier = self._plans.get(intention.identifier)
        base = (
            load_base(catalog, intention.kind, intention.identifier, reads=intention.reads_base)
            if earlier is None
            else earlier.now
        )
        # Not a method: plans would lead back to this, and what they hold stay until a garbage collection.
        return replace(base, staged=partial(_find_in, self._files))

    def _plan_one(
        self, catalog: Catalog, intentions: Sequence[Intention[M, D]], files: StagedFiles
    ) -> Plan[M, D]:
        base = self.base_for(catalog, intentions[0])
        planned: list[Planned[M, D] | None] = []
        now, added = base, set[SnapshotId]()
        for intention in intentions:
            check_wanted()
            note_added(intention, added)
            planned.append(apply(catalog, intention, now, files))
            now = after(now, planned[-1])
        if now.metadata is not None and now is not base:
            is_there = any(item is not None and item.stored_at is not None for item in planned)
            check_locations(catalog, base.identifier, now.metadata, base.metadata, is_there=is_there)
        return Plan(base, intentions, planned)

    def note_files(self, files: StagedFiles) -> None:
        """Note where manifests and lists are written that the next plans may have to read."""
        self._files.append(files)

    def keep(self, plan: Plan[M, D]) -> None:
        """Keep a plan: the next ones for its name build on it."""
        earlier = self._plans.get(plan.base.identifier)
        if earlier is not None:
            plan = Plan(
                earlier.base,
                [*earlier.intentions, *plan.intentions],
                [*earlier.planned, *plan.planned],
                earlier.foreign | plan.foreign,
            )
        self._plans[plan.base.identifier] = plan


def _find_in(staged: Sequence[StagedFiles], location: Location) -> bytes | None:
    found = (files.contents.get(location) for files in staged)
    return next((content for content in found if content is not None), None)


def note_added(intention: Intention[M, D], added: set[SnapshotId]) -> None:
    """Note the snapshots that one part of a transaction adds.

    Raises:
        InvalidUpdate: an earlier part adds the same one to its table. As if sent again it would count as landed.
    """
    ids = {item.snapshot.snapshot_id for item in intention.updates if isinstance(item, AddSnapshot)}
    for snapshot_id in sorted(ids & added):
        raise InvalidUpdate(
            f"Cannot add snapshot {snapshot_id} to {intention.identifier} twice in one transaction"
        )
    added |= ids


def check_no_part_has_landed(
    parts: Iterable[tuple[Intention[M, D], Base[M]]], refusal: IcetowerError
) -> None:
    """Check that no part of a refused transaction has landed, whose files clients then delete.

    Each part comes with its name as it was before the transaction: what an earlier part adds has not landed.

    Raises:
        CommitStateUnknown: one has landed, or may have.
    """
    for intention, base in parts:
        if _has_been_done(intention, base):
            raise CommitStateUnknown(
                f"A part of this transaction has landed before, the one of {intention.identifier}, and the "
                f"others may have, too: {refusal}. Nothing was changed or deleted"
            ) from refusal


def load_base(catalog: Catalog, kind: Kind[M], identifier: TableIdentifier, *, reads: bool = True) -> Base[M]:
    """Return a name as it is now.

    Raises:
        MetadataFileMissing, CorruptMetadata: its metadata file is gone, or cannot be read.
        FilesUnavailable: the store does not answer.
    """

    def read(found: Pointer | None) -> Base[M]:
        base: Base[M] = Base(kind, identifier, found, None)
        if not reads or base.seen is None:
            return base
        return replace(base, metadata=catalog.read(kind, base.seen))

    return find_and_read(lambda: catalog.find(identifier), read)[1]


@contextmanager
def refusals_explained(catalog: Catalog, base: Base[M], intention: Intention[M, D]) -> Iterator[None]:
    """Add to the refusal of an intention how its table was.

    Raises:
        CommitStateUnknown: instead of a refusal, if the intention may have landed earlier.
        CommitRefused: it needs a manifest list or a manifest that is damaged or gone.
    """
    try:
        with readable_or_refused(base.identifier):
            yield
    except (AlreadyExists, CommitFailed, BadRequest, NoSuchTable, NotAllowed) as error:
        explain_refusal(catalog, base, intention, error)
        raise


def explain_refusal(
    catalog: Catalog, base: Base[M], intention: Intention[M, D], refusal: IcetowerError
) -> None:
    """Add to a refusal how its table was.

    Raises:
        CommitStateUnknown: instead, if the intention may have landed earlier.
    """
    meant = intention.meant_for
    if meant is not None and (base.seen is None or not is_same_uuid(base.seen.uuid, meant)):
        for spelling in dict.fromkeys((meant, TableUuid(meant.lower()), TableUuid(meant.upper()))):
            check_not_under_another_name(catalog, base.identifier, spelling, intention.updates)
    check_never_landed(catalog, base, intention.updates, is_refused=True)
    if isinstance(refusal, CommitFailed):
        explain(refusal, base, intention.updates)


def apply(
    catalog: Catalog, intention: Intention[M, D], base: Base[M], files: StagedFiles
) -> Planned[M, D] | None:
    """Return what an intention makes of a base; None if it has been done already.

    Raises:
        NotFound, AlreadyExists, CommitFailed, BadRequest: it is refused.
        NotAllowed: the table or view belongs to another catalog.
        CommitStateUnknown: it may have landed earlier.
    """
    with refusals_explained(catalog, base, intention):
        if intention.needs_writable:
            try:
                base.check_writable()
            except NotAllowed:
                # It may have landed before the table became another catalog's, where its files are used now.
                if _has_been_done(intention, base):
                    return None
                raise
        planned = intention.apply(catalog, base, files) if intention.require(base) else None
    if planned is not None:
        if base.seen is None and intention.meant_for is not None:
            check_not_under_another_name(catalog, base.identifier, intention.meant_for, intention.updates)
        check_never_landed(catalog, base, intention.updates, is_refused=False)
    return planned


def _has_been_done(intention: Intention[M, D], base: Base[M]) -> bool:
    try:
        return not intention.require(base)
    except (AlreadyExists, BadRequest, CommitFailed, NotFound):
        return False


def after(base: Base[M], planned: Planned[M, D] | None) -> Base[M]:
    """Return what the next intention of the same commit builds on."""
    if planned is None or planned.metadata is None:
        return base
    return replace(base, metadata=planned.metadata, is_stored=False)
