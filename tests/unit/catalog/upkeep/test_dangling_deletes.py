from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.upkeep.dangling_deletes import (
    DanglingDeletes,
    preview_dangling_deletes,
    remove_dangling_deletes,
)
from app.engine.change.updates import SetSnapshotRef
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import Location
from app.engine.model.partition_spec import PartitionSpec
from app.errors import InvalidRequest, NoSuchRef
from tests.builders.catalogs import with_server
from tests.builders.partitioned_files import PartitionedFiles
from tests.builders.tables import DEPARTURES, commit_to
from tests.unit.catalog.commits.interference import files_in

UNPARTITIONED = PartitionSpec.from_object({"spec-id": 0, "fields": []})
PATH_ID = 2147483546


def deletes(table: PartitionedFiles, partition: tuple[object, ...], **facts: object) -> DataFile:
    """Return a position delete file that is about no data file in particular."""
    kinds = {"content": FileContent.POSITION_DELETES, "lower_bounds": None, "upper_bounds": None}
    return table.file(partition, **{**kinds, **facts})


def deletes_of(table: PartitionedFiles, file: DataFile) -> DataFile:
    """Return a position delete file of version 2 that its bounds tie to one data file."""
    bounds = {PATH_ID: file.file_path.encode()}
    return deletes(table, file.partition, lower_bounds=bounds, upper_bounds=bounds)


def equality(table: PartitionedFiles, partition: tuple[object, ...]) -> DataFile:
    return deletes(table, partition, content=FileContent.EQUALITY_DELETES, equality_ids=(1,))


def vector(table: PartitionedFiles, file: DataFile, offset: int) -> DataFile:
    return deletes(
        table,
        file.partition,
        file_path=Location(f"{table.location}/data/vectors.puffin"),
        file_format="puffin",
        referenced_data_file=file.file_path,
        content_offset=offset,
        content_size_in_bytes=40,
    )


def remove(catalog: Catalog) -> DanglingDeletes:
    return remove_dangling_deletes(catalog, DEPARTURES, "main")[0]


def paths(files: object) -> set[str]:
    return {file.file_path for file in files}  # type: ignore[attr-defined]  # files of several classes


