from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from app.engine.appends.appended_files import ReadyFile
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import FieldId, SpecId
from app.errors import InvalidDataFile
from tests.builders.parquet_files import PATH, column, parquet, parquet_file, partitioned_by, table_of

ROW = parquet(pa.table({"other": [1]}))


def partition_of(kind: str, transform: str, rows: Any, **more: Any) -> tuple[Any, ...]:
    table = table_of([column(1, "c", kind), column(2, "other", "long")], [partitioned_by(transform)])
    content = parquet(pa.table({"c": rows})) if len(rows) else ROW
    return parquet_file(content, **more).data_file(table).partition


@pytest.mark.parametrize(
    ("kind", "transform", "folder", "value"),
    [
        ("string", "identity", "part=a%2Fb", "a/b"),
        ("string", "identity", "part=__HIVE_DEFAULT_PARTITION__", None),
        ("long", "identity", "part=-7", -7),
        ("boolean", "identity", "part=True", True),
        ("date", "identity", "part=1970-01-03", 2),
    ],
)
def test_values_are_read_from_folders_if_that_is_asked_for(
    kind: str, transform: str, folder: str, value: Any
) -> None:
    path = f"s3://bucket/t/data/{folder}/x.parquet"

    assert partition_of(kind, transform, [], path=path, from_path=True) == (value,)
    assert partition_of(kind, transform, [], path=path) == (None,)


@pytest.mark.parametrize("fields", [[], [partitioned_by("month")], [partitioned_by("void", name="c")]])
def test_folder_whose_value_readers_would_not_find_is_refused(fields: list[Any]) -> None:
    """After the table was partitioned anew, rows of older folders would have null there."""
    table = table_of([column(1, "c", "date"), column(2, "other", "date")], fields)
    path = "s3://bucket/t/env=prod/c=1970-01-03/x.parquet"
    no_c = parquet(pa.table({"other": pa.array([2], pa.date32())}))

    with pytest.raises(
        InvalidDataFile, match="its folder gives column c a value that readers would not find"
    ):
        parquet_file(no_c, path=path, from_path=True).data_file(table)

    parquet_file(no_c, path=path).data_file(table)  # nobody has said that folders mean something
    nothing = path.replace("1970-01-03", "__HIVE_DEFAULT_PARTITION__")
    parquet_file(no_c, path=nothing, from_path=True).data_file(table)
    both = parquet(pa.table({name: pa.array([2], pa.date32()) for name in ("c", "other")}))
    parquet_file(both, path=path, from_path=True).data_file(table)


def test_value_of_a_folder_is_not_lost_that_is_given_by_the_name_of_its_field() -> None:
    """The field of a spec may be called otherwise than its column."""
    columns = [column(1, "c", "date"), column(2, "other", "date")]
    table = table_of(columns, [partitioned_by("identity", name="d")])
    no_c = parquet(pa.table({"other": pa.array([2], pa.date32())}))
    path = "s3://bucket/t/c=1970-01-03/x.parquet"

    file = parquet_file(no_c, {"d": "1970-01-03"}, path=path, from_path=True)

    assert file.data_file(table).partition == (2,)
    with pytest.raises(InvalidDataFile, match="gives column c a value"):
        parquet_file(no_c, path=path, from_path=True).data_file(table)


@pytest.mark.parametrize(
    ("transform", "folder", "value"),
    [
        ("year", "part=1971", 1),
        ("month", "part=1971-02", 13),
        ("day", "part=1971-01-01", 365),
        ("hour", "part=1971-01-01-05", 365 * 24 + 5),
    ],
)
def test_folders_of_time_transforms_are_read_as_engines_write_them(
    transform: str, folder: str, value: int
) -> None:
    table = table_of([column(1, "c", "timestamp")], [partitioned_by(transform)])
    hours = (365 + (31 if transform == "month" else 0)) * 24 + 5
    rows = pa.table({"c": pa.array([hours * 3_600_000_000], pa.timestamp("us"))})
    path = f"s3://bucket/t/{folder}/x.parquet"

    assert parquet_file(parquet(rows), path=path, from_path=True).data_file(table).partition == (value,)


