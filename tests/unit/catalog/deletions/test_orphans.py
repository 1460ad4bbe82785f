"""Orphans of a table: which are found, marked and deleted, and what stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.deletions.orphan_search import OrphanWish
from app.catalog.deletions.orphans import mark_orphans, orphan_runs, preview_orphans
from app.catalog.deletions.queue import work_off_one
from app.engine.model.ids import Location
from app.fileio.local import LocalFiles
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, append, commit_to, load_table, table_in

DAY_S = 24 * 3600.0


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    server = server_on(f"sqlite:///{tmp_path}/icetower.db", LocalFiles())
    return new_warehouse(server, root=f"file://{tmp_path}/wh")


def write_old(location: str, *, days: float = 10) -> str:
    """Write a file that is some days old."""
    LocalFiles().write_new(Location(location), b"junk")
    make_old(location, days)
    return location


def make_old(location: str, days: float = 10) -> None:
    path = Path(location.removeprefix("file://"))
    then = path.stat().st_mtime - days * DAY_S
    os.utime(path, (then, then))


def table_with_history(catalog: Catalog) -> str:
    """Make a table of three snapshots whose files are ten days old, and return its location."""
    table_in(catalog)
    files = TableFiles(LocalFiles())
    for name in ("a", "b", "c"):
        made = files.snapshot(load_table(catalog).metadata, [name])
        commit_to(catalog, *append(made))
    location = load_table(catalog).metadata.location
    for file in LocalFiles().list_files(location):
        make_old(file.location)
    return location


def found(catalog: Catalog, **wish: object) -> set[str]:
    return {file.location for file in preview_orphans(catalog, DEPARTURES, OrphanWish(**wish)).files.values()}  # type: ignore[arg-type]


def work_off(catalog: Catalog) -> None:
    while work_off_one(catalog.server):
        pass


def test_what_nothing_reaches_is_found(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/junk.parquet")
    write_old(f"{location}/data/young.parquet", days=2)

    assert found(catalog) == {orphan}


def test_marked_orphans_are_deleted_and_nothing_else(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    before = {file.location for file in LocalFiles().list_files(Location(location))}
    write_old(f"{location}/data/junk.parquet")
    write_old(f"{location}/metadata/junk-m0.avro")

    report = mark_orphans(catalog, DEPARTURES, OrphanWish())
    work_off(catalog)

    assert report.orphan_files == 2
    assert {file.location for file in LocalFiles().list_files(Location(location))} == before
    (run,) = orphan_runs(catalog, DEPARTURES)
    assert (run.state, run.deleted_files, run.deleted_bytes, run.kept_files) == ("done", 2, 8, 0)
