from __future__ import annotations

from app.engine.diff.metadata_diff import creation_diff, metadata_diff
from app.engine.diff.schema_changes import ColumnAdded
from tests.unit.engine.documents import (
    column,
    committed,
    schema_json,
    snapshot_json,
    table,
    table_with_snapshots,
)


def test_equal_metadata_has_no_differences() -> None:
    diff = metadata_diff(table(), table(last_updated_ms=1_800_000_000_000))

    assert (diff.format_version, diff.location, diff.spec, diff.order) == (None, None, None, None)
    assert (diff.schema, diff.properties, diff.refs, diff.snapshots_added) == ((), {}, {}, ())


def test_every_kind_of_difference_is_told_with_before_and_after() -> None:
    before = table_with_snapshots(1, properties={"a": "1", "b": "2"})
    columns = [
        column(1, "id", "long", required=True),
        column(2, "category", "string"),
        column(3, "note", "string"),
    ]
    after = committed(
        before,
        {"action": "add-schema", "schema": schema_json(*columns), "last-column-id": 3},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "set-properties", "updates": {"a": "9", "c": "3"}},
        {"action": "remove-properties", "removals": ["b"]},
        {"action": "add-snapshot", "snapshot": snapshot_json(2, 2, 1)},
        {"action": "set-snapshot-ref", "ref-name": "audit", "type": "branch", "snapshot-id": 2},
    )

    diff = metadata_diff(before, after)
    back = metadata_diff(after, before)

    assert [type(change) for change in diff.schema] == [ColumnAdded]
    assert diff.spec is not None
    assert [spec and len(spec.fields) for spec in diff.spec] == [1, 0]
    assert diff.properties == {"a": ("1", "9"), "b": ("2", None), "c": (None, "3")}
    assert diff.refs == {"audit": (None, after.snapshot_refs["audit"])}
    assert (diff.snapshots_added, diff.snapshots_removed) == ((2,), ())
    assert (back.snapshots_added, back.snapshots_removed) == ((), (2,))


def test_snapshots_are_told_in_the_order_in_which_they_came() -> None:
    ids = [7_000_000_000_000_000_007, 3, 9_000_000_000_000_000_001, 1, 5_000_000_000]
    base, after = table(), table()
    for place, snapshot_id in enumerate(ids):
        parent = ids[place - 1] if place else None
        after = committed(
            after, {"action": "add-snapshot", "snapshot": snapshot_json(snapshot_id, place + 1, parent)}
        )

    assert list(metadata_diff(base, after).snapshots_added) == ids
    assert list(metadata_diff(after, base).snapshots_removed) == ids


def test_format_version_and_location_are_told() -> None:
    upgraded = committed(
        table(),
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "set-location", "location": "s3://bucket/elsewhere"},
    )

    diff = metadata_diff(table(), upgraded)

    assert diff.format_version == (2, 3)
    assert diff.location == ("s3://bucket/t", "s3://bucket/elsewhere")


def test_everything_of_a_new_table_is_new() -> None:
    made = table_with_snapshots(2, properties={"a": "1"})

    diff = creation_diff(made)

    assert (diff.format_version, diff.location) == ((None, 2), (None, made.location))
    assert (diff.spec, diff.order) == ((None, made.default_spec), (None, made.default_sort_order))
    assert [change.name for change in diff.schema if isinstance(change, ColumnAdded)] == ["id", "category"]
    assert diff.properties == {"a": (None, "1")}
    assert diff.refs == {"main": (None, made.snapshot_refs["main"])}
    assert (diff.snapshots_added, diff.snapshots_removed) == ((1, 2), ())
