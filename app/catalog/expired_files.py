"""Deleting the files that only expired snapshots reached, in an order that can be resumed after a crash."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from app.catalog.commits import read_base
from app.catalog.context import Catalog
from app.catalog.expiry_records import ExpiryRecord
from app.catalog.locations import is_allowed
from app.catalog.table_manifests import CheckedManifests
from app.database.file_deletions import Deletion, FinalState
from app.database.warehouses import Warehouse
from app.engine.model.properties import GC_ENABLED, bool_property
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.reachability import FoundFile, Unreachable, unreachable_files
from app.errors import FilesUnavailable, IcetowerError, Unavailable
from app.fileio.files import FileIO
from app.fileio.locations import place_of

log = logging.getLogger(__name__)

BATCH = 256
"""So many files are deleted between two looks at the lease."""
WORKERS = 8
RENEWAL_SECONDS = 60.0


def delete_expired_files(
    catalog: Catalog, warehouse: Warehouse, deletion: Deletion, lease_ms: int
) -> FinalState:
    """Delete what only the snapshots of one expiry reached; tell whether it is done or the files are kept.

    What is reachable is asked of the table as it stands now, each time this runs. Nothing is deleted while
    another table has the same uuid, when the table has left the catalog, or when a remaining file that matters
    cannot be read. What one attempt could not delete is left for the next one.

    Args:
        lease_ms: for how long the entry in the queue is held anew, again and again.

    Raises:
        FilesUnavailable: a file could not be read or deleted; safe to try again.
        CorruptMetadata: the table's metadata cannot be read; nothing was deleted.
        MetadataFileMissing: the table's metadata is gone; nothing was deleted.
        InvalidMetadata: what the queue kept cannot be read; nothing was deleted.
    """
    assert deletion.pointer_id is not None
    assert deletion.expired is not None
    if catalog.pointers.others_with_uuid(deletion.uuid, deletion.pointer_id):
        return "kept"
    files = catalog.files_of(warehouse)
    current: TableMetadata | None = None
    pointer = catalog.pointers.find_locked(deletion.pointer_id)
    if pointer is not None and pointer.uuid == deletion.uuid:
        current = read_base(catalog, warehouse, pointer)
        if not bool_property(current.properties, GC_ENABLED, default=True):
            return "kept"
    elif not catalog.file_deletions.is_purged(deletion.uuid):
        # Whoever has the table now may know of more than the catalog does.
        return "kept"
    record = ExpiryRecord.from_json(deletion.expired)
    doomed = unreachable_files(
        record.expired,
        current,
        CheckedManifests(catalog, warehouse),
        level=record.cleanup,
        landed=_landed(catalog, files, deletion) if current is not None else None,
        place_of=place_of,
    )
    if doomed.obstacle is not None:
        log.warning("nothing is deleted after the expiry of %s: %s", deletion.identifier, doomed.obstacle)
        return "failed"
    for location in doomed.unreadable:
        log.warning("expiry of %s leaves %s and what it names: unreadable", deletion.identifier, location)
    _delete_all(catalog, warehouse, deletion, doomed, lease_ms)
    return "done"


def _landed(catalog: Catalog, files: FileIO, deletion: Deletion) -> TableMetadata | None:
    """Return the table as the expiry left it, if that file is still there."""
    try:
        return catalog.metadata_files.read_table(files, deletion.metadata_location)
    except Unavailable:
        raise
    except IcetowerError:
        return None


def _delete_all(
    catalog: Catalog, warehouse: Warehouse, deletion: Deletion, doomed: Unreachable, lease_ms: int
) -> None:
    """Delete group after group; a group is left behind only when all of it is gone."""
    files = catalog.files_of(warehouse)
    renew_at = time.monotonic() + RENEWAL_SECONDS

    def delete(item: FoundFile) -> IcetowerError | None:
        try:
            files.delete(item.location)
        except Unavailable as error:
            return error
        except IcetowerError as error:
            log.warning("expiry of %s cannot delete %s: %s", deletion.identifier, item.location, error)
        return None

    with ThreadPoolExecutor(WORKERS, "expired-files") as pool:
        for group, step in zip(doomed.groups, ("content", "manifests", "lists", "statistics"), strict=True):
            for batch in _batches(_allowed(catalog, warehouse, group)):
                failures = [failure for failure in pool.map(delete, batch) if failure is not None]
                if failures:
                    # What names these files must stay until they are gone.
                    raise FilesUnavailable(
                        f"{len(failures)} of {len(batch)} expired files could not be deleted: {failures[0]}"
                    ) from failures[0]
                if time.monotonic() >= renew_at:
                    catalog.file_deletions.renew(deletion.id, catalog.now_ms() + lease_ms)
                    renew_at = time.monotonic() + RENEWAL_SECONDS
            catalog.step(f"expired_{step}_deleted")
    log.info(
        "expiry of %s: deleted %s",
        deletion.identifier,
        ", ".join(f"{count} {kind}" for kind, count in _counts(doomed).items()) or "nothing",
    )


def _allowed(catalog: Catalog, warehouse: Warehouse, group: tuple[FoundFile, ...]) -> Iterator[FoundFile]:
    for item in group:
        if is_allowed(catalog, warehouse, item.location):
            yield item
        else:
            log.warning("expiry leaves %s alone: it is outside warehouse %s", item.location, warehouse.name)


def _batches(items: Iterator[FoundFile]) -> Iterator[list[FoundFile]]:
    while batch := list(islice(items, BATCH)):
        yield batch


def _counts(doomed: Unreachable) -> dict[str, int]:
    counts: dict[str, int] = {}
    for item in doomed:
        counts[item.kind.value] = counts.get(item.kind.value, 0) + 1
    return counts
