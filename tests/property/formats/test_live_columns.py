"""The live files of random manifests as columns: what their entries say, in one pass."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.engine.health.column_summary import LiveMetrics
from app.engine.health.live_columns import LiveColumns
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.manifests import partition_key
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.lists import assign_numbers
from app.formats.manifests.live_columns import UnpackedManifest
from app.formats.manifests.writer import write_manifest
from tests.strategies.manifest_entries import manifests

SNAPSHOT = SnapshotId(77)


def rows_of(live: LiveColumns) -> list[tuple[Any, ...]]:
    """Return the columns as rows, with the partition instead of its number."""
    keys = [partition_key(live.spec_id, live.partitions[number]) for number in live.partition_numbers]
    columns = (live.kinds, live.rows, live.sizes, live.sequence_numbers, live.sort_order_ids)
    return list(zip(keys, *columns, strict=True))


@given(st.sampled_from([1, 2, 3]).flatmap(lambda version: st.tuples(st.just(version), manifests(version))))
def test_columns_are_what_the_entries_say(found: tuple[int, tuple[Any, ...]]) -> None:
    version, (schema, spec, content, entries) = found
    # So many that records are found by their shape and not walked.
    repeated = entries * 20
    written = write_manifest(
        repeated, schema=schema, spec=spec, format_version=version, snapshot_id=SNAPSHOT, content=content
    )
    (manifest,), _ = assign_numbers([written.at(Location("memory://m.avro"))], sequence_number=9)

    expected = ManifestColumns(manifest, written.content)
    unpacked = UnpackedManifest(manifest, written.content)

    assert rows_of(unpacked.live_columns()) == rows_of(LiveColumns.of(spec.spec_id, expected))
    assert unpacked.live_metrics() == LiveMetrics.of(expected)
