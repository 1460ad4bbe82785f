"""What a metadata file says of its place in the history of its table or view."""

from __future__ import annotations

from app.engine.chains.verdicts import FoundTable, FoundView
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.fileio.locations import loose_place_of
from app.formats.metadata.names import file_system_version_of, version_of


def place_text(location: str) -> str:
    """Return one text for all spellings of a location."""
    return "/".join(loose_place_of(location))


def chain_facts(location: Location, metadata: TableMetadata | ViewMetadata) -> FoundTable | FoundView:
    """Return what a metadata file says, as `app.engine.chains` compares it."""
    if isinstance(metadata, TableMetadata):
        return _facts_of_table(location, metadata)
    log = tuple((entry.timestamp_ms, entry.version_id) for entry in metadata.version_log)
    return FoundView(place_text(location), location, metadata.uuid, log, version_of(location))


def _facts_of_table(location: Location, metadata: TableMetadata) -> FoundTable:
    current = metadata.current_snapshot
    return FoundTable(
        place_text(location),
        location,
        metadata.uuid,
        (
            metadata.last_sequence,
            metadata.last_column_id,
            metadata.last_partition_id or 0,
            metadata.next_row_id or 0,
        ),
        metadata.last_updated_ms,
        tuple(place_text(entry.metadata_file) for entry in metadata.metadata_log),
        Location(current.manifest_list) if current is not None and current.manifest_list else None,
        file_system_version_of(location),
    )
