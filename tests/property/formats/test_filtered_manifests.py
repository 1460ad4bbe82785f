"""Filtering a manifest as columns loses no entry that may have a value in the range, and keeps none that went."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.engine.expressions.expression_json import parse_expression
from app.engine.model.data_types.types import NestedField, PrimitiveType, parse_primitive
from app.engine.model.data_types.values import from_bytes, is_nan, order_key, to_bytes
from app.engine.model.files.entry_filters import FilterableEntries, ValueRange, live_entries
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import FieldId, Location, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.engine.selection.files import FileSelection, RowFilter
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.writer import write_manifest
from tests.strategies.single_values import single_values

KINDS = (
    "int long float double date time timestamp timestamptz timestamp_ns timestamptz_ns string binary fixed[5] "
    "decimal(9,2) decimal(38,10) boolean"
).split()
NARROWER = {"long": "int", "double": "float", "timestamp": "date", "timestamp_ns": "date"}
"""Bounds from before a column was promoted are in the narrower type's form."""
COUNT = 600
"""Enough for columns to be worth it."""
COLUMN, OTHER = FieldId(5), FieldId(2**20)
FILE = DataFile(FileContent.DATA, Location(""), "parquet", SpecId(0), (None,), 1, 1)
SPEC = PartitionSpec.from_object(
    {"spec-id": 0, "fields": [{"name": "p", "transform": "identity", "source-id": 9, "field-id": 1000}]}
)


def schema_of(kind: PrimitiveType) -> Schema:
    fields = (
        NestedField(id=COLUMN, name="c", required=False, type=kind),
        NestedField(id=FieldId(9), name="p", required=False, type=parse_primitive("int")),
    )
    return Schema(type="struct", fields=fields)


@dataclass(frozen=True)
class Case:
    """A manifest and what is asked of it."""

    kind: PrimitiveType
    entries: list[ManifestEntry]
    columns: ManifestColumns
    wanted: ValueRange
    partitions: frozenset[int | None]

    def is_wanted(self, partition: tuple[Any, ...]) -> bool:
        return partition[0] in self.partitions


@st.composite
def bounds(draw: st.DrawFn, kind: PrimitiveType) -> dict[str, dict[int, bytes] | None]:
    """Return lower and upper bounds: some missing, none at all, NaN, old forms, nonsense."""
    form = parse_primitive(NARROWER[kind.kind]) if kind.kind in NARROWER and draw(st.booleans()) else kind
    pair = draw(st.tuples(single_values(form), single_values(form)))
    if not any(map(is_nan, pair)):
        pair = pair if order_key(pair[0]) < order_key(pair[1]) else pair[::-1]
    metrics: dict[str, dict[int, bytes] | None] = {}
    for name, value in zip(("lower_bounds", "upper_bounds"), pair, strict=True):
        bound = draw(st.sampled_from([to_bytes(form, value)] * 6 + [None, b"", b"\x01\x02\x03"]))
        other: dict[int, bytes] = {OTHER: b"\xff" * 70} if draw(st.booleans()) else {}
        own: dict[int, bytes] = {} if bound is None else {COLUMN: bound}
        metrics[name] = draw(st.sampled_from([other | own, own | other, other | own, None]))
    return metrics


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kind = parse_primitive(draw(st.sampled_from(KINDS)))
    different = draw(st.lists(bounds(kind), min_size=1, max_size=8))
    partitions = st.none() | st.integers(0, 3)
    mixed = st.lists(st.tuples(st.sampled_from(EntryStatus), partitions), min_size=1, max_size=7)
    marks = draw(
        mixed
        | st.just([(EntryStatus.ADDED, 0)])
        | st.just([(EntryStatus.ADDED, 0)] * 7 + [(EntryStatus.DELETED, 1)])
    )
    entries = []
    for at in range(COUNT):
        status, partition = marks[at % len(marks)]
        metrics: dict[str, Any] = different[at % len(different)]
        file = replace(FILE, file_path=Location(f"s3://b/{at}"), partition=(partition,), **metrics)
        entries.append(ManifestEntry(status, None, None if status is EntryStatus.ADDED else 1, 1, file))
    written = write_manifest(entries, schema=schema_of(kind), spec=SPEC, format_version=2, snapshot_id=None)
    columns = ManifestColumns(
        ManifestFile(Location("memory://m"), 0, SpecId(0), sequence_number=1), written.content
    )
    known = [value for metrics in different for value in _values(kind, metrics) if is_of(kind, value)]
    limits = st.none() | single_values(kind).filter(lambda value: not is_nan(value))
    limits = limits | st.sampled_from(known) if known else limits
    wanted = ValueRange(COLUMN, kind, draw(limits), draw(limits))
    asked_for = draw(st.just({None, 0, 1, 2, 3}) | st.sets(partitions))
    return Case(kind, entries, columns, wanted, frozenset(asked_for))


