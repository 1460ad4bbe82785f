"""The live files of random manifests as columns: what their entries say, in one pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.engine.health.column_summary import LiveMetrics
from app.engine.health.live_columns import LiveColumns
from app.engine.model.files.manifests import partition_key
from app.engine.model.ids import Location, SnapshotId
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.lists import assign_numbers
from app.formats.manifests.live_columns import UnpackedManifest
from app.formats.manifests.writer import write_manifest
from tests.builders.live_metrics import metrics_of
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
    live = [entry for entry in expected if entry.is_live]
    metrics = list(unpacked.live_metrics())
    # Far fewer files than are unpacked together.
    assert [_in_order(found) for found in metrics] == ([_in_order(metrics_of(live))] if live else [])


def _in_order(metrics: LiveMetrics) -> LiveMetrics:
    """Return metrics whose bounds, which have no order, are in one."""
    lower, upper = (
        {field_id: sorted(bounds) for field_id, bounds in columns.items()}
        for columns in (metrics.lower_bounds, metrics.upper_bounds)
    )
    return replace(metrics, lower_bounds=lower, upper_bounds=upper)
