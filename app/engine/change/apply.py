"""Applying updates to a table: the one switchboard from an update to its edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from app.engine.change import updates as u
from app.engine.change.draft import MetadataDraft, draft_of
from app.engine.change.edits import properties, refs, snapshots, sort_orders, specs, statistics, table_schemas
from app.engine.change.requirements import Report, raise_refusal
from app.engine.model.format_versions import FORMAT_VERSIONS
from app.engine.model.ids import SchemaId, SortOrderId, SpecId
from app.engine.model.sort_order import UNSORTED_ORDER_ID
from app.engine.model.table_metadata import TableMetadata
from app.errors import IcetowerError, InvalidUpdate


def apply_updates(
    base: TableMetadata, updates: Sequence[u.Update], now_ms: int, report: Report = raise_refusal
) -> MetadataDraft:
    """Return a draft of the base with every update applied, in order.

    Raises:
        InvalidUpdate: an update that cannot be applied.
        StaleUpdate: another commit came first.
    """
    return _applied(lambda: draft_of(base, now_ms), updates, report)


def apply_to_new(updates: Sequence[u.Update], now_ms: int, report: Report = raise_refusal) -> MetadataDraft:
    """Return a draft of a table that is made by these updates alone.

    The first `upgrade-format-version` chooses the version, so that also a v1 table can be made.

    Raises:
        InvalidUpdate: an update that cannot be applied.
    """
    return _applied(lambda: _new_draft(updates, now_ms), updates, report)


def find_offending_update(
    current: TableMetadata | None, updates: Sequence[u.Update], now_ms: int, error: IcetowerError
) -> int | None:
    """Return the position of the update that causes an error at the end; None if unknown."""
    for position in range(len(updates)):
        begun = updates[: position + 1]
        try:
            draft = apply_to_new(begun, now_ms) if current is None else apply_updates(current, begun, now_ms)
            draft.finish(None)
        except IcetowerError as found:
            # The first updates alone may have other errors, which the later ones correct.
            if str(found) == str(error):
                return position
    return None


def _new_draft(updates: Sequence[u.Update], now_ms: int) -> MetadataDraft:
    # As in the reference, what is added first is current until an update changes that.
    draft = MetadataDraft(
        base=None,
        now_ms=now_ms,
        current_schema_id=SchemaId(0),
        default_spec_id=SpecId(0),
        default_sort_order_id=SortOrderId(UNSORTED_ORDER_ID),
    )
    chosen = next((item for item in updates if isinstance(item, u.UpgradeFormatVersion)), None)
    if chosen is not None and chosen.format_version in FORMAT_VERSIONS:
        draft.format_version = chosen.format_version
    return draft


def _applied(
    begin: Callable[[], MetadataDraft], updates: Sequence[u.Update], report: Report
) -> MetadataDraft:
    """Apply updates to a draft; an update that fails leaves no trace in it."""
    draft = begin()
    failed: set[int] = set()
    for position, update in enumerate(updates):
        try:
            apply_update(draft, update)
        except IcetowerError as error:
            continues = report(position, error)
            failed.add(position)
            # The edit may have been half done when it failed.
            draft = begin()
            for earlier, accepted in enumerate(updates[:position]):
                if earlier not in failed:
                    apply_update(draft, accepted)
            if not continues:
                break
        else:
            report(position, None)
    return draft


def apply_update(draft: MetadataDraft, update: u.Update) -> None:
    """Apply one update to a draft.

    Raises:
        InvalidUpdate: it cannot be applied, or is for views.
        StaleUpdate: another commit came first.
    """
    match update:
        case u.AssignUuid():
            properties.assign_uuid(draft, update)
        case u.UpgradeFormatVersion():
            properties.upgrade_format_version(draft, update)
        case u.AddSchema():
            table_schemas.add_schema(draft, update)
        case u.SetCurrentSchema():
            table_schemas.set_current_schema(draft, update)
        case u.RemoveSchemas():
            table_schemas.remove_schemas(draft, update)
        case u.AddSpec():
            specs.add_spec(draft, update)
        case u.SetDefaultSpec():
            specs.set_default_spec(draft, update)
        case u.RemovePartitionSpecs():
            specs.remove_partition_specs(draft, update)
        case u.AddSortOrder():
            sort_orders.add_sort_order(draft, update)
        case u.SetDefaultSortOrder():
            sort_orders.set_default_sort_order(draft, update)
        case u.AddSnapshot():
            snapshots.add_snapshot(draft, update)
        case u.RemoveSnapshots():
            snapshots.remove_snapshots(draft, update)
        case u.SetSnapshotRef():
            refs.set_snapshot_ref(draft, update)
        case u.RemoveSnapshotRef():
            refs.remove_snapshot_ref(draft, update)
        case u.SetLocation():
            properties.set_location(draft, update)
        case u.SetProperties():
            properties.set_properties(draft, update)
        case u.RemoveProperties():
            properties.remove_properties(draft, update)
        case u.SetStatistics():
            statistics.set_statistics(draft, update)
        case u.RemoveStatistics():
            statistics.remove_statistics(draft, update)
        case u.SetPartitionStatistics():
            statistics.set_partition_statistics(draft, update)
        case u.RemovePartitionStatistics():
            statistics.remove_partition_statistics(draft, update)
        case u.AddEncryptionKey():
            statistics.add_encryption_key(draft, update)
        case u.RemoveEncryptionKey():
            statistics.remove_encryption_key(draft, update)
        case u.AddViewVersion() | u.SetCurrentViewVersion():
            raise InvalidUpdate(f"Cannot apply {update.action} to a table: it is for views")
        case never:
            assert_never(never)