def _values(kind: PrimitiveType, metrics: dict[str, dict[int, bytes] | None]) -> Iterator[Any]:
    for by_field in metrics.values():
        value = read_bound(kind, by_field)
        if value is not None:
            yield value


def read_bound(kind: PrimitiveType, by_field: Any) -> Any:
    """Return a bound; None where it is missing or says nothing. Those of fixed values may be cut short."""
    if kind.kind == "fixed":
        kind = parse_primitive("binary")
    try:
        value = from_bytes(kind, (by_field or {})[COLUMN])
    except (KeyError, ValueError):
        return None
    if kind.kind == "timestamp_ns" and not is_of(kind, value):
        return None  # a date that became a moment, and is one that no moment's number reaches
    return None if is_nan(value) else value


def is_of(kind: PrimitiveType, value: Any) -> bool:
    try:
        to_bytes(kind, value)
    except ValueError:
        return False
    return True


def may_be_in(wanted: ValueRange, file: DataFile) -> bool:
    lower, upper = read_bound(wanted.kind, file.lower_bounds), read_bound(wanted.kind, file.upper_bounds)
    is_below = upper is not None and wanted.lowest is not None and order_key(upper) < order_key(wanted.lowest)
    is_above = (
        lower is not None and wanted.highest is not None and order_key(lower) > order_key(wanted.highest)
    )
    return not (is_below or is_above)


def paths(entries: Iterator[ManifestEntry]) -> list[str]:
    return [entry.file.file_path for entry in entries]


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(cases())
def test_no_entry_is_lost_and_none_is_kept_that_bounds_rule_out(case: Case) -> None:
    found = paths(live_entries(case.columns, case.is_wanted, [case.wanted]))

    live = [entry for entry in case.entries if entry.is_live and case.is_wanted(entry.file.partition)]
    possible = [entry.file.file_path for entry in live if may_be_in(case.wanted, entry.file)]
    assert set(possible) <= set(found)
    assert set(found) <= {entry.file.file_path for entry in live}
    assert found == sorted(found, key=lambda path: int(path.rpartition("/")[2]))
    # Where columns are worth it and the type has any, they rule out all that bounds can; zeros have two signs only.
    is_zero = case.kind.kind in ("float", "double") and 0.0 in (case.wanted.lowest, case.wanted.highest)
    if len(live) > COUNT // 4 and len(live) >= 500 and case.kind.kind != "boolean" and not is_zero:
        assert found == possible


@given(cases())
def test_partitions_are_filtered_as_one_by_one(case: Case) -> None:
    assert isinstance(case.columns, FilterableEntries)
    as_columns = list(live_entries(case.columns, case.is_wanted))

    one_by_one = list(live_entries(iter(case.columns), case.is_wanted))

    assert [repr(entry) for entry in as_columns] == [repr(entry) for entry in one_by_one]


@given(
    cases(),
    st.sampled_from([True, {"type": "eq", "term": "p", "value": 1}, {"type": "is-null", "term": "c"}]),
    st.integers(-1, COUNT),
)
def test_places_are_those_of_a_walk_through_all(case: Case, rows: Any, after: int) -> None:
    selection = FileSelection(RowFilter.of(parse_expression(rows), schema_of(case.kind)), [SPEC])
    manifest = ManifestFile(Location("memory://m"), 0, SpecId(0), sequence_number=1)

    as_columns = list(selection.placed(manifest, case.columns, after))

    one_by_one = list(selection.placed(manifest, iter(case.columns), after))
    assert repr(as_columns) == repr(one_by_one)
