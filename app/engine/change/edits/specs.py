"""Edits of a draft's partition specs."""

from __future__ import annotations

from app.engine.change.draft import MetadataDraft
from app.engine.change.numbering import check_chosen_id, named_id
from app.engine.change.updates import AddSpec, RemovePartitionSpecs, SetDefaultSpec
from app.engine.model.partition_spec import bind_spec
from app.errors import InvalidUpdate


def add_spec(draft: MetadataDraft, update: AddSpec) -> None:
    """Add a partition spec, bound to the current schema, or find the equal one."""
    spec = bind_spec(
        update.spec,
        draft.current_schema,
        draft.format_version,
        draft.specs.next_id(),
        known_ids=draft.fields_of_specs().ids,
        last_field_id=draft.last_partition_id,
    )
    equal = draft.specs.find_equal(spec)
    if equal is None:
        check_chosen_id(spec.highest_field_id, draft.last_partition_id, len(spec.fields), "a partition field")
        if draft.format.tracks_partition_field_ids:
            draft.fields_of_specs().check(spec)
        equal = draft.specs.add(spec)
        if draft.spec_names is not None:
            draft.spec_names.add(spec)
        draft.fields_of_specs().add(spec)
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
    doomed = {spec_id for spec_id in update.spec_ids if spec_id in draft.specs}
    if draft.default_spec_id in doomed:
        raise InvalidUpdate("Cannot remove the default partition spec")
    for spec in filter(None, map(draft.specs.remove, doomed)):
        if draft.spec_names is not None:
            draft.spec_names.remove(spec)
        draft.has_changes = True
