"""Columns that change in a table with files: their defaults, and their types where files are partitioned by them."""

from __future__ import annotations

from typing import Any

import pytest

from app.engine.model.ids import FieldId
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidUpdate
from tests.unit.engine.documents import (
    BASE_LOCATION,
    Json,
    add_snapshot,
    applied,
    column,
    committed,
    part,
    schema_json,
    set_ref,
    snapshot_json,
    spec_json,
    table,
    table_with_snapshots,
)


def refusal(base: TableMetadata, *updates: Json) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        applied(base, *updates).finish(BASE_LOCATION)
    return str(caught.value)


def defaulted(kind: str, initial: object, **more: Any) -> Json:
    return schema_json(
        column(1, "id", "long", required=True), column(2, "c", kind, initial_default=initial, **more)
    )


@pytest.mark.parametrize(
    ("was", "now"),
    [(5, 6), (5, None), (None, 5), ("five", 5)],
    ids=["other value", "left out", "set later", "none that makes sense"],
)
def test_rows_of_older_files_keep_what_they_have_in_a_column(was: object, now: object) -> None:
    base = table_with_snapshots(1, 3, schemas=[defaulted("int", was)])

    assert refusal(
        base,
        {"action": "add-schema", "schema": defaulted("int", now)},
        {"action": "set-current-schema", "schema-id": -1},
    ) == (f"Cannot change the initial default of c from {was} to {now}: it is what rows of older files have")


@pytest.mark.parametrize(
    ("kind", "was", "now"),
    [("int", 5, 5), ("binary", "00ff", "00FF"), ("timestamp", "2024-01-01T00:00", "2024-01-01T00:00:00")],
)
def test_default_of_new_rows_changes_and_that_of_older_ones_has_several_spellings(
    kind: str, was: object, now: object
) -> None:
    base = table_with_snapshots(1, 3, schemas=[defaulted(kind, was)])

    after = committed(
        base,
        {"action": "add-schema", "schema": defaulted(kind, now, write_default=None, doc="more")},
        {"action": "set-current-schema", "schema-id": -1},
    )

    assert after.current_schema.columns[FieldId(2)].field.doc == "more"


@pytest.mark.parametrize(
    ("found", "was", "wanted", "now"),
    [
        ("int", 5, "long", None),
        ("int", 5, "long", 6),
        ("int", None, "long", 5),
        ("float", 0.5, "double", 0.25),
        ("date", "2024-01-01", "timestamp", "2024-01-02T00:00:00"),
    ],
)
def test_default_is_not_lost_where_a_column_becomes_wider(
    found: str, was: object, wanted: str, now: object
) -> None:
    base = table_with_snapshots(1, 3, schemas=[defaulted(found, was)])

    assert refusal(
        base,
        {"action": "add-schema", "schema": defaulted(wanted, now)},
        {"action": "set-current-schema", "schema-id": -1},
    ) == (f"Cannot change the initial default of c from {was} to {now}: it is what rows of older files have")


@pytest.mark.parametrize(
    ("found", "was", "wanted", "now"),
    [
        ("float", 0.1, "double", 0.1),
        ("float", 0.1, "double", 0.10000000149011612),
        ("date", "2024-01-01", "timestamp", "2024-01-01T00:00:00"),
        ("decimal(9, 2)", "1.50", "decimal(12, 2)", "1.50"),
    ],
)
def test_default_of_a_wider_column_has_the_spelling_of_its_type(
    found: str, was: object, wanted: str, now: object
) -> None:
    unpartitioned = [{"spec-id": 0, "fields": []}]
    base = table_with_snapshots(1, 3, schemas=[defaulted(found, was)], partition_specs=unpartitioned)

    after = committed(
        base,
        {"action": "add-schema", "schema": defaulted(wanted, now)},
        {"action": "set-current-schema", "schema-id": -1},
    )

    assert after.current_schema.columns[FieldId(2)].field.initial_default == now


