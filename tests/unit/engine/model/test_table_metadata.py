"""Table metadata: reading every version and old forms, what is refused, what always holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.engine.model.ids import SpecId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata, check_invariants, complete, read_table_metadata
from app.errors import InvalidMetadata
from tests.unit.engine.documents import (
    NOW_MS,
    OTHER_UUID,
    Json,
    column,
    encoded,
    order_json,
    part,
    schema_json,
    snapshot_json,
    sort_json,
    spec_json,
    table,
    table_json,
    table_with_snapshots,
)


def refusal(document: object) -> str:
    with pytest.raises(InvalidMetadata) as caught:
        read_table_metadata(encoded(document))
    return str(caught.value)


def without(document: Json, *names: str) -> Json:
    return {name: value for name, value in document.items() if name not in names}


FULL_V3: Json = {
    "format-version": 3,
    "table-uuid": OTHER_UUID,
    "location": "s3://bucket/t",
    "last-sequence-number": 2,
    "last-updated-ms": NOW_MS + 5000,
    "last-column-id": 3,
    "current-schema-id": 1,
    "vendor": {"a": [None]},
    "schemas": [
        schema_json(column(1, "id", "long", required=True)),
        schema_json(
            column(1, "id", "long", required=True, doc="the id"),
            column(2, "at", "timestamp_ns", note=1),
            column(3, "n", "int", initial_default=1, write_default=2),
            schema_id=1,
            identifiers=[1],
        )
        | {"vendor": 1},
    ],
    "default-spec-id": 1,
    "partition-specs": [
        spec_json(),
        spec_json(part("at_day", 2, 1000, "day") | {"note": 1}, spec_id=1) | {"vendor": 2},
    ],
    "last-partition-id": 1000,
    "default-sort-order-id": 1,
    "sort-orders": [order_json(order_id=0), order_json(sort_json(1) | {"note": 1}) | {"vendor": 3}],
    "properties": {"owner": "ü😀", "": ""},
    "current-snapshot-id": 12,
    "next-row-id": 30,
    "encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "AA==", "vendor": 4}],
    "refs": {
        "main": {"snapshot-id": 12, "type": "branch", "min-snapshots-to-keep": 3, "max-snapshot-age-ms": 4},
        "v1": {"snapshot-id": 11, "type": "tag", "max-ref-age-ms": 5, "vendor": 5},
    },
    "snapshots": [
        snapshot_json(11, 1, first_row_id=0, added_rows=10, schema_id=0, vendor=6),
        snapshot_json(12, 2, 11, first_row_id=10, added_rows=20, schema_id=1, key_id="k"),
    ],
    "statistics": [
        {
            "snapshot-id": 11,
            "statistics-path": "s3://b/s",
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
            "vendor": 7,
        }
    ],
    "partition-statistics": [
        {"snapshot-id": 12, "statistics-path": "s3://b/p", "file-size-in-bytes": 1, "vendor": 8}
    ],
    "snapshot-log": [
        {"timestamp-ms": NOW_MS + 1000, "snapshot-id": 11, "vendor": 9},
        {"timestamp-ms": NOW_MS + 2000, "snapshot-id": 12},
    ],
    "metadata-log": [{"timestamp-ms": NOW_MS, "metadata-file": "s3://b/0.json", "vendor": 10}],
}


@pytest.mark.parametrize("document", [table_json(1), table_json(2), table_json(3), FULL_V3])
def test_document_is_read_and_written_without_loss(document: Json) -> None:
    metadata = read_table_metadata(encoded(document))

    assert json.loads(metadata.to_json()) == document
    assert read_table_metadata(metadata.to_json()) == metadata


def test_fields_are_written_in_the_order_of_the_spec_and_unknown_ones_last() -> None:
    metadata = read_table_metadata(encoded(dict(reversed(FULL_V3.items()))))

    written = list(json.loads(metadata.to_json()))

    assert written[:5] == [
        "format-version",
        "table-uuid",
        "location",
        "last-sequence-number",
        "last-updated-ms",
    ]
    assert written[-2:] == ["metadata-log", "vendor"]


def test_parts_are_found_by_the_ids_that_are_current() -> None:
    metadata = read_table_metadata(encoded(FULL_V3))

    assert metadata.uuid == OTHER_UUID
    assert metadata.current_schema.schema_id == 1
    assert metadata.default_spec.fields[0].name == "at_day"
    assert metadata.default_sort_order.order_id == 1
    assert metadata.current_snapshot == metadata.snapshots[1]
    assert metadata.snapshot_refs["v1"].snapshot_id == 11


def test_only_referenced_snapshots_can_be_asked_for() -> None:
    metadata = table_with_snapshots(
        5,
        refs={
            name: {"snapshot-id": number, "type": kind}
            for name, number, kind in [("main", 5, "branch"), ("old", 2, "tag"), ("older", 2, "tag")]
        },
    )

    lean = metadata.with_referenced_snapshots_only()

    assert [item.snapshot_id for item in lean.snapshots] == [2, 5]
    assert len(lean.snapshot_log) == 5
    assert list(lean.snapshots_by_id) == [2, 5]


# ------------------------------------------------------------------------------------------ versions and old forms


@pytest.mark.parametrize("version", [0, -1, 4, 42, 2**31 - 1])
def test_unknown_format_version_is_named_whatever_else_the_document_holds(version: int) -> None:
    message = f"Cannot read unsupported version {version}: this build knows 1 to 3"

    assert refusal(table_json(2) | {"format-version": version}) == message
    assert refusal({"format-version": version, "location": None}) == message


@pytest.mark.parametrize("version", ["2", 2.0, True, None, 2**31, []])
def test_format_version_that_is_no_number_is_refused(version: object) -> None:
    assert refusal(table_json(2) | {"format-version": version}).startswith("format-version: ")


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b"null", b"{}", b"\x1f\x8b"])
def test_what_is_no_metadata_document_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidMetadata):
        read_table_metadata(content)


EARLY_V1: Json = {
    "format-version": 1,
    "location": "s3://bucket/t",
    "last-updated-ms": NOW_MS,
    "last-column-id": 2,
    "schema": {"type": "struct", "fields": [column(1, "id", "long"), column(2, "category", "string")]},
    "partition-spec": [part("category", 2), part("id_bucket", 1, transform="bucket[4]")],
    "properties": {},
    "current-snapshot-id": 7,
    "snapshots": [{"snapshot-id": 7, "timestamp-ms": NOW_MS, "manifests": ["s3://bucket/m.avro"]}],
}


def test_early_v1_table_is_brought_to_the_form_of_later_ones() -> None:
    metadata = read_table_metadata(encoded(EARLY_V1))

    assert metadata.uuid == ""
    assert metadata.current_schema_id == 0
    assert [item.name for item in metadata.current_schema.fields] == ["id", "category"]
    assert [item.field_id for item in metadata.default_spec.fields] == [1000, 1001]
    assert metadata.last_partition_id == 1001
    assert metadata.default_sort_order.is_unsorted
    assert metadata.last_sequence == 0
    assert metadata.to_object()["refs"] == {"main": {"snapshot-id": 7, "type": "branch"}}
    assert metadata.to_object()["schema"] == EARLY_V1["schema"] | {"schema-id": 0}
    assert read_table_metadata(metadata.to_json()) == metadata


def test_v1_table_with_one_schema_keeps_its_schema_id() -> None:
    document = EARLY_V1 | {"schema": schema_json(column(1, "id", "long"), column(2, "category"), schema_id=6)}

    assert read_table_metadata(encoded(document)).current_schema_id == 6


def test_v1_partition_spec_keeps_the_field_ids_it_has() -> None:
    metadata = read_table_metadata(encoded(EARLY_V1 | {"partition-spec": [part("category", 2, 1003)]}))

    assert metadata.default_spec.fields[0].field_id == 1003
    assert metadata.last_partition_id == 1003


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ([{"name": "x", "transform": "identity"}], "partition-spec.fields[0].source-id: Field required"),
        (
            [part("x", 1) | {"field-id": None}],
            "partition-spec.fields[0].field-id: Input should be a valid integer",
        ),
        ([part("x", 1), part("y", 2, 1001)], "partition-spec.fields[0].field-id: Field required"),
        ([5], "partition-spec[0]: Input should be an object"),
        (None, "Cannot read metadata: partition-specs is missing"),
    ],
)
def test_v1_partition_spec_that_is_none_is_refused(spec: Any, reason: str) -> None:
    assert refusal(EARLY_V1 | {"partition-spec": spec}) == reason


def test_v1_table_without_any_schema_is_refused() -> None:
    assert refusal(without(EARLY_V1, "schema")) == "Cannot read metadata: schemas is missing"


def test_v1_sequence_number_says_nothing() -> None:
    assert (
        read_table_metadata(encoded(table_json(1) | {"last-sequence-number": 5})).last_sequence_number is None
    )


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (version, name)
        for version in (2, 3)
        for name in (
            "table-uuid last-sequence-number last-partition-id schemas partition-specs sort-orders".split()
        )
    ],
)
def test_field_that_its_version_needs_is_named(version: int, name: str) -> None:
    assert refusal(without(table_json(version), name)) == (
        f"Cannot read metadata: {name} is missing, which v{version} needs"
    )


@pytest.mark.parametrize("name", ["location", "last-updated-ms", "last-column-id"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_field_that_every_version_needs_is_named(version: int, name: str) -> None:
    assert refusal(without(table_json(version), name)) == f"{name}: Field required"


@pytest.mark.parametrize("name", ["current-schema-id", "default-spec-id", "default-sort-order-id"])
def test_list_needs_the_id_of_the_one_that_is_current(name: str) -> None:
    assert refusal(without(table_json(2), name)) == f"Cannot read metadata: {name} is missing"


def test_counters_are_never_lower_than_the_ids_that_the_metadata_uses() -> None:
    """Else the next column, partition field or row would be given an id that old files have for another one."""
    nested = {
        "id": 4,
        "name": "tags",
        "required": False,
        "type": {"type": "list", "element-id": 9, "element": "string", "element-required": False},
    }
    dropped = schema_json(column(1, "id", "long"), column(2, "at", "timestamp"), nested, schema_id=1)
    reserved = schema_json(column(1, "id", "long"), column(2147483646, "_file", "string"), schema_id=2)
    document = FULL_V3 | {
        "schemas": [schema_json(column(1, "id", "long")), dropped, reserved],
        "current-schema-id": 0,
        "last-column-id": 1,
        "partition-specs": [spec_json(), spec_json(part("at_day", 2, 1004, "day"), spec_id=1)],
        "last-partition-id": 999,
        "sort-orders": [order_json(order_id=1)],
        "next-row-id": 3,
    }

    read = read_table_metadata(encoded(document))

    assert (read.last_column_id, read.last_partition_id, read.next_row_id) == (9, 1004, 30)


def test_v3_needs_the_next_row_id_and_earlier_versions_have_none() -> None:
    assert refusal(without(table_json(3), "next-row-id")) == (
        "Cannot read metadata: next-row-id is missing, which v3 needs"
    )
    assert table(2, next_row_id=5).next_row_id is None


@pytest.mark.parametrize("version", [2, 3])
def test_forms_of_v1_are_dropped_from_later_tables(version: int) -> None:
    metadata = table(version, schema=schema_json(), partition_spec=[])

    assert metadata == table(version)


@pytest.mark.parametrize("written", [{}, {"current-snapshot-id": None}, {"current-snapshot-id": -1}])
@pytest.mark.parametrize(("version", "expected"), [(1, -1), (2, -1), (3, None)])
def test_no_snapshot_is_written_in_one_way_by_each_version(
    written: Json, version: int, expected: int | None
) -> None:
    document = without(table_json(version), "current-snapshot-id") | written

    metadata = read_table_metadata(encoded(document))

    assert metadata.current_snapshot is None
    assert metadata.to_object().get("current-snapshot-id") == expected


@pytest.mark.parametrize("refs", [None, {}, {"v1": {"snapshot-id": 1, "type": "tag"}}])
def test_current_snapshot_is_mains_also_where_the_writer_did_not_say_so(refs: Json | None) -> None:
    metadata = table_with_snapshots(2, refs=refs)

    assert metadata.snapshot_refs["main"].snapshot_id == 2
    assert metadata.snapshot_refs["main"].is_branch
    assert len(metadata.snapshot_refs) == (2 if refs else 1)


def test_snapshot_with_id_0_is_one() -> None:
    metadata = table(
        snapshots=[snapshot_json(0, 1)],
        last_sequence_number=1,
        current_snapshot_id=0,
        refs=None,
        snapshot_log=[],
    )

    assert metadata.current_snapshot == metadata.snapshots[0]
    assert metadata.snapshot_refs["main"].snapshot_id == 0


def test_metadata_made_of_parts_in_python_is_completed_as_well() -> None:
    parsed = TableMetadata.from_json(encoded(EARLY_V1))

    assert complete(parsed) == read_table_metadata(encoded(EARLY_V1))
    assert parsed.snapshot_refs == {}


# ------------------------------------------------------------------------------------------------------ invariants


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"current_schema_id": 9}, "Cannot find schema with current-schema-id=9 from schemas"),
        ({"default_spec_id": 9}, "Cannot find partition spec with default-spec-id=9"),
        ({"default_sort_order_id": 9}, "Cannot find sort order with default-sort-order-id=9"),
        ({"schemas": [schema_json(), schema_json()]}, "Two schemas have the same schema-id: 0"),
        ({"partition_specs": [spec_json(), spec_json()]}, "Two partition specs have the same spec-id: 0"),
        (
            {"sort_orders": [order_json(order_id=0), order_json(order_id=0)]},
            "Two sort orders have the same order-id: 0",
        ),
        (
            {"snapshots": [snapshot_json(1, 1), snapshot_json(1, 2)], "last_sequence_number": 2},
            "Two snapshots have the same snapshot-id",
        ),
        (
            {"current_snapshot_id": 9, "refs": {"main": {"snapshot-id": 9, "type": "branch"}}},
            "Cannot find current snapshot with id 9 in snapshots",
        ),
        (
            {"refs": {"v1": {"snapshot-id": 9, "type": "tag"}}},
            "Snapshot 9 of reference v1 does not exist in the list of snapshots",
        ),
        (
            {"snapshots": [snapshot_json(5, 3)], "last_sequence_number": 2},
            "Invalid snapshot with sequence number 3 greater than last sequence number 2",
        ),
        (
            {"metadata_log": [{"timestamp-ms": NOW_MS + 60_001, "metadata-file": "f"}]},
            f"Invalid update timestamp {NOW_MS}: before last metadata-log entry at {NOW_MS + 60_001}",
        ),
        (
            {
                "metadata_log": [
                    {"timestamp-ms": NOW_MS, "metadata-file": "f"},
                    {"timestamp-ms": NOW_MS - 60_001, "metadata-file": "g"},
                ]
            },
            "The entries of metadata-log are not sorted by time",
        ),
    ],
)
def test_document_that_contradicts_itself_is_refused(changes: Json, message: str) -> None:
    assert refusal(table_json(2, **changes)) == message


@pytest.mark.parametrize(
    ("sound", "later"),
    [
        (
            {"snapshots": [snapshot_json(1, 1)], "last_sequence_number": 1},
            {"snapshots": [snapshot_json(1, 1), snapshot_json(2, 3)], "last_sequence_number": 2},
        ),
        (
            {"snapshots": [snapshot_json(1, 2)], "last_sequence_number": 2},
            {"snapshots": [snapshot_json(1, 2)], "last_sequence_number": 1},
        ),
        (
            {"snapshots": [snapshot_json(1, 1)], "last_sequence_number": 1},
            {"snapshots": [snapshot_json(1, 2)], "last_sequence_number": 1},
        ),
        (
            {"metadata_log": [{"timestamp-ms": NOW_MS, "metadata-file": "f"}]},
            {
                "metadata_log": [
                    {"timestamp-ms": NOW_MS, "metadata-file": "f"},
                    {"timestamp-ms": NOW_MS - 60_001, "metadata-file": "g"},
                ]
            },
        ),
        (
            {"metadata_log": [{"timestamp-ms": NOW_MS, "metadata-file": "f"}]},
            {
                "metadata_log": [{"timestamp-ms": NOW_MS, "metadata-file": "f"}],
                "last_updated_ms": NOW_MS - 60_001,
            },
        ),
    ],
)
def test_state_that_breaks_a_rule_is_found_beside_an_earlier_one_that_keeps_it(
    sound: Json, later: Json
) -> None:
    earlier, wrong = table(2, **sound), TableMetadata.from_json(encoded(table_json(2, **later)))

    with pytest.raises(InvalidMetadata) as alone:
        check_invariants(wrong)
    with pytest.raises(InvalidMetadata) as beside:
        check_invariants(wrong, earlier)

    assert str(beside.value) == str(alone.value)


def test_main_and_the_current_snapshot_are_the_same() -> None:
    head = {"snapshots": [snapshot_json(1, 1), snapshot_json(2, 2)], "last_sequence_number": 2}
    main = {"main": {"snapshot-id": 2, "type": "branch"}}

    assert refusal(table_json(2, **head, refs=main, current_snapshot_id=1)) == (
        "Current snapshot ID does not match main branch (1 != 2)"
    )
    assert (
        refusal(table_json(2, **head, refs=main))
        == "Current snapshot ID does not match main branch (-1 != 2)"
    )
    with pytest.raises(InvalidMetadata, match=r"\(2 != no main branch\)"):
        check_invariants(table(2, **head, refs=main, current_snapshot_id=2).replace(refs={}))


def test_v1_has_no_sequence_numbers() -> None:
    assert refusal(table_json(1, snapshots=[snapshot_json(1, 1)])) == (
        "Invalid snapshot with sequence number 1 greater than last sequence number 0"
    )
    with pytest.raises(InvalidMetadata, match=r"^Sequence number must be 0 in v1: 3$"):
        check_invariants(table(1).replace(last_sequence_number=3))


def test_logs_may_be_out_of_order_by_what_clocks_differ() -> None:
    log = [{"timestamp-ms": NOW_MS + lead, "metadata-file": "f"} for lead in (60_000, 0, 60_000, 10_000)]

    assert len(table(2, metadata_log=log).metadata_log) == 4


def test_snapshot_log_is_held_to_time_too() -> None:
    late = [{"timestamp-ms": NOW_MS + 60_001, "snapshot-id": 1}]

    assert refusal(table_json(2, snapshot_log=late)).endswith(f"last snapshot-log entry at {NOW_MS + 60_001}")


def test_specs_are_found_by_their_ids() -> None:
    metadata = table()

    assert metadata.find_spec(SpecId(0)) is metadata.default_spec
    assert metadata.find_spec(SpecId(9)) is None


@pytest.mark.parametrize(("schema_id", "column_name"), [(0, "old"), (1, "new"), (None, "new"), (9, "new")])
def test_schema_of_a_snapshot_is_the_current_one_if_its_own_is_unknown(
    schema_id: int | None, column_name: str
) -> None:
    schemas = [schema_json(column(1, "old")), schema_json(column(1, "new"), schema_id=1)]
    metadata = table(schemas=schemas, current_schema_id=1, partition_specs=[spec_json()])
    document = snapshot_json(7, 1) | ({} if schema_id is None else {"schema-id": schema_id})

    found = metadata.schema_of(Snapshot.from_json(encoded(document)))

    assert found.fields[0].name == column_name
