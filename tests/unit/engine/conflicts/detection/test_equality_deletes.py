"""Equality deletes may delete a row of a file for a conflict check exactly where they may for a scan."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from app.engine.conflicts.operations import RewriteFiles
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry
from app.engine.selection.deletes import DeleteIndex
from tests.builders.branches import UNPARTITIONED, Branch, data_file
from tests.unit.engine.conflicts.detection.questions import ask, kinds, removing
from tests.unit.engine.documents import column, schema
from tests.unit.engine.documents import struct as struct_of

# The ids are those that a new table keeps: it numbers columns level by level.
SCHEMA = schema(
    column(1, "price", "double"),
    column(2, "key", "uuid"),
    column(3, "place", struct_of(column(6, "number", "long", required=True))),
    column(4, "id", "long", required=True),
    column(5, "home", struct_of(column(7, "number", "long", required=True)), required=True),
)
LOW, HIGH = UUID(int=1), UUID(int=1 << 127)
"""In signed order, which early Java writers had, HIGH comes first."""


def counted(field_id: int, nan: int | None = None) -> dict[str, Any]:
    return {
        "value_counts": {field_id: 5},
        "null_value_counts": {field_id: 0},
        "nan_value_counts": None if nan is None else {field_id: nan},
    }


def within(field_id: int, low: bytes, high: bytes, nan: int | None = None) -> dict[str, Any]:
    bounds = {"lower_bounds": {field_id: low}, "upper_bounds": {field_id: high}}
    return counted(field_id, nan) | bounds


def doubles(low: float, high: float, nan: int | None) -> dict[str, Any]:
    return within(1, struct.pack("<d", low), struct.pack("<d", high), nan)


def longs(field_id: int, low: int, high: int) -> dict[str, Any]:
    return within(field_id, struct.pack("<q", low), struct.pack("<q", high))


CASES = {
    "NaN in both, which bounds leave out": (1, doubles(5, 5, 1), doubles(1, 2, 1), True),
    "NaN in neither": (1, doubles(5, 5, 0), doubles(1, 2, 0), False),
    "bounds that are NaN, as old writers put them": (
        1,
        doubles(math.nan, math.nan, 0),
        doubles(1, 2, 0),
        True,
    ),
    "uuids in signed order": (2, within(2, HIGH.bytes, LOW.bytes), within(2, LOW.bytes, LOW.bytes), True),
    "nulls in a struct that may be null": (6, longs(6, 10, 20), longs(6, 1, 2), True),
    "a struct that is required": (7, longs(7, 10, 20), longs(7, 1, 2), False),
    "a required column": (4, longs(4, 10, 20), longs(4, 1, 2), False),
    "a required column without counts": (
        4,
        {"lower_bounds": {4: struct.pack("<q", 10)}, "upper_bounds": {4: struct.pack("<q", 20)}},
        {"lower_bounds": {4: struct.pack("<q", 1)}, "upper_bounds": {4: struct.pack("<q", 2)}},
        False,
    ),
}


@pytest.fixture
def branch() -> Branch:
    return Branch(UNPARTITIONED, schema=SCHEMA)


def plain(path: str, **more: Any) -> DataFile:
    metrics = dict.fromkeys(("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"))
    return replace(data_file(path), partition=(), **{**metrics, **more})


@pytest.mark.parametrize("case", CASES)
def test_what_a_scan_would_apply_is_a_conflict(branch: Branch, case: str) -> None:
    field_id, of_deletes, of_data, may = CASES[case]
    file = plain("old", **of_data)
    deletes = plain("deletes", content=FileContent.EQUALITY_DELETES, equality_ids=(field_id,), **of_deletes)
    base = branch.commit("append", [file])
    branch.commit("overwrite", [deletes])

    found = kinds(ask(branch, base, RewriteFiles(removing(file))))

    metadata = branch.metadata
    entry = ManifestEntry(EntryStatus.ADDED, None, 2, 2, deletes)
    index = DeleteIndex([entry], metadata.partition_specs, metadata.schemas)
    assert bool(index.deletes_of(file, 1)) is may
    assert found == (["new-deletes-for-removed-file"] if may else [])
