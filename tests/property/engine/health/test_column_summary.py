"""What is known of columns, beside a count file by file and value by value."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.engine.health.column_summary import ColumnSummaries
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.data_types.values import from_bytes, is_nan, order_key, to_bytes
from tests.builders.live_metrics import metrics_of_maps
from tests.strategies.single_values import single_values
from tests.unit.engine.documents import column, schema

KINDS = (
    *(
        "long",
        "double",
        "string",
        "uuid",
        "fixed[3]",
        "decimal(9, 2)",
        "boolean",
        "timestamp",
        "int",
        "float",
        "date",
    ),
    *("time", "timestamptz", "timestamp_ns", "timestamptz_ns", "binary", "decimal(38, 10)", "fixed[0]"),
)
SCHEMA = schema(*(column(at, f"c{at}", kind) for at, kind in enumerate(KINDS, 1)))


def counts() -> st.SearchStrategy[Any]:
    return st.none() | st.dictionaries(st.integers(1, len(KINDS) + 1), st.integers(-1, 9), max_size=8)


@st.composite
def bounds(draw: st.DrawFn) -> dict[int, bytes] | None:
    """Return bounds of some columns, most of which make sense."""
    found: dict[int, bytes] = {}
    for at in draw(st.lists(st.integers(1, len(KINDS)), max_size=8, unique=True)):
        kind = parse_primitive(KINDS[at - 1])
        right = single_values(kind).map(partial(to_bytes, kind))
        found[at] = draw(right | right | right | st.binary(max_size=8))
    return found or None


FILES = st.lists(st.tuples(counts(), counts(), counts(), counts(), bounds(), bounds()), max_size=5)


@given(st.lists(FILES, max_size=3))
def test_summary_equals_a_count_file_by_file(manifests: list[list[Any]]) -> None:
    summaries = ColumnSummaries(SCHEMA)
    for files in manifests:
        columns = [list(values) for values in zip(*files, strict=True)] if files else [[]] * 6
        summaries.add(metrics_of_maps([1] * len(files), *columns))
    together = [file for files in manifests for file in files]

    for at, kind in enumerate(KINDS, 1):
        found = summaries.columns[at]  # type: ignore[index]  # ids are numbers
        sizes, values, nulls, nans = (
            [(file[place] or {}).get(at, -1) for file in together] for place in range(4)
        )
        for tally, expected in (
            (found.sizes, sizes),
            (found.values, values),
            (found.nulls, nulls),
            (found.nans, nans),
        ):
            known = [count for count in expected if count >= 0]
            assert (tally.total, tally.files) == (sum(known), len(known))
        for share, parts in ((found.null_share, nulls), (found.nan_share, nans)):
            both = [
                (part, count) for part, count in zip(parts, values, strict=True) if part >= 0 and count >= 0
            ]
            assert (share.part, share.values) == (
                sum(part for part, _ in both),
                sum(count for _, count in both),
            )
        for extreme, number, place, choose in (
            (found.lower, found.lower_files, 4, min),
            (found.upper, found.upper_files, 5, max),
        ):
            sound = decoded(kind, [(file[place] or {}).get(at) for file in together])
            assert number <= len([file for file in together if at in (file[place] or {})])
            assert number >= len(sound)
            if sound:
                assert order_key(extreme) == order_key(choose(sound, key=order_key))


def decoded(kind: str, found: list[bytes | None]) -> list[Any]:
    """Return the values of the bounds that make sense."""
    values = []
    for bound in found:
        try:
            value = None if bound is None else from_bytes(parse_primitive(kind), bound)
        except ValueError:
            continue
        if value is not None and not is_nan(value):
            values.append(value)
    return values
