from __future__ import annotations

import pytest

from app.catalog.commits import commit_table
from app.catalog.conflict_checks import check_conflicts, conflicts_of_snapshot
from app.catalog.context import Catalog
from app.catalog.tables import load_table
from app.database.warehouses import Warehouse
from app.engine.conflicts.operations import Delete, RemovedFile
from app.engine.conflicts.report import ConflictKind
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import CorruptMetadata, FileMissing, InvalidLocation
from tests.builders.catalogs import CALL
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, append, table_in


@pytest.fixture
def files(catalog: Catalog, warehouse: Warehouse) -> TableFiles:
    """A table of two files."""
    table_in(catalog, warehouse)
    made = TableFiles(catalog.files_of(warehouse))
    commit(catalog, warehouse, made.snapshot(now(catalog, warehouse), ["a", "b"]))
    return made


def now(catalog: Catalog, warehouse: Warehouse) -> TableMetadata:
    metadata: TableMetadata = load_table(catalog, warehouse, DEPARTURES).metadata
    return metadata


def commit(catalog: Catalog, warehouse: Warehouse, snapshot: Snapshot) -> Snapshot:
    commit_table(catalog, CALL, warehouse, DEPARTURES, [], append(snapshot, "main"))
    return snapshot


def test_commit_that_lost_the_race_for_a_file(
    catalog: Catalog, warehouse: Warehouse, files: TableFiles
) -> None:
    base = now(catalog, warehouse)
    loser = files.snapshot(base, ["c"], ["a"])
    winner = commit(catalog, warehouse, files.snapshot(base, ["d"], ["a"]))

    report = conflicts_of_snapshot(catalog, warehouse, now(catalog, warehouse), loser)

    (conflict,) = report.conflicts
    assert conflict.kind is ConflictKind.MISSING_DATA_FILE
    assert conflict.snapshot_id == winner.snapshot_id
    assert conflict.file_path == TableFiles.data_path(base, "a")
    assert (report.base_snapshot_id, report.head_snapshot_id) == (
        base.current_snapshot_id,
        winner.snapshot_id,
    )
    assert not report.safe_to_reapply


def test_commit_that_lost_a_race_that_does_not_matter(
    catalog: Catalog, warehouse: Warehouse, files: TableFiles
) -> None:
    base = now(catalog, warehouse)
    blind, careful = files.snapshot(base, ["c"]), files.snapshot(base, ["d"], ["a"])
    winner = commit(catalog, warehouse, files.snapshot(base, ["e"], ["b"]))
    current = now(catalog, warehouse)

    for loser in (blind, careful):
        report = conflicts_of_snapshot(catalog, warehouse, current, loser)
        assert report.conflicts == ()
        assert report.safe_to_reapply
        assert [snapshot.snapshot_id for snapshot in report.since] == [winner.snapshot_id]


def test_commit_on_top_of_the_head(catalog: Catalog, warehouse: Warehouse, files: TableFiles) -> None:
    base = now(catalog, warehouse)

    report = conflicts_of_snapshot(catalog, warehouse, base, files.snapshot(base, ["c"], ["a"]))

    assert (report.conflicts, report.since, report.safe_to_reapply) == ((), (), True)


def test_files_of_a_commit_that_cannot_be_read(
    catalog: Catalog, warehouse: Warehouse, files: TableFiles
) -> None:
    base = now(catalog, warehouse)
    store = catalog.files_of(warehouse)
    loser = files.snapshot(base, ["c"], ["a"])
    no_list = loser.replace(manifest_list=Location(f"{base.location}/metadata/text.avro"))
    store.write_new(Location(f"{base.location}/metadata/text.avro"), b"no Avro")

    with pytest.raises(CorruptMetadata, match=r"text\.avro"):
        conflicts_of_snapshot(catalog, warehouse, base, no_list)
    with pytest.raises(InvalidLocation):
        conflicts_of_snapshot(
            catalog, warehouse, base, loser.replace(manifest_list=Location("memory://elsewhere/list.avro"))
        )
    with pytest.raises(FileMissing):
        conflicts_of_snapshot(
            catalog, warehouse, base, loser.replace(manifest_list=Location(f"{base.location}/metadata/none"))
        )


def test_nothing_is_written(catalog: Catalog, warehouse: Warehouse, files: TableFiles) -> None:
    base = now(catalog, warehouse)
    path = TableFiles.data_path(base, "a")
    commit(catalog, warehouse, files.snapshot(base, [], ["a"]))
    listed = sorted(file.location for file in catalog.files_of(warehouse).list_files(base.location))
    before = load_table(catalog, warehouse, DEPARTURES).location

    report = check_conflicts(
        catalog,
        warehouse,
        DEPARTURES,
        "main",
        base.current_snapshot_id,
        lambda _metadata: Delete(removed_files=(RemovedFile(path),), checks_existence=True),
    )

    assert report.would_conflict
    assert load_table(catalog, warehouse, DEPARTURES).location == before
    assert sorted(file.location for file in catalog.files_of(warehouse).list_files(base.location)) == listed
