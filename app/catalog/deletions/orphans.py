"""Orphans of a table: finding them, marking them, and what became of marked ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import orjson

from app.catalog.context.catalog import Catalog, new_in_warehouse
from app.catalog.context.deletable import BATCH
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.orphan_reports import OrphanReport, report_of
from app.catalog.deletions.orphan_search import Orphans, OrphanWish, search_orphans
from app.database.deletions.orphan_runs import OrphanBatch, OrphanRun
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.errors import InvalidMetadata
from app.fileio.files import ListedFile
from app.recoveries import OrphansWait

SHOWN_RUNS = 20


def preview_orphans(catalog: Catalog, identifier: TableIdentifier, wish: OrphanWish) -> Orphans:
    """Return the orphans of a table, and change nothing.

    Raises:
        NoSuchTable: no table has this name.
        OrphansRefused: they are not looked for; says why.
        InvalidLocation: the location lies outside the table's places, or the list outside the warehouse.
        InvalidRequest: the list cannot be understood.
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: the metadata or a file cannot be read.
    """
    catalog.permit("mark_orphans", identifier)
    return search_orphans(catalog, *catalog.read_now(TABLES, identifier), wish)


def mark_orphans(catalog: Catalog, identifier: TableIdentifier, wish: OrphanWish) -> OrphanReport:
    """Mark the orphans of a table, to be deleted after a waiting time if they still are.

    Raises:
        NoSuchTable, NoSuchWarehouse: no table has this name, or none any more.
        OrphansRefused: they are not looked for; says why.
        OrphansWait: orphans of the table are marked already and wait.
        InvalidLocation: the location lies outside the table's places, or the list outside the warehouse.
        InvalidRequest: the list cannot be understood.
        IdempotencyKeyTaken: an equal request was faster.
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: the metadata or a file cannot be read.
        CommitStateUnknown: the database did not answer; nothing was deleted.
    """
    catalog.permit("mark_orphans", identifier)
    found = search_orphans(catalog, *catalog.read_now(TABLES, identifier), wish)
    if not found.files:
        report = report_of(found, dry_run=False)
        catalog.remember(200, report.to_json())
        return report
    server = catalog.server
    grace_ms = catalog.rules.orphan_grace_ms if wish.grace_ms is None else wish.grace_ms
    report = report_of(found, dry_run=False, deleted_after_ms=server.file_deletions.now_ms() + grace_ms)
    stored = report.to_json()
    server.step("orphans_found")
    with new_in_warehouse(catalog):
        is_marked = server.orphan_runs.mark(
            found.pointer,
            stored,
            grace_ms,
            catalog.now_ms(),
            _batches(found),
            catalog.caller.claim_of(stored),
        )
    if not is_marked:
        catalog.load(TABLES, identifier)  # It may have been dropped meanwhile.
        raise OrphansWait(identifier)
    server.step("orphans_marked")
    server.has_deletions.set()
    return report


def orphan_runs(catalog: Catalog, identifier: TableIdentifier) -> list[OrphanRun]:
    """Return what has become of the orphans of a table that were marked last, newest first.

    Raises:
        NoSuchTable: no table has this name.
    """
    catalog.permit("orphan_runs", identifier)
    return catalog.server.orphan_runs.of_table(catalog.load(TABLES, identifier).uuid, SHOWN_RUNS)


def files_of(batch: OrphanBatch) -> list[ListedFile]:
    """Return the files of a batch.

    Raises:
        InvalidMetadata: the row was not written by this server.
    """
    try:
        return [ListedFile(Location(where), size, at_ms) for where, size, at_ms in orjson.loads(batch.files)]
    except (ValueError, TypeError) as error:
        raise InvalidMetadata(f"Cannot read batch {batch.number} of marked orphans: {error}") from error


def _batches(found: Orphans) -> Iterator[OrphanBatch]:
    rest = iter(found.files.values())
    number = 0
    while files := list(islice(rest, BATCH)):
        size_bytes = sum(file.size_bytes for file in files)
        yield OrphanBatch(number, _json(files), len(files), size_bytes)
        number += 1


def _json(files: Sequence[ListedFile]) -> str:
    return orjson.dumps([(file.location, file.size_bytes, file.modified_ms) for file in files]).decode()