@pytest.mark.parametrize(
    ("kind", "transform", "folder"),
    [
        ("long", "identity", "x"),
        ("long", "identity", "1_0"),
        ("int", "identity", "١٢"),
        ("long", "identity", "%2012"),
        ("double", "identity", "1_0.5"),
        ("double", "identity", "nan"),
        ("date", "year", "1_971"),
        ("timestamp", "hour", "1971-01-01-24"),
        ("timestamp", "hour", "1971-01-01-0_5"),
        ("date", "month", "1971"),
        ("string", "identity", "caf%E9"),
    ],
)
def test_folder_that_is_no_value_is_refused(kind: str, transform: str, folder: str) -> None:
    with pytest.raises(InvalidDataFile, match="its folder for partition field part"):
        partition_of(kind, transform, [], path=f"s3://b/part={folder}/x.parquet", from_path=True)


@pytest.mark.parametrize(
    ("kind", "transform", "rows", "reason"),
    [
        ("long", "identity", [1, 2], "the column has several values"),
        ("long", "bucket[4]", [1, 2], "the column has several values"),
        ("long", "truncate[10]", [1, 12], "the file has rows of several partitions"),
        ("long", "identity", [1, None], "some of the column's values are null"),
        ("double", "identity", [1.0, 1.0], "which say nothing about NaN"),
    ],
)
def test_value_that_cannot_be_derived_is_asked_for(
    kind: str, transform: str, rows: list[Any], reason: str
) -> None:
    with pytest.raises(InvalidDataFile, match=reason):
        partition_of(kind, transform, rows)


@pytest.mark.parametrize(
    ("kind", "transform", "rows"),
    [
        ("timestamp", "hour", pa.array([2**63 - 1], pa.timestamp("us"))),
        ("timestamp", "hour", pa.array([-(2**63)], pa.timestamp("us"))),
        ("decimal(4, 2)", "truncate[5000]", pa.array([Decimal("-99.99")], pa.decimal128(4, 2))),
    ],
)
def test_derived_value_that_no_manifest_can_hold_is_refused(kind: str, transform: str, rows: Any) -> None:
    with pytest.raises(InvalidDataFile, match="its value for partition field part: Not a value of type"):
        partition_of(kind, transform, rows)


def test_number_at_the_edge_is_cut_to_what_other_engines_make_of_it() -> None:
    assert partition_of("long", "truncate[10]", [-(2**63)]) == (2**63 - 2,)


@pytest.mark.parametrize("value", ["abc", "a"])
def test_what_nothing_is_cut_to_is_refused_also_without_bounds(value: str) -> None:
    """Readers that look for `abc` ask for files of `ab`, and would pass over this one."""
    table = table_of([column(1, "c", "string")], [partitioned_by("truncate[2]")])
    file = DataFile(FileContent.DATA, PATH, "PARQUET", SpecId(0), (), 1, 1)
    ready = ReadyFile(PATH, SpecId(0), (value,), file)

    if value == "a":
        assert ready.data_file(table).partition == ("a",)
    else:
        with pytest.raises(InvalidDataFile, match=r"nothing is cut to it by truncate\[2\]"):
            ready.data_file(table)
        cut = replace(file, lower_bounds={FieldId(1): b"a"}, upper_bounds={FieldId(1): b"b"})
        with pytest.raises(InvalidDataFile, match="its bounds say that it has other values"):
            replace(ready, described=cut).data_file(table)


