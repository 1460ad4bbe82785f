"""Partitions, orders and properties that no new table may have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bad_input.attacks import Attack, check_refused
from tests.bad_input.creations import LIST, column, making
from tests.bad_input.victim import Victim


def partitioned(name: str, message: str, *fields: Any, **more: Any) -> Attack:
    """Return an attempt to partition a table of an id, a text, a list and a double."""
    columns = [column("string", 2, "note"), column(LIST, 4, "tags"), column("double", 5, "x")]
    return making(name, message, *columns, **{"partition-spec": {"fields": list(fields)}, **more})


def part(transform: Any, source: Any = 1, name: Any = "p", **fields: Any) -> dict[str, Any]:
    """Return a partition field."""
    return {"name": name, "transform": transform, "source-id": source, **fields}


PARTITIONS = [
    partitioned("unknown transform", "Unknown transform: 'zorder'", part("zorder")),
    partitioned(
        "bucket of none",
        "Invalid transform 'bucket[0]': the parameter must be from 1 to 2147483647",
        part("bucket[0]"),
    ),
    partitioned("bucket below zero", "Unknown transform: 'bucket[-1]'", part("bucket[-1]")),
    partitioned("bucket of 2^31", "Invalid transform 'bucket[2147483648]': …", part("bucket[2147483648]")),
    partitioned("bucket without a number", "Unknown transform: 'bucket'", part("bucket")),
    partitioned("bucket in arabic digits", "Unknown transform: 'bucket[٣]'", part("bucket[٣]")),
    partitioned(
        "transform is a number",
        "Invalid body: partition-spec.fields[0].transform: Input should be a valid string",
        part(4),
    ),
    partitioned(
        "transform is an object",
        "Invalid body: partition-spec.fields[0].transform: Input should be a valid string",
        part({"bucket": 4}),
    ),
    partitioned(
        "no such source",
        "Cannot find source column for partition field: p (source-id 77)",
        part("identity", 77),
    ),
    partitioned(
        "source is a name",
        "Invalid body: partition-spec.fields[0].source-id: Input should be a valid integer",
        part("identity", "id"),
    ),
    partitioned(
        "no source",
        "Invalid body: partition-spec.fields[0].source-id: Field required",
        {"name": "p", "transform": "identity"},
    ),
    partitioned(
        "two sources",
        "Invalid body: partition-spec.fields[0]: transforms of several source columns are not supported",
        {"name": "p", "transform": "bucket[4]", "source-ids": [1, 2]},
    ),
    partitioned(
        "day of a text", "Invalid source type string for transform day of partition field: p", part("day", 2)
    ),
    partitioned(
        "bucket of a double",
        "Invalid source type double for transform bucket[4] of partition field: p",
        part("bucket[4]", 5),
    ),
    partitioned("a list as source", "Cannot …tags…", part("identity", 4)),
    partitioned("an element as source", "Cannot …tags.element…", part("identity", 3)),
    partitioned(
        "one name twice", "Cannot use partition name more than once: p", part("bucket[4]"), part("bucket[8]")
    ),
    partitioned(
        "a column's name",
        "Cannot create partition from name that exists in schema: note",
        part("bucket[4]", 1, "note"),
    ),
    partitioned(
        "another column's name",
        "Cannot create identity partition sourced from different field in schema: note",
        part("identity", 1, "note"),
    ),
    partitioned(
        "no name",
        "Invalid body: partition-spec.fields[0].name: String should have at least 1 character",
        part("identity", name=""),
    ),
    making("spec is a list", "Invalid body: partition-spec: …", **{"partition-spec": []}),
    making(
        "order without direction",
        "Invalid body: write-order.fields[0].direction: Field required",
        **{
            "write-order": {
                "order-id": 1,
                "fields": [{"transform": "identity", "source-id": 1, "null-order": "nulls-first"}],
            }
        },
    ),
    making(
        "order upwards",
        "Invalid body: write-order.fields[0].direction: Input should be 'asc' or 'desc'",
        **{
            "write-order": {
                "order-id": 1,
                "fields": [
                    {"transform": "identity", "source-id": 1, "direction": "up", "null-order": "nulls-first"}
                ],
            }
        },
    ),
    making(
        "order of nulls",
        "Invalid body: write-order.fields[0].null-order: Input should be 'nulls-first' or 'nulls-last'",
        **{
            "write-order": {
                "order-id": 1,
                "fields": [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": None}],
            }
        },
    ),
    making(
        "order by nothing",
        "Cannot find source column for sort field… (source-id 9)",
        **{
            "write-order": {
                "order-id": 1,
                "fields": [
                    {"transform": "identity", "source-id": 9, "direction": "asc", "null-order": "nulls-last"}
                ],
            }
        },
    ),
    making(
        "order by an unknown transform",
        "Unknown transform: 'shuffle'",
        **{
            "write-order": {
                "order-id": 1,
                "fields": [
                    {"transform": "shuffle", "source-id": 1, "direction": "asc", "null-order": "nulls-last"}
                ],
            }
        },
    ),
]

PROPERTIES = [
    making(f"{key} = {value[:20]!r}", message, properties={key: value})
    for key, value, message in (
        ("format-version", "4", "Unsupported format version: v4 (supported: v3)"),
        ("format-version", "0", "Unsupported format version: v0 (supported: v3)"),
        ("format-version", "-1", "Unsupported format version: v-1 (supported: v3)"),
        ("format-version", "two", "Table property format-version must be a whole number, found 'two'"),
        ("format-version", "2.0", "Table property format-version must be a whole number, found '2.0'"),
        ("format-version", "٢", "Table property format-version must be a whole number, found '٢'"),
        ("format-version", "9" * 5_000, "Table property format-version must be a whole number, found '999…'"),
        (
            "commit.retry.num-retries",
            "-1",
            "Table property commit.retry.num-retries must be at least 0, found -1",
        ),
        (
            "commit.retry.num-retries",
            " 1_0",
            "Table property commit.retry.num-retries must be a whole number, found ' 1_0'",
        ),
        (
            "write.metadata.previous-versions-max",
            "many",
            "Table property write.metadata.previous-versions-max must be a whole number, found 'many'",
        ),
        (
            "write.metadata.compression-codec",
            "zip",
            "Table property write.metadata.compression-codec must be none or gzip, found 'zip'",
        ),
        ("gc.enabled", "maybe", "Table property gc.enabled must be true or false, found 'maybe'"),
        (
            "write.metadata.delete-after-commit.enabled",
            "",
            "Table property write.metadata.delete-after-commit.enabled must be true or false, found ''",
        ),
        (
            "write.metadata.metrics.column.nope",
            "full",
            "Invalid metrics config, could not find column nope from table prop …column.nope in schema",
        ),
        ("encryption.key-id", "k", "Invalid properties for v2: encryption.key-id needs format version 3"),
    )
]


@pytest.mark.parametrize("attack", [*PARTITIONS, *PROPERTIES], ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)