def test_schema_that_takes_the_id_of_the_current_one_is_looked_at() -> None:
    more = schema_json(
        column(1, "id", "long", required=True),
        column(2, "c", "int", initial_default=5),
        column(3, "d", "int"),
        schema_id=1,
    )
    base = table_with_snapshots(1, 3, schemas=[defaulted("int", 5), more], current_schema_id=1)

    assert refusal(
        base,
        {"action": "set-current-schema", "schema-id": 0},
        {"action": "remove-schemas", "schema-ids": [1]},
        {"action": "add-schema", "schema": defaulted("int", None)},
        {"action": "set-current-schema", "schema-id": -1},
    ).startswith("Cannot change the initial default of c from 5 to None")


def test_default_goes_with_a_wider_type_and_with_rows_that_are_gone() -> None:
    wider: tuple[Json, ...] = (
        {"action": "add-schema", "schema": defaulted("long", 5)},
        {"action": "set-current-schema", "schema-id": -1},
    )
    without: tuple[Json, ...] = (
        {"action": "add-schema", "schema": defaulted("int", None)},
        {"action": "set-current-schema", "schema-id": -1},
    )

    committed(table_with_snapshots(1, 3, schemas=[defaulted("int", 5)]), *wider)
    committed(table(3, schemas=[defaulted("int", 5)]), *without)
    # Main goes back to a state from before the column had rows.
    committed(table_with_snapshots(2, 3, schemas=[defaulted("int", 5)]), set_ref("main", 1), *without)


def typed(kind: str) -> Json:
    return schema_json(column(1, "id", "long", required=True), column(2, "c", kind))


def promoted(kind: str) -> tuple[Json, ...]:
    return (
        {"action": "add-schema", "schema": typed(kind)},
        {"action": "set-current-schema", "schema-id": -1},
    )


@pytest.mark.parametrize(
    ("transform", "found", "wanted"),
    [
        ("identity", "date", "timestamp"),
        ("bucket[4]", "date", "timestamp_ns"),
        ("identity", "date", "timestamptz"),
        ("identity", "timestamp", "timestamp_ns"),
        ("identity", "int", "string"),
        ("bucket[4]", "int", "string"),
        ("truncate[2]", "string", "int"),
        ("identity", "string", "binary"),
        ("identity", "decimal(9, 2)", "decimal(9, 3)"),
        ("identity", "fixed[2]", "fixed[3]"),
    ],
)
def test_column_that_files_are_partitioned_by_keeps_its_values(
    transform: str, found: str, wanted: str
) -> None:
    spec = [spec_json(part("p", 2, 1000, transform))]
    base = table_with_snapshots(1, 3, schemas=[typed(found)], partition_specs=spec)

    assert refusal(base, *promoted(wanted)) == (
        f"Cannot change the type of c from {found} to {wanted}: {transform} in partition spec 0 has other values for it"
    )


@pytest.mark.parametrize(
    ("transform", "found", "wanted"),
    [
        *((transform, "date", "timestamp") for transform in ("year", "month", "day", "void")),
        *((transform, "int", "long") for transform in ("identity", "bucket[4]", "truncate[4]")),
        *(
            (transform, "decimal(9, 2)", "decimal(20, 2)")
            for transform in ("identity", "bucket[4]", "truncate[4]")
        ),
        ("identity", "float", "double"),
        ("identity", "unknown", "string"),
        ("zorder", "date", "timestamp"),
    ],
)
def test_column_is_widened_where_partitions_stay_the_same(transform: str, found: str, wanted: str) -> None:
    spec = [spec_json(part("p", 2, 1000, transform))]
    base = table_with_snapshots(1, 3, schemas=[typed(found)], partition_specs=spec)

    committed(base, *promoted(wanted))


def test_date_becomes_a_timestamp_in_a_table_that_begins_anew() -> None:
    spec = [spec_json(part("p", 2, 1000))]
    empty = table(3, schemas=[typed("date")], partition_specs=spec)
    base = table_with_snapshots(1, 3, schemas=[typed("date")], partition_specs=spec)

    committed(empty, *promoted("timestamp"))
    committed(
        base,
        {"action": "remove-snapshot-ref", "ref-name": "main"},
        *promoted("timestamp"),
        add_snapshot(snapshot_json(7, 2, first_row_id=0, added_rows=1)),
        set_ref("main", 7),
    )
