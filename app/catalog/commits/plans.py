"""What becomes of one name by intentions: the one path that commits and dry runs take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic

from app.catalog.commits.intentions import Base, D, Intention, Landed, Planned
from app.catalog.commits.races import explain
from app.catalog.commits.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import Kind, Loaded, M
from app.catalog.context.locations import check_locations
from app.database.pointers import Advance, Creation
from app.engine.change.updates import Update
from app.engine.model.identifiers import TableIdentifier
from app.errors import CommitFailed
from app.formats.metadata_names import next_metadata_location


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

    def stage(self, catalog: Catalog, files: StagedFiles) -> Loaded[M] | None:
        """Write the new metadata file, unless it is there already; None if nothing changes.

        Raises:
            FilesUnavailable: the store does not answer, or refuses.
        """
        if not self._changes:
            return None
        last = self._changes[-1]
        metadata, location = last.metadata, last.stored_at
        assert metadata is not None
        content = metadata.to_json()
        if location is None:
            previous = self.base.seen.metadata_location if self.base.seen is not None else None
            location = next_metadata_location(
                metadata.location,
                metadata.properties,
                previous,
                catalog.server.new_uuid(),
                self.base.kind.default_codec,
            )
            files.write_metadata(location, content)
        return Loaded(self.base.identifier, location, metadata, content)

    def move_to(self, catalog: Catalog, loaded: Loaded[M]) -> Advance | Creation:
        """Return the move of the pointer to what was staged."""
        base, intention = self.base, self.intentions[-1]
        assert loaded.location is not None
        location, uuid = loaded.location, loaded.metadata.uuid
        if base.seen is not None:
            expiry = next((item.expiry for item in self._changes if item.expiry is not None), None)
            return Advance(base.seen, location, uuid, intention.advanced_as, expiry)
        kind = base.kind.of_pointer
        return Creation(catalog.warehouse.id, kind, base.identifier, uuid, location, intention.created_as)

    def landed(self, loaded: Loaded[M]) -> list[Landed[M, D]]:
        """Return each intention's own result."""
        return [
            Landed(self.base, loaded, changed=False, detail=None)
            if item is None
            else Landed(self.base, loaded, changed=item.metadata is not None, detail=item.detail)
            for item in self.planned
        ]

    def as_it_was(self) -> Loaded[M]:
        """Return the table or view as it was, for a plan that changes nothing."""
        assert self.base.seen is not None
        metadata = self.base.present()
        return Loaded(self.base.identifier, self.base.seen.metadata_location, metadata, metadata.to_json())

    @property
    def _changes(self) -> list[Planned[M, D]]:
        return [item for item in self.planned if item is not None and item.metadata is not None]


def plan(catalog: Catalog, intentions: Sequence[Intention[M, D]], files: StagedFiles) -> Plan[M, D]:
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
        MetadataFileMissing: its metadata file is gone.
        CorruptMetadata: its metadata file cannot be read.
        FilesUnavailable: the store does not answer.
    """
    base: Base[M] = Base(kind, identifier, catalog.find(identifier), None)
    if not reads or base.seen is None:
        return base
    return replace(base, metadata=catalog.read(kind, base.seen))


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
