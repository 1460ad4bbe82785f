"""Manifests of entries that come in any order."""

from __future__ import annotations

import struct

import pytest

from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
)
from app.engine.model.ids import Location, SnapshotId
from app.formats.manifests.shuffled import ShuffledManifests
from app.formats.manifests.writer import ManifestPacker
from tests.strategies.manifest_entries import table_of


def entry(value: float) -> ManifestEntry:
    spec_id = table_of(["double"], ["identity"])[1].spec_id
    path = Location(f"s3://b/{value}.parquet")
    file = DataFile(FileContent.DATA, path, "PARQUET", spec_id, (value,), 1, 100)
    return ManifestEntry(EntryStatus.EXISTING, SnapshotId(1), 1, 1, file)


@pytest.mark.parametrize("values", [(0.0, -0.0), (-0.0, 0.0)])
def test_both_zeros_are_within_the_bounds_of_their_manifest(values: tuple[float, float]) -> None:
    """A reader passes over a manifest whose bounds leave its value out."""
    schema, spec = table_of(["double"], ["identity"])
    packer = ManifestPacker(
        schema=schema,
        spec=spec,
        format_version=2,
        content=ManifestContent.DATA,
        snapshot_id=SnapshotId(2),
        partitions=[(value,) for value in values],
    )
    shuffled = ShuffledManifests(packer, 1, 1 << 20)
    for rank, value in enumerate(values):
        shuffled.add(0, rank, entry(value))

    (written,) = shuffled.finish()

    (summary,) = written.manifest.partitions or ()
    assert (summary.lower_bound, summary.upper_bound) == (struct.pack("<d", -0.0), struct.pack("<d", 0.0))