@pytest.mark.parametrize(
    ("kind", "transform", "rows", "given", "reason"),
    [
        ("long", "identity", [1], 2, "its bounds say that it has other values"),
        ("long", "bucket[4]", [1], 9, "there is no such bucket"),
        ("long", "identity", [1], None, "the column has other values"),
        ("long", "identity", [1, None], 1, "the column has nulls"),
        ("long", "identity", [1], "1", "its value for partition field part"),
        ("string", "identity", ["a", "ab"], "ab", "its bounds say that it has other values"),
        ("long", "truncate[10]", [], 10, "the file does not have the column"),
        ("long", "void", [1], 1, "must be null"),
        ("long", "zorder", [1], 1, "this server cannot make values"),
        ("double", "identity", [1.0, math.nan], "NaN", "its bounds say that it has other values"),
    ],
)
def test_given_value_that_contradicts_the_file_is_refused(
    kind: str, transform: str, rows: list[Any], given: Any, reason: str
) -> None:
    with pytest.raises(InvalidDataFile, match=reason):
        partition_of(kind, transform, rows, partition={"part": given})


def test_bounds_that_a_writer_has_cut_are_no_contradiction() -> None:
    table = table_of([column(1, "c", "string")], [partitioned_by("identity")])

    def described(lower: bytes, upper: bytes) -> ReadyFile:
        file = DataFile(
            FileContent.DATA, PATH, "PARQUET", SpecId(0), (), 1, 1, lower_bounds={1: lower}, upper_bounds={1: upper}
        )  # fmt: skip
        return ReadyFile(PATH, SpecId(0), ("a long text",), file)

    assert described(b"a lo", b"a lp").data_file(table).partition == ("a long text",)
    with pytest.raises(InvalidDataFile, match="other values"):
        described(b"a lo", b"a long text").data_file(table)


def test_spec_of_the_file_may_be_an_older_one() -> None:
    table = table_of([column(1, "c", "long")], [partitioned_by("identity")])

    file = parquet_file(parquet(pa.table({"c": [5]})), spec_id=0).data_file(table)

    assert (file.spec_id, file.partition) == (0, (5,))


@pytest.mark.parametrize("value", [b"abcd", None])
def test_values_that_engines_lay_out_differently_are_refused(value: bytes | None) -> None:
    rows = pa.array([value], pa.binary(4))

    with pytest.raises(InvalidDataFile, match=r"of type fixed\[4\], of which no manifest can be read by all"):
        partition_of("fixed[4]", "identity", rows)

    assert partition_of("fixed[4]", "bucket[1]", rows) == (None if value is None else 0,)


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("given", [0.0, -0.0, "0.0", "-0.0"])
def test_the_sign_of_zero_is_the_one_that_is_given(kind: str, zero: float, given: Any) -> None:
    """Iceberg has two partitions there; Parquet's bounds are the same for both."""
    table = table_of([column(1, "c", kind), column(2, "other", "long")], [partitioned_by("identity")])
    rows = parquet(pa.table({"c": pa.array([zero], pa.float32() if kind == "float" else pa.float64())}))
    is_text = isinstance(given, str)
    path = f"s3://bucket/t/part={given}/x.parquet" if is_text else PATH
    file = parquet_file(rows, {} if is_text else {"part": given}, path=path, from_path=is_text)

    made = file.data_file(table)

    assert str(made.partition[0]) == str(float(given))
    assert made.partition_key != replace(made, partition=(-made.partition[0],)).partition_key


def test_the_sign_of_a_default_is_known() -> None:
    kind = column(1, "c", "double") | {"initial-default": 0.0, "write-default": 0.0}
    table = table_of([kind, column(2, "other", "long")], [partitioned_by("identity")], format_version=3)

    assert parquet_file(ROW, {"part": 0.0}).data_file(table).partition == (0.0,)
    with pytest.raises(
        InvalidDataFile, match=r"-0\.0 for partition field part is wrong: the file does not have"
    ):
        parquet_file(ROW, {"part": -0.0}).data_file(table)


def test_default_that_another_catalog_has_taken_is_named_if_it_makes_no_sense() -> None:
    c = column(1, "c", "int") | {"initial-default": "five"}
    table = table_of([c, column(2, "other", "long")], [partitioned_by("identity")], format_version=3)

    with pytest.raises(
        InvalidDataFile, match=r"it has no column c, whose initial default makes no sense: .*'five'"
    ):
        parquet_file(ROW).data_file(table)
