"""Where we answer otherwise than the reference, one case each; docs/conflicts.md lists them for users.

Where it finds no conflict and we do, it passes over rows that match or are deleted: ours is the safe side. Where it
finds one and we do not, bounds prove that no row is touched.
"""

from __future__ import annotations

import itertools
import math
import struct
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.engine.conflicts.detection import detect_conflicts
from app.engine.conflicts.operations import Operation, Overwrite, RemovedFile, RewriteFiles
from app.engine.expressions.expression_json import parse_expression
from app.engine.model.files.delete_files import DELETE_FILE_PATH_ID
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import Location, SnapshotId, SpecId
from tests.conformance.conflicts.reference import Reference, ReferenceTable, Refused, commit

pytestmark = pytest.mark.spark

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "price", "type": "double", "required": False},
        {"id": 2, "name": "key", "type": "uuid", "required": False},
        {
            "id": 3,
            "name": "place",
            "type": {
                "type": "struct",
                "fields": [{"id": 5, "name": "number", "type": "long", "required": True}],
            },
            "required": False,
        },
        {"id": 4, "name": "id", "type": "long", "required": False},
    ],
}
LOW, HIGH = b"\x00" * 15 + b"\x01", b"\x80" + b"\x00" * 15
"""Two uuids in the order of the table format; in the signed order of early writers, HIGH comes first."""
_numbers = itertools.count(1)


def within(field_id: int, lower: bytes, upper: bytes, *, nan: int | None = None) -> dict[str, Any]:
    """Return the metrics of a file of five rows."""
    return {
        "value_counts": {field_id: 5},
        "null_value_counts": {field_id: 0},
        "nan_value_counts": None if nan is None else {field_id: nan},
        "lower_bounds": {field_id: lower},
        "upper_bounds": {field_id: upper},
    }


def doubles(low: float, high: float, nan: int) -> dict[str, Any]:
    return within(1, struct.pack("<d", low), struct.pack("<d", high), nan=nan)


def longs(field_id: int, low: int, high: int) -> dict[str, Any]:
    return within(field_id, struct.pack("<q", low), struct.pack("<q", high))


def content_file(content: FileContent = FileContent.DATA, **more: Any) -> DataFile:
    name = f"mem://files/{content.name.lower()}-{next(_numbers)}.parquet"
    return DataFile(content, Location(name), "parquet", SpecId(0), (), 5, 100, **more)


@dataclass(frozen=True, slots=True)
class Deletes:
    """A file that is compacted while deletes come in; `ours` tells whether we see a conflict, they see the other."""

    ours: bool
    of_data: dict[str, Any]
    of_deletes: dict[str, Any]
    content: FileContent = FileContent.EQUALITY_DELETES


DELETES = {
    "equal NaN": Deletes(True, doubles(1, 2, 1), doubles(5, 5, 1) | {"equality_ids": (1,)}),
    "bounds that are NaN": Deletes(
        True, doubles(1, 2, 0), doubles(math.nan, math.nan, 0) | {"equality_ids": (1,)}
    ),
    "uuids in unsigned order": Deletes(
        True, within(2, HIGH, HIGH), within(2, LOW, HIGH) | {"equality_ids": (2,)}
    ),
    "nulls of a struct": Deletes(True, longs(5, 1, 2), longs(5, 10, 20) | {"equality_ids": (5,)}),
    "paths of other files": Deletes(
        False,
        {},
        {
            "lower_bounds": {DELETE_FILE_PATH_ID: b"mem://files/x1"},
            "upper_bounds": {DELETE_FILE_PATH_ID: b"mem://files/x2"},
        },
        FileContent.POSITION_DELETES,
    ),
}


@dataclass(frozen=True, slots=True)
class Read:
    """A filter that an overwrite has read by while a file came in."""

    ours: bool
    filter: Any
    of_data: dict[str, Any] = field(default_factory=dict)


def asking(operation: str, term: Any, value: Any) -> dict[str, Any]:
    return {"type": operation, "term": term, "value": value}


READS = {
    "NaN above numbers": Read(True, asking("gt", "price", 5.0), doubles(1, 2, 1)),
    "nulls of a struct": Read(True, {"type": "is-null", "term": "place.number"}, longs(5, 1, 2)),
    "uuids in signed order": Read(
        True,
        asking("eq", "key", "70000000-0000-0000-0000-000000000000"),
        within(2, HIGH, LOW),
    ),
    "one value only": Read(False, asking("not-eq", "id", 7), longs(4, 7, 7)),
}


@pytest.fixture
def table(reference: Reference) -> ReferenceTable:
    return reference.new_table(SCHEMA, {"spec-id": 0, "fields": []}, {"format-version": "2"})


def check(table: ReferenceTable, base: int, pending: Any, operation: Operation, *, ours: bool) -> None:
    report = detect_conflicts(table.metadata(), table.source, "main", SnapshotId(base), operation)

    is_refused = False
    try:
        commit(pending)
    except Refused:
        is_refused = True
    assert report.would_conflict is ours, report.conflicts
    assert is_refused is not ours, "the reference has come to see it as we do: no difference any more"


def appended(table: ReferenceTable, **metrics: Any) -> DataFile:
    file = content_file(**metrics)
    commit(table.table.newAppend().appendFile(table.file(file)))
    return file


@pytest.mark.parametrize("name", DELETES)
def test_deletes_for_a_replaced_file(table: ReferenceTable, name: str) -> None:
    case = DELETES[name]
    file = appended(table, **case.of_data)
    base = table.table.currentSnapshot().snapshotId()
    rewrite = table.table.newRewrite().validateFromSnapshot(base)
    rewrite.deleteFile(table.file(file)).addFile(table.file(content_file()))
    deletes = content_file(case.content, **case.of_deletes)
    commit(table.table.newRowDelta().addDeletes(table.file(deletes)))

    check(table, base, rewrite, RewriteFiles((RemovedFile.of(file),)), ours=case.ours)


@pytest.mark.parametrize("name", READS)
def test_new_file_where_an_overwrite_has_read(table: ReferenceTable, name: str) -> None:
    case = READS[name]
    file = appended(table)
    base = table.table.currentSnapshot().snapshotId()
    overwrite = table.table.newOverwrite().validateFromSnapshot(base).deleteFile(table.file(file))
    overwrite.conflictDetectionFilter(table.filter(case.filter)).validateNoConflictingData()
    appended(table, **case.of_data)
    operation = Overwrite(
        conflict_filter=parse_expression(case.filter),
        removed_files=(RemovedFile.of(file),),
        checks_new_data=True,
    )

    check(table, base, overwrite, operation, ours=case.ours)


def test_delete_of_rows_that_an_overwrite_has_not_read_in_a_file_that_it_replaces(
    table: ReferenceTable,
) -> None:
    file = appended(table, **longs(4, 0, 9))
    base = table.table.currentSnapshot().snapshotId()
    read = asking("lt", "id", 5)
    overwrite = table.table.newOverwrite().validateFromSnapshot(base).deleteFile(table.file(file))
    overwrite.conflictDetectionFilter(table.filter(read)).validateNoConflictingDeletes()
    deletes = content_file(FileContent.EQUALITY_DELETES, equality_ids=(4,), **longs(4, 7, 7))
    commit(table.table.newRowDelta().addDeletes(table.file(deletes)))
    operation = Overwrite(
        conflict_filter=parse_expression(read),
        removed_files=(RemovedFile.of(file),),
        checks_new_deletes=True,
    )

    check(table, base, overwrite, operation, ours=True)
