from __future__ import annotations

import pytest

from app.catalog.commits.conflict_checks import check_conflicts, conflicts_of_snapshot
from app.catalog.context.catalog import Catalog
from app.engine.conflicts.operations import Delete, RemovedFile
from app.engine.conflicts.report import ConflictKind
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import CorruptMetadata, FileMissing, InvalidLocation
from tests.builders.commits import commit_table
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, append, load_table, table_in


@pytest.fixture
def files(catalog: Catalog) -> TableFiles:
    """A table of two files."""
    table_in(catalog)
    made = TableFiles(catalog.files)
    commit(catalog, made.snapshot(now(catalog), ["a", "b"]))
    return made


def now(catalog: Catalog) -> TableMetadata:
    metadata: TableMetadata = load_table(catalog, DEPARTURES).metadata
    return metadata


def commit(catalog: Catalog, snapshot: Snapshot) -> Snapshot:
    commit_table(catalog, DEPARTURES, [], append(snapshot, "main"))
    return snapshot


def test_commit_that_lost_the_race_for_a_file(catalog: Catalog, files: TableFiles) -> None:
    base = now(catalog)
    loser = files.snapshot(base, ["c"], ["a"])
    winner = commit(catalog, files.snapshot(base, ["d"], ["a"]))

    report = conflicts_of_snapshot(catalog, now(catalog), loser)

    (conflict,) = report.conflicts
    assert conflict.kind is ConflictKind.MISSING_DATA_FILE
    assert conflict.snapshot_id == winner.snapshot_id
    assert conflict.file_path == TableFiles.data_path(base, "a")
    assert (report.base_snapshot_id, report.head_snapshot_id) == (
        base.current_snapshot_id,
        winner.snapshot_id,
    )
    assert not report.safe_to_reapply


def test_commit_that_lost_a_race_that_does_not_matter(catalog: Catalog, files: TableFiles) -> None:
    base = now(catalog)
    blind, careful = files.snapshot(base, ["c"]), files.snapshot(base, ["d"], ["a"])
    winner = commit(catalog, files.snapshot(base, ["e"], ["b"]))
    current = now(catalog)

    for loser in (blind, careful):
        report = conflicts_of_snapshot(catalog, current, loser)
        assert report.conflicts == ()
        assert report.safe_to_reapply
        assert [snapshot.snapshot_id for snapshot in report.since] == [winner.snapshot_id]


def test_commit_on_top_of_the_head(catalog: Catalog, files: TableFiles) -> None:
    base = now(catalog)

    report = conflicts_of_snapshot(catalog, base, files.snapshot(base, ["c"], ["a"]))

    assert (report.conflicts, report.since, report.safe_to_reapply) == ((), (), True)


def test_files_of_a_commit_that_cannot_be_read(catalog: Catalog, files: TableFiles) -> None:
    base = now(catalog)
    store = catalog.files
    loser = files.snapshot(base, ["c"], ["a"])
    no_list = loser.replace(manifest_list=Location(f"{base.location}/metadata/text.avro"))
    store.write_new(Location(f"{base.location}/metadata/text.avro"), b"no Avro")

    with pytest.raises(CorruptMetadata, match=r"text\.avro"):
        conflicts_of_snapshot(catalog, base, no_list)
    with pytest.raises(InvalidLocation):
        conflicts_of_snapshot(
            catalog, base, loser.replace(manifest_list=Location("memory://elsewhere/list.avro"))
        )
    with pytest.raises(FileMissing):
        conflicts_of_snapshot(
            catalog, base, loser.replace(manifest_list=Location(f"{base.location}/metadata/none"))
        )


def test_nothing_is_written(catalog: Catalog, files: TableFiles) -> None:
    base = now(catalog)
    path = TableFiles.data_path(base, "a")
    commit(catalog, files.snapshot(base, [], ["a"]))
    listed = sorted(file.location for file in catalog.files.list_files(base.location))
    before = load_table(catalog, DEPARTURES).location

    report = check_conflicts(
        catalog,
        DEPARTURES,
        "main",
        base.current_snapshot_id,
        lambda _metadata: Delete(removed_files=(RemovedFile(path),), checks_existence=True),
    )

    assert report.would_conflict
    assert load_table(catalog, DEPARTURES).location == before
    assert sorted(file.location for file in catalog.files.list_files(base.location)) == listed
