"""What is shown of metadata that is old, new, or not as expected."""

from __future__ import annotations

import pytest

from app.cli.metadata_facts import column_lines, table_facts, type_text, view_facts


def test_metadata_with_nothing_in_it_is_shown() -> None:
    facts = dict(table_facts("a.b", None, {}))

    assert facts["table"] == "a.b"
    assert facts["columns"] == []
    assert facts["current snapshot"] == "none: the table is empty"
    assert dict(view_facts("a.v", "file:/m", {}))["metadata"] == "file:/m"


def test_query_of_a_view_without_sql_is_shown_by_its_type() -> None:
    version = {"version-id": 1, "timestamp-ms": 0, "representations": [{"type": "substrait", "plan": {}}]}

    facts = view_facts("a.v", "file:/m", {"versions": [version], "current-version-id": 1})

    assert ("query", "of type substrait") in facts


def test_version_1_metadata_is_shown_by_its_old_fields() -> None:
    facts = dict(
        table_facts(
            "a.b",
            "file:/m",
            {
                "format-version": 1,
                "schema": {"fields": [{"id": 1, "name": "x", "type": "int", "required": False}]},
                "snapshots": [{"snapshot-id": 5, "timestamp-ms": 0}],
                "current-snapshot-id": 5,
            },
        )
    )

    assert facts["columns"] == ["1: x int"]
    assert facts["current snapshot"] == "5 (unknown operation at 1970-01-01 00:00:00 UTC)"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("decimal(9, 2)", "decimal(9, 2)"),
        ({"type": "list", "element": "int"}, "list<int>"),
        (
            {"type": "map", "key": "string", "value": {"type": "list", "element": "int"}},
            "map<string, list<int>>",
        ),
        ({"type": "struct", "fields": [{"name": "a", "type": "int"}]}, "struct<a: int>"),
        ({"type": "variant"}, "variant"),
    ],
)
def test_types_are_one_line(kind: object, text: str) -> None:
    assert type_text(kind) == text


def test_partition_and_sort_fields_name_their_columns() -> None:
    inner = {"id": 2, "name": "day", "type": "date"}
    metadata = {
        "current-schema-id": 3,
        "schemas": [
            {
                "schema-id": 3,
                "fields": [{"id": 1, "name": "at", "type": {"type": "struct", "fields": [inner]}}],
            }
        ],
        "default-spec-id": 1,
        "partition-specs": [
            {"spec-id": 0, "fields": []},
            {
                "spec-id": 1,
                "fields": [
                    {"source-id": 2, "transform": "identity", "name": "on"},
                    {"source-id": 2, "transform": "identity", "name": "at.day"},
                    {"source-ids": [2, 9], "transform": "bucket[8]", "name": "both"},
                ],
            },
        ],
    }

    facts = dict(table_facts("a.b", None, metadata))

    assert facts["partitioned by"] == ["at.day as on", "at.day", "bucket[8](at.day, field 9) as both"]


def test_a_time_beyond_the_calendar_is_shown_as_a_number() -> None:
    facts = dict(table_facts("a.b", None, {"last-updated-ms": 10**18}))

    assert facts["last updated"] == str(10**18)


def test_columns_show_their_documentation() -> None:
    field = {"id": 1, "name": "x", "type": "int", "required": True, "doc": "how many"}

    assert column_lines({"fields": [field], "identifier-field-ids": [1]}) == [
        "1: x int required identifier  – how many"
    ]
