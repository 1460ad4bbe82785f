"""Bytes changed anywhere: a manifest is read, or refused by an error that names it; nothing else happens."""

from __future__ import annotations

import io
from functools import cache

import fastavro
from hypothesis import given
from hypothesis import strategies as st

from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId
from app.errors import InvalidMetadata
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.lists import (
    KnownLines,
    assign_numbers,
    read_manifest_list,
    write_manifest_list,
)
from app.formats.manifests.live_columns import UnpackedManifest
from app.formats.manifests.paths import statuses_and_paths
from app.formats.manifests.writer import write_manifest
from tests.strategies.manifest_entries import SPEC_ID, table_of

PLACE = Location("s3://bucket/metadata/m.avro")


@cache
def originals(second: str = "fixed[5]") -> tuple[bytes, bytes]:
    """Return a manifest and a list, not compressed, so that what is changed is what is read."""
    schema, spec = table_of(["string", second, "decimal(9, 2)"], ["identity", "identity", "void"])
    entries = [
        ManifestEntry(
            EntryStatus(at % 3),
            SnapshotId(at),
            at,
            at,
            DataFile(
                FileContent.DATA,
                Location(f"s3://b/{at}"),
                "parquet",
                SPEC_ID,
                (f"p{at % 2}", b"01234" if at % 3 else None, None),
                at,
                100,
                value_counts={1: 5, 2: 300},
                lower_bounds={1: b"a", 2: b"0" * 70},
                upper_bounds={},
                split_offsets=(4, 50),
                key_metadata=b"k",
            ),
        )
        for at in range(30)
    ]
    written = write_manifest(entries, schema=schema, spec=spec, format_version=2, snapshot_id=SnapshotId(1))
    (numbered,), _ = assign_numbers([written.at(PLACE)], sequence_number=40)
    listed = write_manifest_list(
        [numbered] * 3,
        format_version=2,
        snapshot_id=SnapshotId(1),
        parent_snapshot_id=None,
        sequence_number=40,
    ).content
    return without_codec(written.content), without_codec(listed)


def without_codec(content: bytes) -> bytes:
    reader = fastavro.reader(io.BytesIO(content))
    stream, metadata = (
        io.BytesIO(),
        {key: reader.metadata[key] for key in reader.metadata if key[:4] != "avro"},
    )
    fastavro.writer(stream, reader.writer_schema, list(reader), codec="null", metadata=metadata)
    return stream.getvalue()


def damaged(content: bytes, changes: list[tuple[int, bytes, int]]) -> bytes:
    """Return content in which pieces were replaced; most are in the records, which are at the end."""
    for place, piece, dropped in changes:
        at = len(content) - 1 - place % len(content)
        content = content[:at] + piece + content[at + dropped :]
    return content


CHANGES = st.lists(
    st.tuples(st.integers(0, 4000) | st.integers(0, 20_000), st.binary(max_size=3), st.integers(0, 3)),
    min_size=1,
    max_size=3,
)


@given(CHANGES, st.none() | st.integers(0, 100))
def test_manifests(changes: list[tuple[int, bytes, int]], first_row_id: int | None) -> None:
    content = damaged(originals()[0], changes)
    listed = ManifestFile(PLACE, 0, SPEC_ID, sequence_number=40, first_row_id=first_row_id)

    try:
        columns = ManifestColumns(listed, content)
        entries = list(columns)
        assert [entry for entry in entries if entry.is_live] == list(columns.live_in(lambda _: True))
        for entry in entries:
            dict(entry.file.lower_bounds or {})
            dict(entry.file.value_counts or {})
    except InvalidMetadata as error:
        assert str(error).startswith(f"Cannot read manifest {PLACE}: ")  # noqa: PT017 - it need not be raised


@given(CHANGES)
def test_live_files_of_manifests(changes: list[tuple[int, bytes, int]]) -> None:
    # With `fixed` there would be two ways to read it, and the columns would be made of entries.
    content = damaged(originals("binary")[0], changes)
    listed = ManifestFile(PLACE, 0, SPEC_ID, sequence_number=40)

    try:
        unpacked = UnpackedManifest(listed, content)
        unpacked.live_columns()
        list(unpacked.live_metrics())
    except InvalidMetadata as error:
        assert str(error).startswith(f"Cannot read manifest {PLACE}: ")  # noqa: PT017 - as above


@given(CHANGES)
def test_manifest_lists(changes: list[tuple[int, bytes, int]]) -> None:
    try:
        read_manifest_list(damaged(originals()[1], changes), PLACE)
    except InvalidMetadata as error:
        assert str(error).startswith(f"Cannot read manifest list {PLACE}: ")  # noqa: PT017 - as above


def outcome(content: bytes, known: KnownLines | None) -> str:
    try:
        return repr(read_manifest_list(content, PLACE, 1 << 20, known).values)
    except InvalidMetadata as error:
        return str(error)


@given(CHANGES)
def test_manifest_lists_beside_a_sound_one(changes: list[tuple[int, bytes, int]]) -> None:
    known = read_manifest_list(originals()[1], PLACE, 1 << 20)
    content = damaged(originals()[1], changes)

    assert outcome(content, known) == outcome(content, None)


@given(CHANGES)
def test_the_other_decoder(changes: list[tuple[int, bytes, int]]) -> None:
    try:
        statuses_and_paths(damaged(originals()[0], changes), PLACE)
    except InvalidMetadata as error:
        assert str(error).startswith(f"Cannot read {PLACE} as Avro: ")  # noqa: PT017 - as above
