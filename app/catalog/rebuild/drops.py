"""What could come back before the database was lost: it still can, and as long."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS, Kind
from app.catalog.context.places.locations import is_allowed
from app.catalog.context.places.table_places import claimed_places, with_real_folders
from app.catalog.context.registrations import new_registration
from app.catalog.exports.export_files import ExportedDrop
from app.database.dropped import Dropped
from app.database.pointers.pointer import Pointer, PointerKind
from app.engine.model.data_types.moments import moment_text
from app.engine.model.identifiers import TableIdentifier, check_identifier, check_namespace
from app.engine.model.ids import TableUuid
from app.errors import (
    CorruptMetadata,
    FilesBeingDeleted,
    InvalidLocation,
    InvalidMetadata,
    InvalidName,
    MetadataFileMissing,
)

log = logging.getLogger(__name__)
_UNREADABLE = CorruptMetadata, InvalidLocation, InvalidMetadata, MetadataFileMissing


@dataclass(frozen=True, slots=True)
class DropToNote:
    """A drop that the database is to know of again."""

    entry: Dropped
    places: frozenset[str]
    """Folders where a table keeps files."""
    read_since_ms: int
    """When reading its metadata began, by the database's clock."""


def drops_to_note(
    catalog: Catalog, drops: Collection[ExportedDrop], present: Collection[str]
) -> Iterator[DropToNote]:
    """Yield what can be noted as dropped again; what cannot come back any more is left out.

    Args:
        catalog: the warehouse.
        drops: what an export says.
        present: uuids of what is there, or will be.

    Raises:
        FilesUnavailable: the store does not answer.
    """
    for drop in drops:
        if drop.uuid and drop.uuid in present:
            continue
        since_ms = catalog.server.file_deletions.now_ms()
        try:
            places = _places_of(catalog, drop)
            entry = _entry_of(catalog, drop)
        except (*_UNREADABLE, InvalidName) as error:
            log.warning("%s cannot come back any more: %s", drop.name or drop.namespace, error)
            continue
        yield DropToNote(entry, places, since_ms)


def note_drop(catalog: Catalog, drop: DropToNote) -> None:
    """Note something as dropped, so that it can come back; may be done again.

    Raises:
        DatabaseUnavailable, CommitStateUnknown: do it again.
    """
    # Files that are being deleted cannot come back.
    with contextlib.suppress(FilesBeingDeleted):
        catalog.server.dropped.remember(drop.entry, drop.places, drop.read_since_ms)


def drop_text(drop: ExportedDrop) -> str:
    """Return who dropped something, when, and until when it can come back."""
    return (
        f"{drop.principal} dropped it at {moment_text(drop.dropped_ms)}; "
        f"undrop brings it back until {moment_text(drop.until_ms)}"
    )


def _places_of(catalog: Catalog, drop: ExportedDrop) -> frozenset[str]:
    """Return the folders of a table or view, or raise what says that it cannot be read."""
    if drop.location is None:
        return frozenset()
    if not is_allowed(catalog, drop.location):
        raise InvalidLocation(f"{drop.location} is outside the warehouse")
    kind: Kind[Any] = TABLES if drop.kind == PointerKind.TABLE else VIEWS
    metadata = catalog.read_file(kind, drop.location)
    if metadata.uuid != drop.uuid or not is_allowed(catalog, metadata.location):
        raise InvalidMetadata(f"{drop.location} is of another {drop.kind}, or of one outside the warehouse")
    return with_real_folders(claimed_places(metadata, drop.location))


def _entry_of(catalog: Catalog, drop: ExportedDrop) -> Dropped:
    pointer = None
    if drop.name is None or drop.location is None:
        check_namespace(drop.namespace)
    else:
        registration = new_registration()
        pointer = Pointer(
            0,
            catalog.warehouse.id,
            PointerKind(drop.kind),
            check_identifier(TableIdentifier(drop.namespace, drop.name)),
            drop.uuid or TableUuid(""),
            drop.location,
            -registration if drop.is_read_only else registration,
        )
    return Dropped(
        id=0,
        warehouse_id=catalog.warehouse.id,
        kind=drop.kind,
        namespace=drop.namespace,
        name=drop.name,
        pointer=pointer,
        properties=drop.properties,
        created_ms=drop.created_ms,
        dropped_ms=drop.dropped_ms,
        until_ms=drop.until_ms,
        principal=drop.principal,
        request_id=drop.request_id,
        # Not as it was: it may have come back after the export, and then its files are in use elsewhere, or wanted.
        purge=False,
    )
