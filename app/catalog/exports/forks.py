"""Forks: commits to a table that this database does not know."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.file_names import mark_of
from app.catalog.context.places.locations import is_allowed
from app.catalog.exports.export_files import export_folder, list_exports, read_export
from app.database.deletions.metadata_sweeps import KnownFiles
from app.database.pointers.pointer import Pointer
from app.engine.chains.verdicts import FoundTable, FoundView
from app.engine.chains.views import is_later, versions_after
from app.engine.model.ids import Location, TableUuid
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.errors import FileMissing, InvalidLocation, InvalidMetadata, InvalidRequest, MetadataFileMissing
from app.fileio.files import ListedFile, files_in
from app.formats.metadata.chain_facts import chain_facts, place_text
from app.formats.metadata.names import is_metadata_file, metadata_folder, version_of
from app.formats.metadata.own_names import own_version

CLOCKS_DIFFER_MS = 15 * 60_000
"""How much the clocks of a store and of a server may differ; S3 refuses requests beyond it.

Stores cut their times to whole seconds, too.
"""
_STILL_AT_WORK_MS = 15 * 60_000
"""How long after a drop a commit that it has overtaken may still write, by another clock."""


def find_fork(
    catalog: Catalog, uuid: TableUuid, pointer_id: int | None, at: Location, metadata: TableMetadata
) -> Location | None:
    """Return the last metadata file of commits to a table that this database does not know.

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
    seen = _seen(catalog, uuid, pointer_id, metadata)
    if seen is None:
        return None
    history, unknown = seen
    known = set(map(place_text, (at, *history.locations))) | _logged(metadata)
    if unknown.keys() <= known:
        return None
    early = {place for place, file in unknown.items() if file.modified_ms < history.since_ms}
    known |= _ancestors(catalog, metadata, unknown.keys() - early)
    began_at = history.began_at or at  # where that is not known, nothing is early
    began = _read(catalog, began_at) if early else None
    if began is not None:
        known |= _ancestors(catalog, began[1], early)
    found = [_read(catalog, unknown[place].location) for place in sorted(unknown.keys() - known)]
    others = [
        (facts, of)
        for facts, of in filter(None, found)
        # An early file may have lost a race where the table came from, unless it was built on what came here.
        if of.uuid == uuid and (facts.place not in early or place_text(began_at) in facts.log)
    ]
    losers, forks = set[str](), list[FoundTable]()
    for facts, of in others:
        if own_version(facts.location, mark_of(catalog.server)) is None:
            is_fork = not known.isdisjoint(facts.log) or of.last_updated_ms > metadata.last_updated_ms
        else:
            is_after_drop = _is_after_drop(history, unknown[facts.place])
            is_fork = facts.parent is not None and (facts.parent not in known or is_after_drop)
            losers.add(facts.place)
        if is_fork:
            forks.append(facts)
    landed = set[str]() if forks else _landed(catalog, uuid, losers)
    return _newest([*forks, *(facts for facts, _ in others if facts.place in landed)])


def find_view_fork(catalog: Catalog, pointer: Pointer, metadata: ViewMetadata) -> Location | None:
    """Return the last metadata file of commits to a view that this database does not know.

    As for a table. A view's file does not name the one that it was built on: its versions say which is later.

    Raises:
        FilesUnavailable, DatabaseUnavailable: safe to try again.
    """
    seen = _seen(catalog, pointer.uuid, pointer.id, metadata)
    if seen is None:
        return None
    history, listed = seen
    known = set(map(place_text, (pointer.metadata_location, *history.locations)))
    unknown = {place: file for place, file in listed.items() if place not in known}
    here = chain_facts(pointer.metadata_location, metadata)
    began = None if history.began_at is None else _read_view(catalog, history.began_at)
    beside = list[tuple[FoundView, ListedFile]]()
    assert isinstance(here, FoundView)
    for file in unknown.values():
        found = _read_view(catalog, file.location)
        if found is None or found.uuid != pointer.uuid:
            continue
        if file.modified_ms < history.since_ms and (began is None or not is_later(found, began)):
            continue  # as for a table
        if versions_after(found, here) or is_later(found, here):
            beside.append((found, file))
    forks, losers = list[FoundView](), list[FoundView]()
    for found, file in beside:
        is_own = own_version(file.location, mark_of(catalog.server)) is not None
        follows_one = any(is_later(found, other) for other, _ in beside)
        is_fork = not is_own or follows_one or _is_after_drop(history, file)
        (forks if is_fork else losers).append(found)
    landed = set[str]() if forks else _landed(catalog, pointer.uuid, {loser.place for loser in losers})
    return _newest([*forks, *(loser for loser in losers if loser.place in landed)])


