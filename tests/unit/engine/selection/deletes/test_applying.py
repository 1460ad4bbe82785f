"""Which deletes apply to a data file: ages, partitions, paths, vectors, and values that rule each other out."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from app.engine.model.files.delete_files import DELETE_FILE_PATH_ID, referenced_path
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.selection.deletes import DeleteIndex
from tests.unit.engine.documents import column, schema

SCHEMA = schema(column(1, "id", "long"), column(2, "price", "double"), column(3, "word", "string"))


def spec(spec_id: int, transform: str | None) -> PartitionSpec:
    fields = [{"name": "p", "transform": transform, "source-id": 1, "field-id": 1000}] if transform else []
    return PartitionSpec.from_object({"spec-id": spec_id, "fields": fields})


SPECS = [spec(0, None), spec(1, "identity"), spec(2, "void"), spec(3, "identity")]


def entry(
    content: FileContent, path: str, age: int, spec_id: int = 1, partition: Any = 7, **more: Any
) -> ManifestEntry:
    values = () if spec_id == 0 else (partition,)
    file = DataFile(content, Location(path), "parquet", SpecId(spec_id), values, 1, 10)
    return ManifestEntry(EntryStatus.ADDED, SnapshotId(1), age, age, replace(file, **more))


def data(age: int, spec_id: int = 1, partition: Any = 7, **more: Any) -> ManifestEntry:
    return entry(FileContent.DATA, "data", age, spec_id, partition, **more)


def positions(age: int, spec_id: int = 1, partition: Any = 7, path: str = "d", **more: Any) -> ManifestEntry:
    return entry(FileContent.POSITION_DELETES, path, age, spec_id, partition, **more)


def equality(age: int, spec_id: int = 1, partition: Any = 7, path: str = "d", **more: Any) -> ManifestEntry:
    return entry(
        FileContent.EQUALITY_DELETES, path, age, spec_id, partition, **{"equality_ids": (1,), **more}
    )


def applying(file: ManifestEntry, *deletes: ManifestEntry) -> list[str]:
    index = DeleteIndex(deletes, SPECS, [SCHEMA])
    return [found.file.file_path for found in index.deletes_of(file.file, file.data_sequence_number or 0)]


@pytest.mark.parametrize(("age", "applies"), [(2, False), (3, True), (4, True)])
def test_position_deletes_apply_to_data_that_is_not_younger(age: int, *, applies: bool) -> None:
    assert bool(applying(data(3), positions(age))) is applies


@pytest.mark.parametrize(("age", "applies"), [(2, False), (3, False), (4, True)])
def test_equality_deletes_apply_to_data_that_is_older(age: int, *, applies: bool) -> None:
    assert bool(applying(data(3), equality(age))) is applies


@pytest.mark.parametrize("delete", [positions, equality])
@pytest.mark.parametrize(("spec_id", "partition"), [(1, 8), (1, None), (3, 7)])
def test_deletes_of_another_partition_or_spec_do_not_apply(
    delete: Any, spec_id: int, partition: int | None
) -> None:
    assert applying(data(1), delete(2, spec_id, partition)) == []


@pytest.mark.parametrize("spec_id", [0, 2])
def test_equality_deletes_of_an_unpartitioned_spec_apply_everywhere(spec_id: int) -> None:
    assert applying(data(1), equality(2, spec_id, None)) == ["d"]
    assert applying(data(2), equality(2, spec_id, None)) == []


def test_position_deletes_of_an_unpartitioned_spec_apply_to_its_own_files_only() -> None:
    assert applying(data(1), positions(2, 0)) == []
    assert applying(data(1, 0), positions(2, 0)) == ["d"]


def test_partitions_of_minus_zero_and_zero_are_two_and_nan_is_one() -> None:
    nan, other_nan = float("nan"), float("nan")

    assert applying(data(1, partition=0.0), equality(2, partition=-0.0)) == []
    assert applying(data(1, partition=nan), equality(2, partition=other_nan)) == ["d"]


@pytest.mark.parametrize(
    "about",
    [
        {"referenced_data_file": "data"},
        {"lower_bounds": {DELETE_FILE_PATH_ID: b"data"}, "upper_bounds": {DELETE_FILE_PATH_ID: b"data"}},
    ],
)
def test_deletes_of_one_file_are_found_by_its_path(about: dict[str, Any]) -> None:
    delete = positions(2, partition=99, **about)

    assert referenced_path(delete.file) == "data"
    assert applying(data(1), delete) == ["d"]
    assert applying(data(3), delete) == []
    assert applying(entry(FileContent.DATA, "other", 1), delete) == []


@pytest.mark.parametrize(
    ("lower", "upper", "applies"),
    [
        (b"a", b"z", True),
        (b"e", b"z", False),
        (b"a", b"c", False),
        (b"data", None, True),
        (None, b"d", False),
    ],
)
def test_paths_outside_the_bounds_are_not_meant(
    lower: bytes | None, upper: bytes | None, *, applies: bool
) -> None:
    bounds = [None if each is None else {DELETE_FILE_PATH_ID: each} for each in (lower, upper)]
    delete = positions(2, lower_bounds=bounds[0], upper_bounds=bounds[1])

    assert bool(applying(data(1), delete)) is applies


def vector(age: int, path: str = "v", about: str = "data") -> ManifestEntry:
    return positions(
        age,
        path=path,
        file_format="puffin",
        referenced_data_file=about,
        content_offset=4,
        content_size_in_bytes=9,
    )


def test_deletion_vector_takes_the_place_of_position_deletes_but_not_of_equality_deletes() -> None:
    deletes = [positions(2, path="p"), positions(2, path="q", referenced_data_file="data"), vector(3)]

    assert applying(data(1), *deletes, equality(4, path="e")) == ["e", "v"]


def test_deletion_vector_that_is_older_than_the_data_says_nothing() -> None:
    assert applying(data(3), vector(2), positions(3, path="p")) == ["p"]


def test_deletion_vector_of_another_file_says_nothing() -> None:
    assert applying(data(1), vector(2, about="other"), positions(2, path="p")) == ["p"]


def test_deletes_come_in_the_order_of_their_ages_whatever_order_they_were_in() -> None:
    deletes = [positions(4, path="c"), positions(2, path="b"), positions(2, path="a")]

    assert applying(data(1), *deletes) == applying(data(1), *deletes[::-1]) == ["a", "b", "c"]


def longs(low: int, high: int, nulls: int | None = 0, values: int = 5) -> dict[str, Any]:
    return {
        "lower_bounds": {1: struct.pack("<q", low)},
        "upper_bounds": {1: struct.pack("<q", high)},
        "value_counts": {1: values},
        "null_value_counts": None if nulls is None else {1: nulls},
    }


NO_VALUES = {"value_counts": {1: 5}, "null_value_counts": {1: 5}}


@pytest.mark.parametrize(
    ("of_data", "of_delete", "applies"),
    [
        (longs(1, 5), longs(5, 9), True),
        (longs(1, 5), longs(6, 9), False),
        (longs(6, 9), longs(1, 5), False),
        (longs(1, 5, nulls=1), longs(6, 9, nulls=1), True),
        (longs(1, 5, nulls=1), longs(6, 9, nulls=0), False),
        (longs(1, 5, nulls=None), longs(6, 9, nulls=1), True),
        (longs(1, 5, nulls=None), longs(6, 9, nulls=None), True),
        (longs(1, 5), NO_VALUES, False),
        (NO_VALUES, longs(1, 5), False),
        (NO_VALUES, longs(1, 5, nulls=2), True),
        (NO_VALUES, NO_VALUES, True),
        ({}, longs(1, 5), True),
        (longs(1, 5), {}, True),
        ({**longs(1, 5), "lower_bounds": {1: b"xyz"}}, longs(6, 9), True),
    ],
)
def test_equality_deletes_whose_values_cannot_be_there_do_not_apply(
    of_data: dict[str, Any], of_delete: dict[str, Any], *, applies: bool
) -> None:
    assert bool(applying(data(1, **of_data), equality(2, **of_delete))) is applies


def doubles(low: float, high: float, nan: int | None) -> dict[str, Any]:
    return {
        "lower_bounds": {2: struct.pack("<d", low)},
        "upper_bounds": {2: struct.pack("<d", high)},
        "value_counts": {2: 5},
        "null_value_counts": {2: 0},
        "nan_value_counts": None if nan is None else {2: nan},
    }


@pytest.mark.parametrize(("nan", "applies"), [(0, False), (1, True), (None, True)])
def test_bounds_of_floating_numbers_rule_nothing_out_where_nan_may_be(
    nan: int | None, *, applies: bool
) -> None:
    delete = equality(2, equality_ids=(2,), **doubles(6.0, 9.0, nan))

    assert bool(applying(data(1, **doubles(1.0, 5.0, nan)), delete)) is applies


def test_deletes_of_zero_apply_to_zeros_of_either_sign() -> None:
    """Some engines take -0.0 for 0.0."""
    delete = equality(2, equality_ids=(2,), **doubles(0.0, 0.0, 0))

    assert applying(data(1, **doubles(-0.0, -0.0, 0)), delete) == ["d"]
    assert applying(data(1, **doubles(-1.0, -0.5, 0)), delete) == []


def test_bounds_of_shapes_rule_nothing_out() -> None:
    """They are corners of boxes, and have no order."""
    shapes = [schema(column(1, "where", "geometry"))]
    # From (-1, 0) to (3, 3), and the point (2, 1): as bytes, the corners of the two are apart.
    box = [struct.pack("<dd", *corner) for corner in ((-1.0, 0.0), (3.0, 3.0))]
    point = [struct.pack("<dd", 2.0, 1.0)] * 2

    def bounds(low: bytes, high: bytes) -> dict[str, Any]:
        return {**longs(0, 0), "lower_bounds": {1: low}, "upper_bounds": {1: high}}

    index = DeleteIndex([equality(2, **bounds(*point))], SPECS, shapes)

    assert index.deletes_of(data(1, **bounds(*box)).file, 1)


def test_one_column_that_rules_the_deletes_out_is_enough() -> None:
    of_data = {**longs(1, 5), "lower_bounds": {1: struct.pack("<q", 1), 3: b"a"}}
    delete = equality(2, equality_ids=(3, 1), **longs(6, 9))

    assert applying(data(1, **of_data), delete) == []


def test_columns_that_no_schema_has_rule_nothing_out() -> None:
    assert applying(data(1), equality(2, equality_ids=(99,))) == ["d"]
