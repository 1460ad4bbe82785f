"""What a scan is about: snapshots, ranges of them, columns."""

from __future__ import annotations

from typing import Any

import pytest

from app.engine.expressions.expression_json import parse_expression
from app.engine.model.ids import SnapshotId
from app.engine.model.table_metadata import TableMetadata
from app.engine.scan.scan_scope import ScanRequest, appends_in, scope_of
from app.errors import InvalidFilter, InvalidRequest, NotSupported
from tests.builders.histories import branch, history, line, snapshot
from tests.unit.engine.documents import column, schema


def table() -> TableMetadata:
    """Return a table whose second snapshot was made by an overwrite, and which has lost a column since its first."""
    snapshots = [
        item.replace(summary={"operation": operation}, schema_id=schema_id)
        for item, operation, schema_id in zip(
            line(4), ("append", "overwrite", "append", "append"), (7, 0, 0, 0), strict=True
        )
    ]
    metadata = history([*snapshots, snapshot(9)], {"main": branch(4)})
    old = schema(column(1, "ID", "long"), column(2, "gone", "string"), schema_id=7)
    new = schema(column(1, "ID", "long"), column(3, "a", "int"), column(4, "A", "int"), schema_id=0)
    return metadata.replace(schemas=(old, new), current_schema_id=new.schema_id)


def wanted(**changes: Any) -> ScanRequest:
    return ScanRequest(**changes)


def test_without_a_snapshot_the_table_is_read_as_it_is() -> None:
    scope = scope_of(table(), wanted())

    assert scope.snapshot is not None
    assert (scope.snapshot.snapshot_id, scope.start_snapshot_id, scope.rows.schema.schema_id) == (4, None, 0)


def test_table_without_data_has_no_snapshot() -> None:
    assert scope_of(history([], {}), wanted()).snapshot is None


def test_earlier_snapshot_is_read_with_the_columns_of_now_unless_its_own_are_asked_for() -> None:
    of_now = scope_of(table(), wanted(snapshot_id=SnapshotId(1)))
    of_then = scope_of(table(), wanted(snapshot_id=SnapshotId(1), use_snapshot_schema=True, select=("gone",)))

    assert (of_now.rows.schema.schema_id, of_then.rows.schema.schema_id) == (0, 7)


def test_filter_is_about_the_columns_that_are_read() -> None:
    old = parse_expression({"type": "eq", "term": "gone", "value": "x"})

    scope_of(table(), wanted(snapshot_id=SnapshotId(1), use_snapshot_schema=True, filter=old))
    with pytest.raises(InvalidFilter):
        scope_of(table(), wanted(snapshot_id=SnapshotId(1), filter=old))


def test_names_that_only_the_table_has_are_its_own_though_those_of_the_snapshot_are_asked_for() -> None:
    # So Spark 4 reads a table whose columns have changed since its last snapshot.
    newer = parse_expression({"type": "eq", "term": "a", "value": 1})

    selected = scope_of(
        table(), wanted(snapshot_id=SnapshotId(1), use_snapshot_schema=True, select=("ID", "A"))
    )
    filtered = scope_of(table(), wanted(snapshot_id=SnapshotId(1), use_snapshot_schema=True, filter=newer))

    assert (selected.rows.schema.schema_id, filtered.rows.schema.schema_id) == (0, 0)
    with pytest.raises(InvalidRequest, match="named 'a'"):  # names of both cannot be meant
        scope_of(table(), wanted(snapshot_id=SnapshotId(1), use_snapshot_schema=True, select=("gone", "a")))


def renamed() -> TableMetadata:
    """Return a table whose column `word` was dropped and made anew after the last snapshot of `main`."""
    metadata = history([item.replace(schema_id=7) for item in line(2)], {"main": branch(2)})
    old = schema(column(1, "id", "long"), column(2, "word", "string"), schema_id=7)
    new = schema(column(1, "id", "long"), column(3, "word", "string"), schema_id=0)
    return metadata.replace(schemas=(old, new), current_schema_id=new.schema_id)


