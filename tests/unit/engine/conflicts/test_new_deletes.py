from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine.conflicts.detection import find_conflicts
from app.engine.conflicts.new_deletes import NewDeletes, may_delete_rows
from app.engine.conflicts.operations import RemovedFile, RewriteFiles
from app.engine.model.ids import Location
from app.engine.model.manifests import DataFile, EntryStatus, ManifestEntry
from app.engine.model.schema import Schema
from tests.builders.branches import (
    COLUMNS,
    UNPARTITIONED,
    Branch,
    data_file,
    equality_deletes,
    position_deletes,
    vector,
)

OLD = data_file("old", "a", (0, 9))


def entries(*files: DataFile) -> list[ManifestEntry]:
    return [ManifestEntry(EntryStatus.ADDED, None, 5, 5, file) for file in files]


def applying(*deletes: DataFile, to: DataFile = OLD, with_equality: bool = True) -> list[str]:
    index = NewDeletes(Branch().metadata, entries(*deletes))
    return [entry.file.file_path for entry in index.for_file(to, with_equality=with_equality)]


def test_deletes_of_the_file_of_its_partition_and_of_others() -> None:
    of_it, of_another = position_deletes("p1", "a", of="old"), position_deletes("p2", "a", of="another")
    of_partition, elsewhere = position_deletes("p3", "a"), position_deletes("p4", "b")

    assert applying(of_it, of_another, of_partition, elsewhere) == ["p1", "p3"]
    assert applying(vector("v.puffin", "old", "z")) == ["v.puffin"]


def test_equality_deletes_are_of_a_partition() -> None:
    here, elsewhere = equality_deletes("e1", "a"), equality_deletes("e2", "b")

    assert applying(here, elsewhere) == ["e1"]
    assert applying(here, with_equality=False) == []
    assert applying(equality_deletes("e3", "a", (20, 30)), here) == ["e1"]


def test_equality_deletes_without_partitions_are_of_every_file() -> None:
    metadata = Branch(UNPARTITIONED).metadata
    index = NewDeletes(metadata, entries(replace(equality_deletes("e"), partition=())))

    assert len(list(index.for_file(replace(OLD, partition=())))) == 1
    assert index.needs_partitions


def counted(file: DataFile, values: int | None, nulls: int | None) -> DataFile:
    return replace(
        file,
        value_counts=None if values is None else {1: values},
        null_value_counts=None if nulls is None else {1: nulls},
    )


@pytest.mark.parametrize(
    ("deletes", "file", "may"),
    [
        (equality_deletes("e", "a", (5, 6)), OLD, True),
        (equality_deletes("e", "a", (9, 20)), OLD, True),
        (equality_deletes("e", "a", (10, 20)), OLD, False),
        (equality_deletes("e", "a", (-5, -1)), OLD, False),
        (equality_deletes("e", "a"), OLD, True),
        (equality_deletes("e", "a", (10, 20)), data_file("old", "a"), True),
        # Null is deleted, and null is there.
        (counted(equality_deletes("e", "a", (10, 20)), 2, 1), counted(OLD, 10, 3), True),
        (counted(equality_deletes("e", "a", (10, 20)), 2, None), counted(OLD, 10, None), True),
        # Nothing but null is there, and something else is deleted, or the other way round.
        (equality_deletes("e", "a", (5, 6)), counted(OLD, 10, 10), False),
        (counted(equality_deletes("e", "a"), 1, 1), counted(OLD, 10, 0), False),
        (counted(equality_deletes("e", "a"), 1, 1), counted(OLD, 10, None), True),
        (counted(equality_deletes("e", "a"), None, 1), counted(OLD, 10, 0), True),
        (counted(equality_deletes("e", "a", (5, 6)), 1, None), counted(OLD, 10, 10), True),
        # Of a column that is gone, or of no column at all, nothing is known.
        (replace(equality_deletes("e", "a", (10, 20)), equality_ids=(9,)), OLD, True),
        (replace(equality_deletes("e", "a", (10, 20)), equality_ids=None), OLD, True),
        (replace(equality_deletes("e", "a", (10, 20)), lower_bounds={1: b"x"}), OLD, True),
    ],
)
def test_equality_deletes_by_counts_and_bounds(deletes: DataFile, file: DataFile, may: bool) -> None:
    assert may_delete_rows(deletes, file, COLUMNS) is may


def test_required_and_nested_columns() -> None:
    columns = Schema.from_json(
        b'{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},'
        b'{"id":5,"name":"s","required":false,"type":{"type":"struct","fields":[]}}]}'
    )
    apart = counted(equality_deletes("e", "a", (10, 20)), None, None)

    assert not may_delete_rows(apart, counted(OLD, None, None), columns)
    assert may_delete_rows(replace(apart, equality_ids=(5,)), OLD, columns)


def test_files_of_which_only_the_path_is_told_are_looked_up_where_that_matters() -> None:
    branch = Branch()
    other = data_file("other", "b", (10, 19))
    branch.commit("append", [OLD, other])
    base = branch.commit("overwrite", [position_deletes("earlier", "b", of="other")])
    named = RewriteFiles((RemovedFile(OLD.file_path), RemovedFile(Location("nobody's"))))
    branch.commit("overwrite", [position_deletes("p", "b", of="old")])
    branch.opened.clear()

    by_path = find_conflicts(branch.metadata, branch, "main", base, named)
    opened_for_path = list(branch.opened)
    branch.commit("overwrite", [equality_deletes("e", "b"), position_deletes("q", "b")])
    elsewhere = find_conflicts(branch.metadata, branch, "main", base, named)
    branch.commit("overwrite", [equality_deletes("f", "a", (5, 5))])
    here = find_conflicts(branch.metadata, branch, "main", base, RewriteFiles(named.removed_files[:1]))

    first_manifest = branch._lists[base][-1].manifest_path
    assert [item.file_path for item in by_path.conflicts] == ["p"]
    assert first_manifest not in opened_for_path
    assert [item.file_path for item in elsewhere.conflicts] == ["p"]
    assert [item.file_path for item in here.conflicts] == ["p", "f"]


def test_vectors_that_the_reference_cannot_index() -> None:
    branch = Branch(format_version=3)
    other = data_file("other", "b")
    base = branch.commit("append", [OLD, other])
    first = vector("v1.puffin", "other", "b")
    branch.commit("delete", [first])
    branch.commit("delete", [vector("v2.puffin", "other", "b")], [first])

    report = find_conflicts(branch.metadata, branch, "main", base, RewriteFiles((RemovedFile.of(OLD),)))

    assert [item.message for item in report.conflicts] == ["Cannot index multiple deletion vectors for other"]
