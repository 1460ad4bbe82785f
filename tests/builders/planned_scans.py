"""Scans planned without HTTP: the pages as they are before they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from app.catalog.context.catalog import Catalog
from app.catalog.scans import planning as scans
from app.catalog.scans.planning import Completed, ScanPage, Submitted
from app.engine.change.updates import AddSnapshot, SetSnapshotRef, Update
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import SnapshotId
from app.engine.scan.scan_planner import PlannedFile
from app.engine.scan.scan_scope import ScanRequest
from app.formats.caches import BoundedCache
from tests.builders.catalogs import with_server
from tests.builders.commits import commit_table
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, load_table


def nothing_kept(catalog: Catalog) -> Catalog:
    return with_server(catalog, scan_answers=BoundedCache(0))


def noting_pages() -> tuple[list[ScanPage], Callable[[ScanPage], bytes]]:
    """Return pages as they are before they are written, and what they have to be written with."""
    pages: list[ScanPage] = []

    def write(page: ScanPage) -> bytes:
        pages.append(page)
        return b"{}"

    return pages, write


def files_of(page: ScanPage) -> list[PlannedFile]:
    """Return the files of a page, each as an object."""
    return [planned for run in page.files for planned in run]


def plan_scan(catalog: Catalog, identifier: TableIdentifier, request: ScanRequest) -> ScanPage | Submitted:
    """Plan a scan, and return the page as it is before it is written."""
    pages, write = noting_pages()
    outcome = scans.plan_scan(nothing_kept(catalog), identifier, request, write)
    return pages[0] if isinstance(outcome, Completed) else outcome


def expand_task(catalog: Catalog, identifier: TableIdentifier, token: str) -> ScanPage:
    """Expand a task, and return the page as it is before it is written."""
    pages, write = noting_pages()
    scans.expand_task(nothing_kept(catalog), identifier, token, write)
    return pages[0]


def names(page: ScanPage) -> list[str]:
    return [Path(planned.file.file_path).stem for planned in files_of(page)]


def page_of(outcome: ScanPage | Submitted) -> ScanPage:
    assert isinstance(outcome, ScanPage)
    return outcome


def append(catalog: Catalog, files: TableFiles, names: Sequence[str]) -> SnapshotId:
    """Add files in a manifest of their own."""
    metadata = load_table(catalog, DEPARTURES).metadata
    snapshot = files.snapshot(metadata, names)
    updates: list[Update] = [
        AddSnapshot(snapshot=snapshot),
        SetSnapshotRef(ref_name="main", snapshot_id=snapshot.snapshot_id, type="branch"),
    ]
    commit_table(catalog, DEPARTURES, [], updates)
    return snapshot.snapshot_id