@pytest.mark.parametrize("term", ["word", {"type": "transform", "transform": "truncate[2]", "term": "word"}])
def test_filter_on_a_name_of_two_columns_is_refused_where_a_branch_may_be_read(term: Any) -> None:
    words = parse_expression(
        {
            "type": "or",
            "left": {"type": "not", "child": {"type": "not-eq", "term": term, "value": "a"}},
            "right": {"type": "eq", "term": "id", "value": 3},
        }
    )

    with pytest.raises(InvalidFilter, match="'word' is one column in the schema of snapshot 2 and another"):
        scope_of(renamed(), wanted(snapshot_id=SnapshotId(2), use_snapshot_schema=True, filter=words))

    earlier = scope_of(renamed(), wanted(snapshot_id=SnapshotId(1), use_snapshot_schema=True, filter=words))
    today = scope_of(renamed(), wanted(snapshot_id=SnapshotId(2), filter=words))
    assert (earlier.rows.schema.schema_id, today.rows.schema.schema_id) == (7, 0)


def test_filter_on_other_columns_than_renamed_ones_is_not_refused() -> None:
    numbers = parse_expression({"type": "eq", "term": "ID", "value": 3})

    found = scope_of(
        renamed(),
        wanted(snapshot_id=SnapshotId(2), use_snapshot_schema=True, filter=numbers, case_sensitive=False),
    )

    assert found.rows.schema.schema_id == 7


@pytest.mark.parametrize(
    "changes",
    [
        {"snapshot_id": 77},
        {"start_snapshot_id": 1},
        {"end_snapshot_id": 4},
        {"start_snapshot_id": 1, "end_snapshot_id": 4, "snapshot_id": 4},
        {"start_snapshot_id": 1, "end_snapshot_id": 77},
        {"start_snapshot_id": 9, "end_snapshot_id": 4},
        {"start_snapshot_id": 4, "end_snapshot_id": 1},
        {"select": ("nope",)},
        {"select": ("id",)},
        {"stats_fields": ("nope",)},
        {"select": ("a",), "case_sensitive": False},
    ],
)
def test_what_does_not_exist_or_fit_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        scope_of(table(), wanted(**changes))


def test_columns_are_found_by_name_and_by_any_case_if_that_is_asked_for() -> None:
    assert scope_of(table(), wanted(stats_fields=("ID", "a"))).stats_ids == {1, 3}
    assert scope_of(table(), wanted(stats_fields=("id",), case_sensitive=False)).stats_ids == {1}


def test_columns_that_readers_add_may_be_selected() -> None:
    assert scope_of(table(), wanted(select=("_file", "_pos", "_row_id", "ID"))).stats_ids == set()


def test_column_that_no_plan_can_bring_is_refused() -> None:
    # Spark would read null, and copy that into the rows that an update leaves as they are.
    with pytest.raises(NotSupported, match="_last_updated_sequence_number"):
        scope_of(table(), wanted(select=("ID", "_last_updated_sequence_number")))


@pytest.mark.parametrize(
    ("start", "end", "appended"),
    [(1, 4, [3, 4]), (2, 4, [3, 4]), (3, 4, [4]), (4, 4, []), (1, 3, [3]), (1, 2, [])],
)
def test_range_has_the_appends_after_its_start(start: int, end: int, appended: list[int]) -> None:
    metadata = table()
    scope = scope_of(metadata, wanted(start_snapshot_id=SnapshotId(start), end_snapshot_id=SnapshotId(end)))

    assert [item.snapshot_id for item in appends_in(metadata, scope)] == appended


def test_range_may_start_at_a_snapshot_that_has_expired() -> None:
    metadata = table()
    kept = metadata.replace(snapshots=metadata.snapshots[1:])
    scope = scope_of(kept, wanted(start_snapshot_id=SnapshotId(1), end_snapshot_id=SnapshotId(3)))

    assert [item.snapshot_id for item in appends_in(kept, scope)] == [3]
