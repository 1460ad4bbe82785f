"""Forks: commits to a table that this database does not know."""

from __future__ import annotations

from collections.abc import Collection

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.file_names import mark_of
from app.catalog.context.places.locations import is_allowed
from app.catalog.exports.export_files import export_folder, list_exports, read_export
from app.engine.chains.verdicts import FoundTable
from app.engine.model.ids import Location, TableUuid
from app.engine.model.table_metadata import TableMetadata
from app.errors import FileMissing, InvalidLocation, InvalidMetadata, InvalidRequest, MetadataFileMissing
from app.fileio.files import files_in
from app.formats.metadata.chain_facts import chain_facts, place_text
from app.formats.metadata.names import is_metadata_file, metadata_folder
from app.formats.metadata.own_names import own_version

_STILL_AT_WORK_MS = 15 * 60_000
"""How long after a drop a commit that it has overtaken may still write, by another clock."""


def find_fork(
    catalog: Catalog, uuid: TableUuid, pointer_id: int | None, at: Location, metadata: TableMetadata
) -> Location | None:
    """Return the metadata file of a commit to a table that this database does not know.

    None if there is none. The file lies beside those of the table, and was built on one of them. A commit that lost a
    race leaves such a file, too, but it was built on a file that is known, no export names it, and this
    process has not answered that it landed.

    Args:
        catalog: the table's warehouse.
        uuid: the table's.
        pointer_id: its pointer, which may have been dropped.
        at: its metadata file here.
        metadata: what is in that file.

    Raises:
        FilesUnavailable, DatabaseUnavailable: safe to try again.
    """
    folder = metadata_folder(metadata.location, metadata.properties)
    history = None
    if uuid and pointer_id is not None and catalog.has_rows and is_allowed(catalog, folder):
        history = catalog.server.metadata_sweeps.known_files(pointer_id, uuid)
    if history is None:
        return None
    logged = (entry.metadata_file for entry in metadata.metadata_log)
    known = set(map(place_text, (at, *logged, *history.locations)))
    unknown = {
        place_text(file.location): file
        for file in files_in(catalog.files, Location(folder))
        # What is older than all that is known may have been the table's, wherever it was then.
        if is_metadata_file(file.location) and file.modified_ms >= history.since_ms
    }
    if unknown.keys() <= known:
        return None
    known |= _ancestors(catalog, metadata, unknown.keys())
    found = [_read(catalog, unknown[place].location) for place in sorted(unknown.keys() - known)]
    others = [(facts, of) for facts, of in filter(None, found) if of.uuid == uuid]
    losers = set[str]()
    for facts, of in others:
        if own_version(facts.location, mark_of(catalog.server)) is None:
            is_fork = not known.isdisjoint(facts.log) or of.last_updated_ms > metadata.last_updated_ms
        else:
            # Nothing is written any more for a commit that has found the table, a while after that was dropped.
            is_after_drop = history.dropped_ms is not None and (
                unknown[facts.place].modified_ms > history.dropped_ms + _STILL_AT_WORK_MS
            )
            is_fork = facts.parent is not None and (facts.parent not in known or is_after_drop)
            losers.add(facts.place)
        if is_fork:
            return facts.location
    landed = losers & catalog.server.landed_commits.lost
    if losers and not landed:
        landed = _exported_places(catalog, uuid) & losers
    return next((facts.location for facts, _ in others if facts.place in landed), None)


def fork_text(fork: Location) -> str:
    """Return a sentence about a commit that this database does not know."""
    return (
        f"{fork} is a commit to this table that this catalog does not have: another catalog commits to it too, or "
        "the database is an old backup, which icetower rebuild brings forward"
    )


def _ancestors(catalog: Catalog, metadata: TableMetadata, wanted: Collection[str]) -> set[str]:
    """Return what the files that the log of a table names have named in turn.

    The history does not have them where a rebuild has moved the pointer by many commits.
    """
    found, log = set[str](), metadata.metadata_log
    while log and not found.issuperset(wanted):
        earlier = _read(catalog, log[0].metadata_file)
        log = earlier[1].metadata_log if earlier is not None else ()
        places = {place_text(entry.metadata_file) for entry in log}
        if places <= found:
            break
        found |= places
    return found


def _read(catalog: Catalog, location: Location) -> tuple[FoundTable, TableMetadata] | None:
    try:
        metadata = catalog.server.metadata_files.read_either(catalog.files, location)
    except (MetadataFileMissing, InvalidMetadata, InvalidLocation):
        return None
    facts = chain_facts(location, metadata)
    return (
        (facts, metadata) if isinstance(metadata, TableMetadata) and isinstance(facts, FoundTable) else None
    )


def _exported_places(catalog: Catalog, uuid: TableUuid) -> set[str]:
    """Return where a table was at exports of this database, or of what it is a backup of."""
    folder, mark = (
        export_folder(catalog.warehouse.root_location, catalog.warehouse.name),
        mark_of(catalog.server).hex(),
    )
    places = set[str]()
    for file in list_exports(catalog.files, folder):
        if file.mark != mark:
            continue
        try:
            export = read_export(catalog.files, file.location)
        except (InvalidRequest, FileMissing):
            continue
        places |= {place_text(item.location) for item in export.pointers.values() if item.uuid == uuid}
    return places
