"""Profiles of columns: what is known, on how many files, and what may be cut."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from app.engine.health.column_profile import ColumnProfile, KnownCount, column_profiles
from app.engine.health.column_summary import ColumnSummaries
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry
from app.engine.model.ids import Location, SpecId
from tests.builders.live_metrics import metrics_of
from tests.unit.engine.documents import column, schema
from tests.unit.engine.documents import struct as struct_type

SCHEMA = schema(
    column(1, "id", "long"),
    column(2, "name", "string"),
    column(3, "price", "double"),
    column(4, "place", struct_type(column(5, "city", "string"))),
    column(6, "weight", "decimal(9, 2)"),
)


def entry(status: EntryStatus = EntryStatus.ADDED, **metrics: Any) -> ManifestEntry:
    file = DataFile(FileContent.DATA, Location("f"), "parquet", SpecId(0), (), 10, 100, **metrics)
    return ManifestEntry(status, None, 1, 1, file)


def profiles(*entries: ManifestEntry, **properties: str) -> dict[str, ColumnProfile]:
    """Return the profiles of files by the names of columns; properties have underscores instead of dots."""
    summaries = ColumnSummaries(SCHEMA)
    for found in entries:
        summaries.add(metrics_of([found]))
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return {profile.name: profile for profile in column_profiles(SCHEMA, summaries, named)}


def long(number: int) -> bytes:
    return struct.pack("<q", number)


def test_numbers_are_added_and_say_on_how_many_files_they_are_known() -> None:
    found = profiles(
        entry(value_counts={1: 10}, null_value_counts={1: 4}, column_sizes={1: 80}),
        entry(value_counts={1: 10}),
        entry(null_value_counts={1: 2}),
        entry(EntryStatus.DELETED, value_counts={1: 1000}),
    )["id"]

    assert found.values == KnownCount(20, 2)
    assert found.nulls == KnownCount(6, 2)
    # Only the first file knows both.
    assert found.null_share == 4 / 10
    assert found.column_bytes == KnownCount(80, 1)
    assert (found.nans, found.nan_share) == (KnownCount(None, 0), None)


def test_bounds_are_the_widest_and_promoted_ones_are_read() -> None:
    found = profiles(
        entry(lower_bounds={1: long(5)}, upper_bounds={1: long(9)}),
        entry(lower_bounds={1: struct.pack("<i", -3)}, upper_bounds={1: b"broken"}),
        entry(),
    )["id"]

    assert (found.lower, found.lower_files, found.upper, found.upper_files) == (-3, 2, 9, 1)
    assert found.bounds_exact


@pytest.mark.parametrize("together", [True, False])
def test_decimal_of_more_digits_than_there_are_is_no_bound(together: bool) -> None:
    files = [entry(upper_bounds={6: content}) for content in (b"\x01\x00", b"\x7f" + bytes(600), b"\x02\x00")]
    summaries = ColumnSummaries(SCHEMA)
    for some in [files] if together else [[file] for file in files]:
        summaries.add(metrics_of(some))

    found = {profile.name: profile for profile in column_profiles(SCHEMA, summaries, {})}["weight"]

    assert (found.upper, found.upper_files) == ("5.12", 2)


def test_nan_is_no_bound() -> None:
    nan, one = struct.pack("<d", float("nan")), struct.pack("<d", 1.0)

    found = profiles(entry(lower_bounds={3: nan}), entry(lower_bounds={3: one}, nan_value_counts={3: 2}))[
        "price"
    ]

    assert (found.lower, found.lower_files, found.nans) == (1.0, 1, KnownCount(2, 1))


@pytest.mark.parametrize(
    ("text", "mode", "is_exact"),
    [
        (b"short", None, True),
        (b"sixteen letters!", None, False),
        (b"short", "truncate(5)", False),
        (b"sixteen letters!", "truncate(17)", True),
        (b"sixteen letters!", "full", True),
        ("ÄÖÜ".encode(), "truncate(4)", True),
    ],
)
def test_bounds_that_may_be_cut_are_not_exact(text: bytes, mode: str | None, is_exact: bool) -> None:
    properties = {} if mode is None else {"write_metadata_metrics_column_name": mode}

    found = profiles(entry(lower_bounds={2: text}, upper_bounds={2: b"z"}), **properties)["name"]

    assert found.bounds_exact is is_exact


def test_columns_inside_others_have_their_full_names() -> None:
    assert list(profiles()) == ["id", "name", "price", "place.city", "weight"]
    assert profiles()["place.city"].lower is None