def test_deletes_older_than_all_files_of_their_partition_go(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    old = table.file(("AA", 0))
    table.commit([old, table.file(("BA", 0))])
    dangling = [deletes(table, ("AA", 0)), equality(table, ("AA", 0))]
    needed = [deletes(table, ("BA", 0)), equality(table, ("BA", 0))]
    table.commit([*dangling, *needed])
    table.commit([table.file(("AA", 0))], [old])
    data = [entry for entry in table.entries().values() if entry.file.content is FileContent.DATA]

    done = remove(catalog)

    assert paths(done.files) == paths(dangling)
    left = table.entries().values()
    assert paths(entry.file for entry in left if entry.file.content is not FileContent.DATA) == paths(needed)
    assert [entry for entry in left if entry.file.content is FileContent.DATA] == data
    summary = table.head().summary or {}
    assert {name: summary[name] for name in sorted(summary) if "delete" in name or name == "operation"} == {
        "operation": "replace",
        "removed-delete-files": "2",
        "removed-equality-delete-files": "1",
        "removed-equality-deletes": "10",
        "removed-position-delete-files": "1",
        "removed-position-deletes": "10",
        "total-delete-files": "2",
        "total-equality-deletes": "10",
        "total-position-deletes": "10",
    }
    assert (summary["removed-files-size"], summary["changed-partition-count"]) == ("2000", "1")
    assert remove(catalog).snapshot_id is None


def test_equality_deletes_apply_only_to_older_files_and_positions_to_equally_old_ones_too(
    catalog: Catalog,
) -> None:
    table = PartitionedFiles.made(catalog)
    positions, values = deletes(table, ("AA", 0)), equality(table, ("AA", 0))
    table.commit([table.file(("AA", 0)), positions, values])

    assert paths(remove(catalog).files) == paths([values])


def test_equality_deletes_without_partition_apply_to_the_whole_table(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog, spec=UNPARTITIONED)
    old = table.file(())
    table.commit([old])
    first, second = equality(table, ()), deletes(table, ())
    table.commit([first, second])
    table.commit([table.file(())])

    assert remove(catalog).files == ()
    table.commit([], [old])
    assert paths(remove(catalog).files) == paths([first, second])


def test_deletes_of_one_file_go_with_it_whatever_the_others_are(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog, spec=UNPARTITIONED)
    gone, stays = table.file(()), table.file(())
    table.commit([gone, stays])
    of_gone, of_stays = deletes_of(table, gone), deletes_of(table, stays)
    table.commit([of_gone, of_stays])
    table.commit([], [gone])

    assert paths(remove(catalog).files) == paths([of_gone])


def test_vectors_that_share_a_file_go_one_by_one(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog, 3)
    gone, stays = table.file(), table.file()
    table.commit([gone, stays])
    table.commit([vector(table, gone, 4), vector(table, stays, 44)])
    table.commit([], [gone])

    done = remove(catalog)

    assert [file.content_offset for file in done.files] == [4]
    summary = table.head().summary or {}
    assert (summary["removed-dvs"], summary["removed-files-size"]) == ("1", "40")
    left = [entry.file for entry in table.entries().values() if entry.file.content is not FileContent.DATA]
    assert [file.content_offset for file in left] == [44]


def test_deletes_stay_whose_bounds_were_cut(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog, spec=UNPARTITIONED)
    file = table.file(())
    table.commit([file])
    unsure = deletes(table, (), lower_bounds={PATH_ID: b"memory"}, upper_bounds={PATH_ID: b"memory0"})
    table.commit([unsure])

    assert remove(catalog).files == ()


def test_a_file_of_a_compaction_that_is_as_old_as_those_it_replaced_keeps_its_deletes(
    catalog: Catalog,
) -> None:
    table = PartitionedFiles.made(catalog)
    old = table.file(("AA", 0))
    first = table.commit([old])
    delete = equality(table, ("AA", 0))
    table.commit([delete])
    table.commit([], [old])
    compacted = table.file(("AA", 0))

    def compact(reached: str) -> None:
        if reached == "dangling_found":
            table.commit([compacted], age=first.sequence)

    done = remove_dangling_deletes(with_server(catalog, step=compact), DEPARTURES, "main")[0]

    assert done.files == ()
    assert delete.key in table.entries()


def test_deletes_that_went_meanwhile_are_not_removed_twice(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    first, second = deletes(table, ("AA", 0)), deletes(table, ("BA", 0))
    table.commit([first, second])

    def meanwhile(reached: str) -> None:
        if reached == "dangling_found":
            table.commit([table.file(("CC", 0))], [first])

    done = remove_dangling_deletes(with_server(catalog, step=meanwhile), DEPARTURES, "main")[0]

    assert paths(done.files) == paths([second])
    assert (table.head().summary or {})["total-delete-files"] == "0"


def test_preview_says_what_goes_and_changes_nothing(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.commit([table.file(("AA", 0)), deletes(table, ("BA", 0))])
    files = files_in(catalog)

    would, location = preview_dangling_deletes(catalog, DEPARTURES, "main")

    assert files_in(catalog) == files
    assert would.facts(location, dry_run=True) == {
        "dry-run": True,
        "branch": "main",
        "metadata-location": location,
        "removed-delete-files": 1,
        "removed-position-delete-files": 1,
        "removed-dvs": 0,
        "removed-equality-delete-files": 0,
    }


def test_branches_that_are_none_are_refused(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    snapshot = table.commit([table.file()])
    commit_to(catalog, SetSnapshotRef(ref_name="v1", snapshot_id=snapshot.snapshot_id, type="tag"))
    for act in (remove_dangling_deletes, preview_dangling_deletes):
        with pytest.raises(NoSuchRef):
            act(catalog, DEPARTURES, "nope")
        with pytest.raises(InvalidRequest, match="Cannot remove dangling deletes of v1: it is a tag"):
            act(catalog, DEPARTURES, "v1")


def test_a_file_that_is_listed_with_two_ages_stays_if_one_of_them_applies(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    delete = equality(table, ("AA", 0))
    table.commit([delete])
    table.commit([table.file(("AA", 0))])
    table.commit([replace(delete)])

    assert remove(catalog).files == ()
