"""Deletes that are newer than a base, which its files may all be subject to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine.model.files.manifests import DataFile, EntryStatus, ManifestEntry
from app.engine.model.ids import Location
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.engine.selection.deletes import DeleteIndex
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
BASE = 4


def entries(*files: DataFile) -> list[ManifestEntry]:
    return [ManifestEntry(EntryStatus.ADDED, None, 5, 5, file) for file in files]


def index_of(*deletes: DataFile, branch: Branch | None = None) -> DeleteIndex:
    metadata = (branch or Branch()).metadata
    return DeleteIndex(entries(*deletes), metadata.partition_specs, metadata.schemas)


def applying(*deletes: DataFile, to: DataFile = OLD) -> list[str]:
    return [entry.file.file_path for entry in index_of(*deletes).deletes_of(to, BASE)]


def may_delete_rows(deletes: DataFile, file: DataFile, schema: Schema) -> bool:
    unpartitioned = PartitionSpec.from_object({"spec-id": 0, "fields": []})
    return bool(DeleteIndex(entries(deletes), [unpartitioned], [schema]).deletes_of(file, BASE))


def test_deletes_of_the_file_of_its_partition_and_of_others() -> None:
    of_it, of_another = position_deletes("p1", "a", of="old"), position_deletes("p2", "a", of="another")
    of_partition, elsewhere = position_deletes("p3", "a"), position_deletes("p4", "b")

    assert applying(of_it, of_another, of_partition, elsewhere) == ["p3", "p1"]
    assert applying(vector("v.puffin", "old", "z")) == ["v.puffin"]


def test_equality_deletes_are_of_a_partition() -> None:
    here, elsewhere = equality_deletes("e1", "a"), equality_deletes("e2", "b")

    assert applying(here, elsewhere) == ["e1"]
    assert applying(equality_deletes("e3", "a", (20, 30)), here) == ["e1"]


def test_equality_deletes_without_partitions_are_of_every_file() -> None:
    index = index_of(replace(equality_deletes("e"), partition=()), branch=Branch(UNPARTITIONED))

    assert len(index.deletes_of(replace(OLD, partition=()), BASE)) == 1
    assert index.needs_partitions


def test_deletes_of_one_path_are_found_without_a_partition() -> None:
    index = index_of(position_deletes("p", "b", of="old"), vector("v.puffin", "old", "z"), vector("w", "new"))

    assert [entry.file.file_path for entry in index.deletes_of_path(OLD.file_path)] == ["p", "v.puffin"]
    assert list(index.deletes_of_path(Location("elsewhere"))) == []
    assert not index.needs_partitions
    assert index_of(position_deletes("p", "b")).needs_partitions


def test_vectors_after_the_first_of_a_data_file_are_surplus() -> None:
    index = index_of(vector("v1", "old"), vector("v2", "old"), vector("w", "new"))

    assert [entry.file.file_path for entry in index.surplus_vectors()] == ["v2"]


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
