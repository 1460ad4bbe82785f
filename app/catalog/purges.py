"""Working off the queue of file deletions, and purging: what only a dropped table reached goes, in resumable order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from app import telemetry
from app.catalog.context import Catalog
from app.catalog.expired_files import delete_expired_files
from app.catalog.locations import check_location, is_allowed
from app.database.file_deletions import Deletion, FinalState
from app.database.warehouses import Warehouse
from app.engine.model.ids import Location
from app.engine.model.properties import GC_ENABLED, bool_property
from app.engine.model.table_metadata import TableMetadata
from app.errors import FileMissing, IcetowerError, InvalidMetadata, MetadataFileMissing, Unavailable
from app.fileio.files import FileIO
from app.formats.manifests.paths import content_files_of, manifests_of

log = logging.getLogger(__name__)

LEASE_MS = 10 * 60_000
FIRST_RETRY_MS = 30_000
LONGEST_RETRY_MS = 3_600_000
MAX_ATTEMPTS = 50


def work_off_one(catalog: Catalog) -> bool:
    """Delete the files of one dropped table, or of one expiry; tell whether there was one to do.

    What was deleted before a crash is simply absent the next time. Files outside the warehouse, and files
    that a table registered under a second name may still need, are never touched.

    Raises:
        DatabaseUnavailable: the queue cannot be read.
    """
    deletion = catalog.file_deletions.lease(catalog.now_ms(), LEASE_MS)
    if deletion is None:
        return False
    try:
        state = _work_off(catalog, deletion)
    except Unavailable as error:
        _try_later(catalog, deletion, str(error))
        return True
    except IcetowerError as error:
        log.warning(
            "%s of %s stopped: %s; what it had not deleted stays", deletion.kind, deletion.identifier, error
        )
        catalog.file_deletions.finish(deletion.id, "failed", catalog.now_ms())
        telemetry.FILE_DELETIONS.labels(outcome="failed").inc()
        return True
    catalog.file_deletions.finish(deletion.id, state, catalog.now_ms())
    telemetry.FILE_DELETIONS.labels(outcome=state).inc()
    log.info("%s of %s: %s", deletion.kind, deletion.identifier, state)
    return True


def _try_later(catalog: Catalog, deletion: Deletion, reason: str) -> None:
    if deletion.attempts >= MAX_ATTEMPTS:
        log.error(
            "%s of %s given up after %d attempts: %s",
            deletion.kind,
            deletion.identifier,
            deletion.attempts,
            reason,
        )
        catalog.file_deletions.finish(deletion.id, "failed", catalog.now_ms())
        telemetry.FILE_DELETIONS.labels(outcome="failed").inc()
        return
    wait_ms = min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(deletion.attempts, 10))
    catalog.file_deletions.postpone(deletion.id, reason, catalog.now_ms() + wait_ms)
    telemetry.FILE_DELETIONS.labels(outcome="postponed").inc()


def _work_off(catalog: Catalog, deletion: Deletion) -> FinalState:
    warehouse = next((item for item in catalog.warehouses.list() if item.id == deletion.warehouse_id), None)
    if warehouse is None:
        raise InvalidMetadata("its warehouse is gone, so nobody knows how to reach the files")
    if deletion.kind == "expire":
        return delete_expired_files(catalog, warehouse, deletion, LEASE_MS)
    return _purge(catalog, warehouse, deletion)


def _purge(catalog: Catalog, warehouse: Warehouse, deletion: Deletion) -> FinalState:
    if catalog.pointers.others_with_uuid(deletion.uuid):
        return "kept"
    files = catalog.files_of(warehouse)
    try:
        metadata = catalog.metadata_files.read_table(files, deletion.metadata_location)
    except MetadataFileMissing:
        # The current metadata file is deleted last, so an earlier attempt got through everything.
        return "done"
    if not bool_property(metadata.properties, GC_ENABLED, default=True):
        return "kept"

    def check(location: Location) -> None:
        check_location(catalog, warehouse, location, "manifest of a purged table")

    for _ in reachable_files(files, metadata, check):
        pass  # What cannot be read is found before anything is deleted.
    for location in reachable_files(files, metadata, check):
        _delete(catalog, warehouse, files, location)
    _delete(catalog, warehouse, files, deletion.metadata_location)
    return "done"


def _delete(catalog: Catalog, warehouse: Warehouse, files: FileIO, location: Location) -> None:
    if not is_allowed(catalog, warehouse, location):
        log.warning("purge leaves %s alone: it is outside warehouse %s", location, warehouse.name)
        return
    files.delete(location)


def reachable_files(
    files: FileIO, metadata: TableMetadata, check: Callable[[Location], None]
) -> Iterator[Location]:
    """Yield every file that a table reaches, each before the file that names it.

    A consumer that deletes as it goes can therefore stop anywhere and start again: as long as a file is
    there, what names it is there too. A manifest that is already gone was deleted after all it named.

    Args:
        check: asked before a manifest list or manifest is read; raises if it must not be.

    Raises:
        InvalidMetadata: a manifest list or manifest cannot be read.
        FilesUnavailable: the store does not answer.
    """
    yielded: set[Location] = set()
    for snapshot in metadata.snapshots:
        if snapshot.manifest_list is not None:
            check(snapshot.manifest_list)
        try:
            manifests = manifests_of(files, snapshot)
        except FileMissing:
            continue
        for manifest in manifests:
            if manifest in yielded:
                continue
            check(manifest)
            try:
                content = list(content_files_of(files, manifest))
            except FileMissing:
                content = []
            yield from content
            yield manifest
            yielded.add(manifest)
        if snapshot.manifest_list is not None:
            yield snapshot.manifest_list
    yield from (item.statistics_path for item in metadata.statistics)
    yield from (item.statistics_path for item in metadata.partition_statistics)
    for entry in metadata.metadata_log:
        yield entry.metadata_file
