"""Edits of a draft's partition specs."""

from __future__ import annotations

from app.engine.change.draft import MetadataDraft
from app.engine.change.numbering import named_id, next_id
from app.engine.change.updates import AddSpec, RemovePartitionSpecs, SetDefaultSpec
from app.engine.model.partition_spec import bind_spec
from app.errors import InvalidUpdate


def add_spec(draft: MetadataDraft, update: AddSpec) -> None:
    """Add a partition spec, bound to the current schema, or find the equal one."""
    spec_id = next_id((spec.spec_id for spec in draft.specs), 0, "partition spec")
    spec = bind_spec(update.spec, draft.current_schema, draft.format_version, spec_id)
    equal = next((item for item in draft.specs if item.same_fields(spec)), None)
    if equal is None:
        equal = spec
        draft.specs.append(spec)
        draft.last_partition_id = max(draft.last_partition_id, spec.highest_field_id)
        draft.has_changes = True
    draft.last_added_spec_id = equal.spec_id


def set_default_spec(draft: MetadataDraft, update: SetDefaultSpec) -> None:
    """Make a partition spec the default."""
    spec_id = named_id(
        update.spec_id, draft.last_added_spec_id, "Cannot set last added spec: no spec has been added"
    )
    draft.has_changes |= spec_id != draft.default_spec_id
    draft.default_spec_id = spec_id


def remove_partition_specs(draft: MetadataDraft, update: RemovePartitionSpecs) -> None:
    """Remove partition specs; the default one must stay."""
    doomed = set(update.spec_ids)
    if draft.default_spec_id in doomed:
        raise InvalidUpdate("Cannot remove the default partition spec")
    kept = [spec for spec in draft.specs if spec.spec_id not in doomed]
    if len(kept) != len(draft.specs):
        draft.specs = kept
        draft.has_changes = True
