"""Restoration: the updates that bring a table back to what it was."""

from __future__ import annotations

from app.engine.change.numbering import LAST_ADDED
from app.engine.change.updates import (
    AddSchema,
    AddSortOrder,
    AddSpec,
    RemoveProperties,
    RemoveSnapshotRef,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from app.engine.model.ids import SchemaId, SortOrderId, SpecId
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.table_metadata import TableMetadata


def restoring_updates(now: TableMetadata, then: TableMetadata, *, staying: frozenset[str]) -> list[Update]:
    """Return the updates that make a table again what it was.

    Schema, spec, order, properties, location and the rows of main. Other branches and tags stay, and so does a higher
    format version. `then.current_snapshot` must be one that the table still has: see `lost_snapshot`.

    Args:
        now: the table.
        then: an earlier state of it.
        staying: properties that stay as they are.
    """
    updates: list[Update] = []
    if not now.current_schema.same_columns(then.current_schema):
        added = AddSchema.model_validate({"schema": then.current_schema})
        updates += [added, SetCurrentSchema(schema_id=SchemaId(LAST_ADDED))]
    if not now.default_spec.same_fields(then.default_spec):
        fields = [field.model_dump(by_alias=True) for field in then.default_spec.fields]
        spec = UnboundPartitionSpec.model_validate({"fields": fields})
        updates += [AddSpec(spec=spec), SetDefaultSpec(spec_id=SpecId(LAST_ADDED))]
    if not now.default_sort_order.same_fields(then.default_sort_order):
        updates += [
            AddSortOrder(sort_order=then.default_sort_order),
            SetDefaultSortOrder(sort_order_id=SortOrderId(LAST_ADDED)),
        ]
    updates += _of_properties(now, then, staying)
    if now.location != then.location:
        updates.append(SetLocation(location=then.location))
    updates += _of_main(now, then)
    return updates


def lost_snapshot(now: TableMetadata, then: TableMetadata) -> int | None:
    """Return the current snapshot of then if the table has it no more; else None."""
    wanted = then.current_snapshot
    if wanted is None:
        return None
    found = now.snapshots_by_id.get(wanted.snapshot_id)
    # A client may have given an id a second time.
    is_there = found is not None and found.manifest_list == wanted.manifest_list
    return None if is_there else wanted.snapshot_id


def _of_properties(now: TableMetadata, then: TableMetadata, staying: frozenset[str]) -> list[Update]:
    changed = {
        name: value
        for name, value in then.properties.items()
        if name not in staying and now.properties.get(name) != value
    }
    removed = sorted(now.properties.keys() - then.properties.keys() - staying)
    return [
        *([SetProperties(updates=changed)] if changed else []),
        *([RemoveProperties(removals=tuple(removed))] if removed else []),
    ]


def _of_main(now: TableMetadata, then: TableMetadata) -> list[Update]:
    main, wanted = now.snapshot_refs.get(MAIN_BRANCH), then.current_snapshot
    if wanted is None:
        return [] if main is None else [RemoveSnapshotRef(ref_name=MAIN_BRANCH)]
    if main is not None and main.snapshot_id == wanted.snapshot_id:
        return []
    kept = main or then.snapshot_refs.get(MAIN_BRANCH)  # Without main, its settings are gone, too.
    return [
        SetSnapshotRef(
            ref_name=MAIN_BRANCH,
            snapshot_id=wanted.snapshot_id,
            type="branch",
            min_snapshots_to_keep=kept.min_snapshots_to_keep if kept else None,
            max_snapshot_age_ms=kept.max_snapshot_age_ms if kept else None,
            max_ref_age_ms=kept.max_ref_age_ms if kept else None,
        )
    ]
