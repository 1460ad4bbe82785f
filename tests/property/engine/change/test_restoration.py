"""The law of restoration: whatever was done to a table, it becomes again what it was, and all else stays."""

from __future__ import annotations

from hypothesis import assume, event, given
from hypothesis import strategies as st

from app.engine.change.apply import apply_updates
from app.engine.change.restoration import lost_snapshot, restoring_updates
from app.engine.change.updates import Update
from app.engine.model.ids import Location
from app.engine.model.refs import MAIN_BRANCH, SnapshotRef
from app.engine.model.table_metadata import TableMetadata
from app.errors import BadRequest, CommitFailed
from tests.strategies.table_documents import START_MS, tables
from tests.strategies.update_lists import sensible_updates

NOW_MS = START_MS + 20_000
STAYING = frozenset({"true"})
"""A property that stays as it is; one of the names that tables get."""


def changed(base: TableMetadata, updates: tuple[Update, ...]) -> TableMetadata:
    return apply_updates(base, updates, NOW_MS).finish(Location("s3://bucket/t/metadata/1.metadata.json"))


def facts(metadata: TableMetadata) -> tuple[object, ...]:
    """Return what a restoration brings back."""
    current = metadata.current_snapshot
    return (
        metadata.current_schema.fields,
        metadata.current_schema.identifier_field_ids,
        # Of specs that mean the same, the first one serves.
        [(field.name, field.transform, field.source_id) for field in metadata.default_spec.fields],
        metadata.default_sort_order.fields,
        {name: value for name, value in metadata.properties.items() if name not in STAYING},
        metadata.location.rstrip("/"),
        None if current is None else current.snapshot_id,
    )


def kept_refs(metadata: TableMetadata) -> dict[str, SnapshotRef]:
    return {name: ref for name, ref in metadata.snapshot_refs.items() if name != MAIN_BRANCH}


@given(data=st.data(), base=tables())
def test_table_becomes_again_what_it_was(data: st.DataObject, base: TableMetadata) -> None:
    now = base
    for _ in range(data.draw(st.integers(1, 3))):
        try:
            now = changed(now, data.draw(sensible_updates(now)))
        except (BadRequest, CommitFailed):
            continue
    assume(now is not base and lost_snapshot(now, base) is None)

    updates = restoring_updates(now, base, staying=STAYING)
    after = changed(now, tuple(updates))

    event(f"updates: {len(updates)}")
    assert facts(after) == facts(base)
    assert after.properties.get("true") == now.properties.get("true")
    assert kept_refs(after) == kept_refs(now)
    if MAIN_BRANCH in now.snapshot_refs and MAIN_BRANCH in after.snapshot_refs:
        was, main = now.snapshot_refs[MAIN_BRANCH], after.snapshot_refs[MAIN_BRANCH]
        assert main == was.replace(snapshot_id=main.snapshot_id)
    assert after.format_version == now.format_version
    assert after.snapshots_by_id == now.snapshots_by_id
    assert not restoring_updates(after, base, staying=STAYING)