def fork_text(fork: Location) -> str:
    """Return a sentence about a commit that this database does not know."""
    return (
        f"{fork} is a commit to this table that this catalog does not have: another catalog commits to it too, or "
        "the database is an old backup, which icetower rebuild brings forward"
    )


def _seen(
    catalog: Catalog, uuid: TableUuid, pointer_id: int | None, metadata: TableMetadata | ViewMetadata
) -> tuple[KnownFiles, dict[str, ListedFile]] | None:
    """Return what is known of a table or view, and the metadata files in its folder, by place.

    The folder comes first: of a commit there, its parent has landed and is known. The other way round, the second of
    two commits that land meanwhile would seem to be built on one that is not known.

    What is older than all that is known may have been the table's, wherever it was then. Where the pointer began, its
    first file is known: what was built on that one may seem a little older than its registration.
    """
    folder = Location(metadata_folder(metadata.location, metadata.properties))
    if not uuid or pointer_id is None or not catalog.has_rows or not is_allowed(catalog, folder):
        return None
    listed = [file for file in files_in(catalog.files, folder) if is_metadata_file(file.location)]
    history = catalog.server.metadata_sweeps.known_files(pointer_id, uuid)
    if history is None:
        return None
    since_ms = history.since_ms - (CLOCKS_DIFFER_MS if history.began_at is not None else 0)
    return history, {place_text(file.location): file for file in listed if file.modified_ms >= since_ms}


def _newest(forks: Sequence[FoundTable | FoundView]) -> Location | None:
    """Return the last one: who goes on from it has what is in the others."""
    last = max(
        forks, key=lambda facts: (facts.last_updated_ms, version_of(facts.location) or 0), default=None
    )
    return None if last is None else last.location


def _is_after_drop(history: KnownFiles, file: ListedFile) -> bool:
    """Say whether a file is too young for a commit that had found the table before its drop."""
    return history.dropped_ms is not None and file.modified_ms > history.dropped_ms + _STILL_AT_WORK_MS


def _landed(catalog: Catalog, uuid: TableUuid, losers: set[str]) -> set[str]:
    """Return those of some places that seem to have lost a race, and have landed all the same."""
    landed = losers & catalog.server.landed_commits.lost
    return landed or (losers & _exported_places(catalog, uuid) if losers else landed)


def _ancestors(catalog: Catalog, metadata: TableMetadata, wanted: Collection[str]) -> set[str]:
    """Return what the log of a table names, and what the files there have named in turn.

    The history does not have them where a rebuild has moved the pointer by many commits.

    Args:
        wanted: once it has all of these, it looks no further back.
    """
    found, log = _logged(metadata), metadata.metadata_log
    while log and not found.issuperset(wanted):
        earlier = _read(catalog, log[0].metadata_file)
        if earlier is None or _logged(earlier[1]) <= found:
            break
        log = earlier[1].metadata_log
        found |= _logged(earlier[1])
    return found


def _logged(metadata: TableMetadata) -> set[str]:
    return {place_text(entry.metadata_file) for entry in metadata.metadata_log}


def _read(catalog: Catalog, location: Location) -> tuple[FoundTable, TableMetadata] | None:
    metadata = _read_either(catalog, location)
    facts = None if metadata is None else chain_facts(location, metadata)
    return (
        (facts, metadata) if isinstance(metadata, TableMetadata) and isinstance(facts, FoundTable) else None
    )


def _read_view(catalog: Catalog, location: Location) -> FoundView | None:
    metadata = _read_either(catalog, location)
    facts = None if metadata is None else chain_facts(location, metadata)
    return facts if isinstance(facts, FoundView) else None


def _read_either(catalog: Catalog, location: Location) -> TableMetadata | ViewMetadata | None:
    """Return the metadata in a file; None if it is gone, or is none."""
    try:
        return catalog.server.metadata_files.read_either(catalog.files, location)
    except (MetadataFileMissing, InvalidMetadata, InvalidLocation):
        return None


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
