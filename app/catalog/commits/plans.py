"""What becomes of one name by intentions: the one path that commits and dry runs take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic

from app.catalog.commits.intentions import Base, D, Intention, Landed, Planned
from app.catalog.commits.races import explain
from app.catalog.commits.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog, find_and_read
from app.catalog.context.kinds import Kind, Loaded, M
from app.catalog.context.locations import check_locations
from app.database.pointers.moves import Advance, Creation
from app.database.pointers.pointer import Pointer
from app.engine.change.updates import Update
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.errors import CommitFailed
from app.formats.metadata.names import next_metadata_location


@dataclass(frozen=True, slots=True)
class Plan(Generic[M, D]):
    """What intentions make of one name together, one after the other."""

    base: Base[M]
    intentions: Sequence[Intention[M, D]]
    planned: Sequence[Planned[M, D] | None]
    """What each comes to; None for one that has been done already."""

    @property
    def metadata(self) -> M | None:
        """The new metadata; None if nothing changes."""
        return next((item.metadata for item in reversed(self._changes)), None)

    @property
    def updates(self) -> list[Update]:
        """The updates of all intentions, for the guard."""
        return [update for intention in self.intentions for update in intention.updates]

    def stage(self, catalog: Catalog, files: StagedFiles) -> Staged[M, D]:
        """Write the new metadata file, unless it is there already or nothing changes.

        Raises:
            FilesUnavailable: the store does not answer, or refuses.
        """
        base, changes = self.base, self._changes
        if not changes:
            assert base.seen is not None
            present = base.present()
            as_it_was = Loaded(base.identifier, base.seen.metadata_location, present, present.to_json())
            return Staged(self, as_it_was, None)
        metadata, location = changes[-1].metadata, changes[-1].stored_at
        assert metadata is not None
        content = metadata.to_json()
        if location is None:
            previous = base.seen.metadata_location if base.seen is not None else None
            file_uuid, codec = catalog.server.new_uuid(), base.kind.default_codec
            location = next_metadata_location(
                metadata.location, metadata.properties, previous, file_uuid, codec
            )
            files.write_metadata(location, content)
        move = self._move_to(catalog, location, metadata.uuid)
        return Staged(self, Loaded(base.identifier, location, metadata, content), move)

    def _move_to(self, catalog: Catalog, location: Location, uuid: TableUuid) -> Advance | Creation:
        base, intention = self.base, self.intentions[-1]
        if base.seen is not None:
            expiries = [item.expiry for item in self._changes if item.expiry is not None]
            assert len(expiries) <= 1, "a move of a pointer queues one expiry"
            return Advance(base.seen, location, uuid, intention.advanced_as, next(iter(expiries), None))
        kind = base.kind.of_pointer
        return Creation(catalog.warehouse.id, kind, base.identifier, uuid, location, intention.created_as)

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
            else Landed(base, loaded, changed=item.metadata is not None, detail=item.detail)
            for item in self.plan.planned
        ]

    def remembered(self, *, changed: bool) -> str:
        """Return what is left for a repeated request under an Idempotency-Key."""
        assert self.loaded.location is not None
        return self.plan.intentions[0].remembered_as(self.loaded.location, changed=changed)


def by_name(intentions: Sequence[Intention[M, D]]) -> list[list[Intention[M, D]]]:
    """Return intentions grouped by the name that they are about, each group in their order."""
    groups: dict[TableIdentifier, list[Intention[M, D]]] = {}
    for intention in intentions:
        groups.setdefault(intention.identifier, []).append(intention)
    return list(groups.values())


def plan_group(catalog: Catalog, intentions: Sequence[Intention[M, D]], files: StagedFiles) -> Plan[M, D]:
    """Find and read one name, and apply intentions to it one after the other.

    Raises:
        NotFound, AlreadyExists, CommitFailed, BadRequest: one of them is refused.
        CorruptMetadata: the current metadata file cannot be read.
        Unavailable: the database or the store does not answer.
    """
    first = intentions[0]
    base = load_base(catalog, first.kind, first.identifier, reads=first.reads_base)
    planned: list[Planned[M, D] | None] = []
    now = base
    for intention in intentions:
        planned.append(apply(catalog, intention, now, files))
        now = after(now, planned[-1])
    if now.metadata is not None and now is not base:
        check_locations(catalog, now.metadata, base.metadata)
    return Plan(base, intentions, planned)


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


def apply(
    catalog: Catalog, intention: Intention[M, D], base: Base[M], files: StagedFiles
) -> Planned[M, D] | None:
    """Return what an intention makes of a base; None if it has been done already.

    Raises:
        NotFound, AlreadyExists, CommitFailed, BadRequest: it is refused.
    """
    try:
        return intention.apply(catalog, base, files) if intention.require(base) else None
    except CommitFailed as error:
        explain(error, base, intention.updates)
        raise


def after(base: Base[M], planned: Planned[M, D] | None) -> Base[M]:
    """Return what the next intention of the same commit builds on."""
    if planned is None or planned.metadata is None:
        return base
    return replace(base, metadata=planned.metadata, is_stored=False)
