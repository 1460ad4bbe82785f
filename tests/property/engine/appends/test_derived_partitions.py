"""A partition is derived if all rows are in it; one that is given is refused if the rows say otherwise."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.engine.expressions.transform_values import transform_function
from app.engine.model.data_types.json_values import to_json_value
from app.engine.model.data_types.transforms import parse_transform
from app.engine.model.data_types.types import PrimitiveType, parse_primitive
from app.engine.model.data_types.values import to_bytes
from app.errors import InvalidDataFile
from tests.builders.parquet_files import column, parquet, parquet_file, partitioned_by, table_of

DAY = 86_400_000_000
INTS = st.integers(-40, 40) | st.sampled_from([-(2**31), -(2**31) + 9, 2**31 - 1])
LONGS = st.integers(-40, 40) | st.sampled_from([-(2**63), -(2**63) + 9, 2**63 - 1])
MOMENTS = st.integers(-400 * DAY, 400 * DAY) | st.sampled_from([-(2**63), -1, 0, 2**63 - 1])
OF_MOMENTS = ["year", "month", "day", "hour", "bucket[4]", "identity"]
SOURCES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any], list[str]]] = {
    "boolean": (pa.bool_(), st.booleans(), ["identity", "void"]),
    "int": (pa.int32(), INTS, ["identity", "bucket[4]", "truncate[10]", "truncate[8]", "void"]),
    "long": (pa.int64(), LONGS, ["identity", "bucket[4]", "truncate[10]", "truncate[7]"]),
    "string": (
        pa.string(),
        st.text("ab\u00e9\uffff\U0001f600", max_size=5) | st.sampled_from(["a" * 70, "a" * 70 + "b"]),
        ["identity", "bucket[4]", "truncate[2]", "truncate[69]"],
    ),
    "binary": (pa.binary(), st.binary(max_size=3), ["identity", "bucket[4]", "truncate[1]"]),
    "date": (
        pa.date32(),
        st.integers(-400, 400) | st.sampled_from([-(2**31), 2**31 - 1]),
        ["identity", "year", "month", "day", "bucket[4]"],
    ),
    "time": (pa.time64("us"), st.sampled_from([0, 1, DAY // 2, DAY - 1]), ["identity", "bucket[4]"]),
    "timestamp": (pa.timestamp("us"), MOMENTS, OF_MOMENTS),
    "timestamptz": (pa.timestamp("us", "UTC"), MOMENTS, OF_MOMENTS),
    "timestamp_ns": (pa.timestamp("ns"), MOMENTS, OF_MOMENTS),
    "decimal(5, 2)": (
        pa.decimal128(5, 2),
        st.integers(-300, 300).map(lambda number: Decimal(number).scaleb(-2))
        | st.sampled_from([Decimal("-999.99"), Decimal("999.99")]),
        ["identity", "truncate[50]", "bucket[4]"],
    ),
}
Case = tuple[str, str, list[Any]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Return a type, a transform and the column's values."""
    kind = draw(st.sampled_from(sorted(SOURCES)))
    _, values, transforms = SOURCES[kind]
    return kind, draw(st.sampled_from(transforms)), draw(st.lists(st.none() | values, min_size=1, max_size=4))


def content_of(kind: str, values: list[Any]) -> bytes:
    arrow = SOURCES[kind][0]
    if pa.types.is_temporal(arrow):
        array = pa.array(values, pa.int32() if pa.types.is_date32(arrow) else pa.int64()).cast(arrow)
    else:
        array = pa.array(values, arrow)
    return parquet(pa.table({"c": array}))


def partitions_of(case: Case) -> set[Any]:
    """Return the partitions of the rows."""
    kind, transform, values = case
    function = transform_function(parse_transform(transform), parse_primitive(kind))
    return {None if value is None else function(value) for value in values}


def is_partition(case: Case, value: Any) -> bool:
    """Say whether a partition can have this value: a cut decimal may have a digit more, hours more than 32 bits."""
    kind, transform, _ = case
    result = parse_transform(transform).result_type(parse_primitive(kind))
    assert isinstance(result, PrimitiveType)
    try:
        return value is None or bool(to_bytes(result, value)) or True
    except ValueError:
        return False


@given(cases())
def test_derived_value_is_that_of_every_row(case: Case) -> None:
    kind, transform, values = case
    table = table_of([column(1, "c", kind)], [partitioned_by(transform)], format_version=3)
    file = parquet_file(content_of(kind, values))
    wanted = partitions_of(case)

    try:
        derived = file.data_file(table).partition
    except InvalidDataFile:
        # Buckets of several values may be the same by chance, which no bounds can say.
        is_chance = transform.startswith("bucket") and len(set(values)) > 1
        assert len(wanted) > 1 or is_chance or not all(is_partition(case, value) for value in wanted)
    else:
        assert set(derived) == wanted


@given(cases(), st.data())
def test_given_value_is_taken_unless_some_row_surely_has_another(case: Case, data: st.DataObject) -> None:
    kind, transform, values = case
    table = table_of([column(1, "c", kind)], [partitioned_by(transform)], format_version=3)
    parsed = parse_transform(transform)
    result = parsed.result_type(parse_primitive(kind))
    assert isinstance(result, PrimitiveType)
    other = data.draw(SOURCES[kind][1])
    function = transform_function(parsed, parse_primitive(kind))
    chosen = data.draw(st.sampled_from([*partitions_of(case), function(other), None]))
    assume(is_partition(case, chosen))
    shown = None if chosen is None else to_json_value(result, chosen)
    file = parquet_file(content_of(kind, values), {"part": shown})

    if partitions_of(case) == {chosen}:
        assert file.data_file(table).partition == (chosen,)
    elif not (transform.startswith("bucket") and len(set(values)) > 1 and None not in {chosen, *values}):
        with pytest.raises(InvalidDataFile):
            file.data_file(table)
