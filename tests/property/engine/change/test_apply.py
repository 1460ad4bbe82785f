"""Laws of commits: whatever the update list, what comes out is sound, or the refusal is one of ours."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import event, given
from hypothesis import strategies as st

from app.engine.change.apply import apply_to_new, apply_updates
from app.engine.change.updates import RemoveSnapshotRef, RemoveSnapshots, Update
from app.engine.model.document import Document
from app.engine.model.ids import Location
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.table_metadata import TableMetadata, check_invariants, read_table_metadata
from app.errors import BadRequest, ClockBehind, CommitFailed
from tests.strategies.table_documents import START_MS, odd_tables, tables
from tests.strategies.update_lists import (
    appends,
    parse_updates,
    sensible_updates,
    wild_updates,
)

BASE_LOCATION = Location("s3://bucket/t/metadata/00003-base.metadata.json")
TIMES = st.integers(START_MS - 1_000_000, START_MS + 1_000_000)
SENSIBLE = tables().flatmap(lambda base: st.tuples(st.just(base), sensible_updates(base)))
WILD = tables().flatmap(lambda base: st.tuples(st.just(base), wild_updates(base)))
ODD = odd_tables().flatmap(lambda base: st.tuples(st.just(base), wild_updates(base)))
Commit = tuple[TableMetadata, tuple[Update, ...]]


def committed(base: TableMetadata, updates: Sequence[Update], now_ms: int) -> TableMetadata | None:
    """Return what a commit makes of a base; None if it is refused by one of our errors, the only ones allowed."""
    try:
        metadata = apply_updates(base, updates, now_ms).finish(BASE_LOCATION)
    except (BadRequest, ClockBehind, CommitFailed) as error:
        event(type(error).__name__)
        assert str(error)  # noqa: PT017 - either outcome is right, and each has its law
        return None
    event("landed")
    return metadata


def check_sound(metadata: TableMetadata) -> None:
    check_invariants(metadata)
    content = metadata.to_json()
    assert content == Document.to_json(metadata)
    assert read_table_metadata(content).to_json() == content
    ids = {snapshot.snapshot_id for snapshot in metadata.snapshots}
    refs = metadata.snapshot_refs
    assert {ref.snapshot_id for ref in refs.values()} <= ids
    current = metadata.current_snapshot
    assert (current.snapshot_id if current else None) == (
        refs[MAIN_BRANCH].snapshot_id if MAIN_BRANCH in refs else None
    )


def check_nothing_falls(base: TableMetadata, metadata: TableMetadata) -> None:
    assert metadata.format_version >= base.format_version
    assert metadata.last_sequence >= base.last_sequence
    assert metadata.last_column_id >= base.last_column_id
    assert (metadata.last_partition_id or 0) >= (base.last_partition_id or 0)
    assert (metadata.next_row_id or 0) >= (base.next_row_id or 0)
    assert metadata.last_updated_ms >= base.last_updated_ms
    assert base.table_uuid in (None, metadata.table_uuid)


def check_the_rest_stays(base: TableMetadata, metadata: TableMetadata, updates: Sequence[Update]) -> None:
    """What no update names is byte for byte what it was, fields that this build does not know included."""
    removed = {
        item for update in updates if isinstance(update, RemoveSnapshots) for item in update.snapshot_ids
    }
    for snapshot in base.snapshots:
        if snapshot.snapshot_id not in removed:
            assert metadata.snapshots_by_id[snapshot.snapshot_id].to_json() == snapshot.to_json()
    schemas = {schema.schema_id: schema for schema in metadata.schemas}
    for schema in base.schemas:
        assert schemas.get(schema.schema_id, schema).to_json() == schema.to_json()
    dropped = {update.ref_name for update in updates if isinstance(update, RemoveSnapshotRef)}
    for name, ref in base.snapshot_refs.items():
        # One that was removed and made again is another.
        kept = None if name in dropped else metadata.snapshot_refs.get(name)
        assert kept is None or kept.type != ref.type or kept.unknown_fields == ref.unknown_fields
    assert metadata.unknown_fields == base.unknown_fields


@given(WILD | SENSIBLE | ODD, TIMES)
def test_any_update_list_ends_in_sound_metadata_or_in_a_refusal(commit: Commit, now_ms: int) -> None:
    base, updates = commit

    metadata = committed(base, updates, now_ms)

    if metadata is not None:
        check_sound(metadata)
        check_nothing_falls(base, metadata)
        check_the_rest_stays(base, metadata, updates)
        assert metadata.metadata_log[-1].metadata_file == BASE_LOCATION


@given(WILD | SENSIBLE, TIMES)
def test_commit_is_a_function_of_its_arguments(commit: Commit, now_ms: int) -> None:
    base, updates = commit
    before = base.to_json()

    first, second = committed(base, updates, now_ms), committed(base, updates, now_ms)
    from_its_bytes = committed(read_table_metadata(before), updates, now_ms)

    assert (first and first.to_json()) == (second and second.to_json())
    assert (first and first.to_json()) == (from_its_bytes and from_its_bytes.to_json())
    assert base.to_json() == before


@given(SENSIBLE, TIMES)
def test_draft_tells_truly_whether_anything_changed(commit: Commit, now_ms: int) -> None:
    """Without a change it finishes into its base, but for the time; and finishing it twice gives the same."""
    base, updates = commit
    try:
        draft = apply_updates(base, updates, now_ms)
        metadata = draft.finish(None)
    except (BadRequest, ClockBehind, CommitFailed):
        return

    assert draft.finish(None) == metadata
    if not draft.has_changes:
        assert metadata.replace(last_updated_ms=base.last_updated_ms) == base


@given(tables().flatmap(lambda base: st.tuples(st.just(base), appends(base, "main"))), TIMES)
def test_append_lands_on_every_table(made: tuple[TableMetadata, list[object]], now_ms: int) -> None:
    base, documents = made

    metadata = apply_updates(base, parse_updates(documents), now_ms).finish(BASE_LOCATION)

    check_sound(metadata)
    assert len(metadata.snapshots) == len(base.snapshots) + 1
    assert metadata.current_snapshot == metadata.snapshots[-1]
    assert metadata.snapshot_log[:-1] == base.snapshot_log
    assert metadata.snapshot_log[-1].snapshot_id == metadata.current_snapshot_id


@given(wild_updates(), TIMES)
def test_any_update_list_makes_a_sound_table_or_is_refused(updates: tuple[Update, ...], now_ms: int) -> None:
    try:
        metadata = apply_to_new(updates, now_ms).finish(None)
    except (BadRequest, ClockBehind, CommitFailed) as error:
        assert str(error)  # noqa: PT017 - either outcome is right, and each has its law
        return

    check_sound(metadata)


@given(tables(), TIMES)
def test_table_can_be_made_anew_from_its_own_parts(base: TableMetadata, now_ms: int) -> None:
    """What a create transaction sends: schema, spec and order of a staged table, then its properties."""
    schema, spec, order = base.current_schema, base.default_spec, base.default_sort_order
    updates = parse_updates(
        [
            {"action": "assign-uuid", "uuid": base.uuid},
            {"action": "upgrade-format-version", "format-version": base.format_version},
            {"action": "add-schema", "schema": schema.to_object()},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": spec.to_object()},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": order.to_object()},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": base.location},
            {"action": "set-properties", "updates": base.properties},
        ]
    )

    metadata = apply_to_new(updates, now_ms).finish(None)

    check_sound(metadata)
    assert metadata.format_version == base.format_version
    assert metadata.current_schema == schema.with_id(0)
    assert metadata.default_spec.fields == spec.fields
    assert metadata.default_sort_order.fields == order.fields
    assert metadata.properties == base.properties
    assert metadata.metadata_log == ()
