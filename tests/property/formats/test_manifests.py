"""What is written into a manifest is read out of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.model.files.entry_filters import FileColumns, entry_facts
from app.engine.model.files.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    EntryStatus,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import Location, SnapshotId
from app.formats.caches import BoundedCache
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.lists import assign_numbers
from app.formats.manifests.writer import WrittenManifest, write_manifest
from tests.strategies.manifest_entries import manifests

COMMIT = SnapshotId(4242)
SEQUENCE_NUMBER = 17
"""Above what any entry says: a commit's number is the highest there is."""


def written(found: Any, format_version: int) -> WrittenManifest:
    schema, spec, content, entries = found
    return write_manifest(
        entries,
        schema=schema,
        spec=spec,
        format_version=format_version,
        content=content,
        snapshot_id=COMMIT,
    )


def listed(manifest: WrittenManifest, format_version: int, first_row_id: int | None = None) -> ManifestFile:
    (numbered,), _ = assign_numbers(
        [manifest.at(Location("memory://m.avro"))],
        sequence_number=SEQUENCE_NUMBER if format_version > 1 else 0,
        first_row_id=first_row_id,
    )
    return numbered


def inherited(entry: ManifestEntry, format_version: int) -> ManifestEntry:
    """Return an entry as the spec says that it is read after a commit without row ids."""
    number = SEQUENCE_NUMBER if format_version > 1 else 0
    data_number, file_number = entry.data_sequence_number, entry.file_sequence_number
    if entry.status is EntryStatus.ADDED or format_version == 1:
        data_number = number if data_number is None else data_number
        file_number = number if file_number is None else file_number
    return ManifestEntry(
        entry.status,
        COMMIT if entry.snapshot_id is None else entry.snapshot_id,
        data_number,
        file_number,
        replace(entry.file, first_row_id=None),
    )


@pytest.mark.parametrize("format_version", [1, 2, 3])
@given(data=st.data())
def test_entries_come_back_as_they_went(format_version: int, data: st.DataObject) -> None:
    found = data.draw(manifests(format_version))

    manifest = written(found, format_version)

    read = tuple(ManifestColumns(listed(manifest, format_version), manifest.content))
    # Not the entries themselves: NaN is not equal to itself, 0.0 equal to -0.0.
    assert [repr(entry) for entry in read] == [repr(inherited(entry, format_version)) for entry in found[3]]
    columns = ManifestColumns(listed(manifest, format_version), manifest.content)
    assert list(columns.live_paths()) == [entry.file.file_path for entry in read if entry.is_live]


@pytest.mark.parametrize("format_version", [1, 2, 3])
@given(data=st.data())
def test_facts_of_columns_are_those_of_their_entries(format_version: int, data: st.DataObject) -> None:
    found = data.draw(manifests(format_version))
    manifest = written(found, format_version)
    first_row_id = data.draw(st.none() | st.integers(0, 9)) if format_version == 3 else None
    columns = ManifestColumns(listed(manifest, format_version, first_row_id), manifest.content)

    assert list(map(repr, entry_facts(columns))) == list(map(repr, entry_facts(list(columns))))


def of_file(columns: FileColumns, at: int) -> tuple[Any, ...]:
    """Return what columns have of one file, without what is alike."""
    return (
        columns.paths[at],
        columns.sizes[at],
        columns.record_counts[at],
        columns.split_offsets[at],
        columns.first_row_ids[at],
        columns.partitions[at],
    )


def shared(entry: ManifestEntry) -> str:
    """Return what files that are alike have in common."""
    file = entry.file
    return repr((file.partition, file.content, file.file_format, file.key_metadata, file.sort_order_id))


@pytest.mark.parametrize("format_version", [1, 2, 3])
@given(data=st.data())
def test_columns_of_files_are_those_of_their_entries(format_version: int, data: st.DataObject) -> None:
    found = data.draw(manifests(format_version))
    manifest = written(found, format_version)
    first_row_id = data.draw(st.none() | st.integers(0, 9)) if format_version == 3 else None
    file = listed(manifest, format_version, first_row_id)
    if data.draw(st.booleans()):
        file = replace(file, sequence_number=UNASSIGNED_SEQUENCE_NUMBER)
    columns = ManifestColumns(file, manifest.content, kept_files=BoundedCache(1 << 20))
    asked = data.draw(
        st.lists(st.lists(st.integers(0, len(columns) - 1), max_size=9), min_size=1, max_size=4)
    )
    for before in asked:
        columns.files_at(before)
    # They are not those of the same manifest in another list.
    columns.listed_as(replace(file, first_row_id=first_row_id and 77)).files_at(asked[0])
    positions = asked[0]

    files = columns.files_at(positions)

    entries = [columns[at] for at in positions]
    expected = [
        (
            entry.file.file_path,
            entry.file.file_size_in_bytes,
            entry.file.record_count,
            entry.file.split_offsets,
            entry.file.first_row_id,
            entry.file.partition,
        )
        for entry in entries
    ]
    assert [repr(of_file(files, at)) for at in range(len(positions))] == list(map(repr, expected))
    assert len(files.alike) == len(positions)
    for one, number in zip(entries, files.alike, strict=True):
        # Equal values may differ in their bytes, but files of one number are alike.
        assert all(
            shared(one) == shared(other)
            for other, its in zip(entries, files.alike, strict=True)
            if number == its
        )
