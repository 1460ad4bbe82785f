"""Metadata files before a pointer names them: written, discarded after a lost race, kept when nobody knows."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from app.catalog.context import Catalog
from app.database.warehouses import Warehouse
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.errors import IcetowerError
from app.formats.metadata.names import next_metadata_location

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A metadata file that is durable but not yet pointed to."""

    location: Location
    metadata: TableMetadata | ViewMetadata
    json: bytes


def stage(
    catalog: Catalog, warehouse: Warehouse, metadata: TableMetadata | ViewMetadata, previous: Location | None
) -> StagedFile:
    """Write the next metadata file durably, under a name that no other commit can have.

    Raises:
        FilesUnavailable: the store does not answer, or refuses; nothing points to what it may have kept.
    """
    default_codec = "none" if isinstance(metadata, TableMetadata) else "gzip"
    location = next_metadata_location(
        metadata.location, metadata.properties, previous, catalog.new_uuid(), default_codec
    )
    content = metadata.to_json()
    catalog.step("before_write")
    catalog.metadata_files.write(catalog.files_of(warehouse), location, content)
    catalog.step("after_write")
    return StagedFile(location, metadata, content)


def discard(catalog: Catalog, warehouse: Warehouse, staged: StagedFile) -> None:
    """Delete a staged file that certainly nothing points to; a failure leaves an orphan, which harms nobody."""
    try:
        catalog.files_of(warehouse).delete(staged.location)
    except IcetowerError as error:
        log.warning("could not discard %s: %s", staged.location, error)
