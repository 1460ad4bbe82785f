"""Where a commit names files outside its table's own places: they may be another table's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from app.catalog.context.places.table_places import is_in_places
from app.database.pointers.foreign_files import ANYWHERE, UNSEEN
from app.engine.change.updates import AddSnapshot, SetPartitionStatistics, SetStatistics, Update
from app.engine.guard.foreign_files import ForeignFiles, few_folders
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.reachability import statistics_of
from app.errors import InvalidLocation
from app.fileio.links import real_location
from app.fileio.locations import folder_around

MOST_FOLDERS = 16
"""How many folders one commit notes; more become their parents."""


def brings_files(update: Update) -> bool:
    """Say whether an update may name files that the table has not named before."""
    return isinstance(update, AddSnapshot | SetStatistics | SetPartitionStatistics)


def foreign_files(
    base: TableMetadata | None, after: TableMetadata, updates: Sequence[Update]
) -> ForeignFiles:
    """Return the statistics among a commit's foreign files; the guard adds those of snapshots."""
    states = [after] if base is None else [base, after]
    foreign = ForeignFiles(is_in_places((), *states))
    if not all(isinstance(update, AddSnapshot) for update in updates if brings_files(update)):
        for file in statistics_of(after):
            foreign.add(file.location)
    return foreign


def folders_to_note(foreign: ForeignFiles) -> frozenset[str]:
    """Return what is noted of a table that names these files: mostly nothing."""
    known = set[str]()
    is_known = foreign.is_known
    for folder in foreign.folders:
        try:
            known.update(folder_around(f"{each}/_") for each in (folder, real_location(folder)))
            if folder.startswith("/"):
                # Clients of Hadoop take it for a path in their own file system, which may be HDFS.
                known.add(folder_around(f"hdfs://{folder}/_"))
        except InvalidLocation:
            is_known = False
    few = few_folders(known, MOST_FOLDERS) if known else frozenset()
    if foreign.is_unseen:
        return few | {UNSEEN}
    return few if is_known else few | {ANYWHERE}


def foreign_of_registered(metadata: TableMetadata) -> frozenset[str]:
    """Return what is noted of metadata made elsewhere: nothing if it names no files.

    Where its lists and statistics are, it says itself; what they name, only a look shows.
    """
    if not metadata.snapshots and not any(statistics_of(metadata)):
        return frozenset()
    foreign = ForeignFiles(is_in_places((), metadata), is_known=False)
    for location in (*_lists_of(metadata.snapshots), *(file.location for file in statistics_of(metadata))):
        foreign.add(location)
    return folders_to_note(foreign)


def add_lists(foreign: ForeignFiles, updates: Sequence[Update]) -> None:
    """Note the manifest lists of new snapshots, which the request names itself."""
    for location in _lists_of([update.snapshot for update in updates if isinstance(update, AddSnapshot)]):
        foreign.add(location)


def _lists_of(snapshots: Iterable[Snapshot]) -> Iterator[str]:
    """Yield manifest lists, or the manifests of snapshots that have none."""
    for snapshot in snapshots:
        if snapshot.manifest_list is not None:
            yield snapshot.manifest_list
        yield from snapshot.manifests or ()
