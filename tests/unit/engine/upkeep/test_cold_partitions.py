"""Cold partitions: which ones are left, and the filter that leaves the hot ones out."""

from __future__ import annotations

from typing import Any

import pytest

from app.engine.health.facts import LATEST_PARTITIONS, FileFacts, PartitionFacts
from app.engine.model.ids import SpecId
from app.engine.model.table_metadata import TableMetadata
from app.engine.upkeep.cold_partitions import WrittenPartition, cold_part, latest_partitions
from tests.builders.health_facts import MIB, file_facts

COLUMNS = ["long", "string", "date", "timestamp", "timestamptz", "boolean", "double"]


def metadata(*fields: tuple[int, str], moments: dict[int, int] | None = None) -> TableMetadata:
    """A table with the columns c1 to c7, partition fields of (column, transform), and snapshots by number."""
    columns = [
        {"id": number, "name": f"c{number}", "type": kind, "required": False}
        for number, kind in enumerate(COLUMNS, 1)
    ]
    columns.append(
        {
            "id": 8,
            "name": "s",
            "required": False,
            "type": {
                "type": "struct",
                "fields": [{"id": 9, "name": "in`ner", "type": "int", "required": False}],
            },
        }
    )
    parts = [
        {"source-id": source, "field-id": 1000 + place, "name": f"p{place}", "transform": transform}
        for place, (source, transform) in enumerate(fields)
    ]
    return TableMetadata.model_validate(
        {
            "format-version": 2,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": "s3://b/t",
            "last-sequence-number": 9,
            "last-updated-ms": 0,
            "last-column-id": 9,
            "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": columns}],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": parts}],
            "last-partition-id": 1010,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "snapshots": [
                {"snapshot-id": n, "sequence-number": n, "timestamp-ms": at, "manifest-list": "s3://b/l"}
                for n, at in (moments or {1: 100}).items()
            ],
        }
    )


def facts(*values: Any, sequence: int = 1, **numbers: int) -> PartitionFacts:
    given = {
        "data_files": 5,
        "data_bytes": 50,
        "small_files": 5,
        "small_bytes": 40,
        "delete_files": 1,
    } | numbers
    return PartitionFacts(SpecId(0), values, **given, files_to_save=4, newest_sequence=sequence)


def others(table: TableMetadata, *values: Any) -> str | None:
    (found,) = latest_partitions(table, file_facts(latest_partitions=(facts(*values),)))
    return found.others


@pytest.mark.parametrize(
    ("field", "value", "due"),
    [
        ((1, "identity"), 7, "`c1` <> 7 OR `c1` IS NULL"),
        ((2, "identity"), "it's", "`c2` <> 'it\\'s' OR `c2` IS NULL"),
        ((2, "identity"), None, "`c2` IS NOT NULL"),
        ((6, "identity"), True, "`c6` <> true OR `c6` IS NULL"),
        ((9, "identity"), 3, "`s`.`in``ner` <> 3 OR `s`.`in``ner` IS NULL"),
        ((3, "identity"), 19_000, "`c3` <> DATE '2022-01-08' OR `c3` IS NULL"),
        (
            (3, "month"),
            -1,
            "`c3` < DATE '1969-12-01' OR `c3` >= DATE '1970-01-01' OR `c3` IS NULL",
        ),
        (
            (4, "day"),
            0,
            (
                "`c4` < TIMESTAMP_NTZ '1970-01-01T00:00:00.000000' OR"
                " `c4` >= TIMESTAMP_NTZ '1970-01-02T00:00:00.000000' OR `c4` IS NULL"
            ),
        ),
        (
            (5, "hour"),
            25,
            (
                "`c5` < TIMESTAMP '1970-01-02T01:00:00.000000+00:00' OR"
                " `c5` >= TIMESTAMP '1970-01-02T02:00:00.000000+00:00' OR `c5` IS NULL"
            ),
        ),
        ((5, "day"), None, "`c5` IS NOT NULL"),
    ],
)
def test_partition_is_left_out_by_the_values_of_its_columns(
    field: tuple[int, str], value: Any, due: str
) -> None:
    assert others(metadata(field), value) == f"({due})"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ((1, "bucket[4]"), 3),
        ((2, "truncate[2]"), "ab"),
        ((7, "identity"), 1.5),
        ((3, "year"), 9_000),
        ((99, "identity"), 1),
    ],
)
def test_values_that_sql_cannot_say_are_no_filter(field: tuple[int, str], value: Any) -> None:
    assert others(metadata(field), value) is None


def test_of_several_fields_those_that_sql_can_say_are_enough() -> None:
    table = metadata((1, "bucket[4]"), (3, "day"), (2, "identity"))

    assert others(table, 3, 0, "x") == (
        "(`c3` < DATE '1970-01-01' OR `c3` >= DATE '1970-01-02' OR `c3` IS NULL OR `c2` <> 'x' OR `c2` IS NULL)"
    )


def test_time_of_an_expired_snapshot_is_that_of_the_next_one() -> None:
    table = metadata((1, "identity"), moments={4: 400, 7: 700})
    files = file_facts(latest_partitions=(facts(1, sequence=7), facts(2, sequence=5), facts(3, sequence=2)))

    assert [partition.written_ms for partition in latest_partitions(table, files)] == [700, 700, 400]


def test_without_sequence_numbers_nothing_is_known() -> None:
    files = file_facts(latest_partitions=(facts(1, sequence=0),))

    assert latest_partitions(metadata((1, "identity")), files) == ()
    assert latest_partitions(metadata((1, "identity")), None) == ()


def written(value: int, at_ms: int, others: str | None = "") -> WrittenPartition:
    return WrittenPartition(facts(value), at_ms, f"(not {value})" if others == "" else others)


ALL: FileFacts = file_facts(
    data_files=100, data_bytes=100 * MIB, files_to_save=50, small_bytes=10 * MIB, position_delete_files=9
)


def test_what_is_left_are_the_files_of_the_other_partitions() -> None:
    latest = [written(1, 900), written(2, 800), written(3, 700)]

    found = cold_part(ALL, latest, 800)

    assert found is not None
    assert found.where == "(not 1) AND (not 2)"
    assert (found.hot_partitions, found.data_files, found.files_to_save, found.delete_files) == (2, 90, 42, 7)
    assert (found.data_bytes, found.small_bytes) == (100 * MIB - 100, 10 * MIB - 80)


@pytest.mark.parametrize(
    "latest",
    [
        [],
        [written(1, 700)],
        [written(1, 900, None), written(2, 900)],
        [written(number, 900) for number in range(20)],
        [written(number, 900) for number in range(LATEST_PARTITIONS)],
    ],
)
def test_nothing_is_left_out_if_none_is_hot_or_all_are_or_sql_cannot_say_it(
    latest: list[WrittenPartition],
) -> None:
    assert cold_part(ALL, latest, 800) is None
