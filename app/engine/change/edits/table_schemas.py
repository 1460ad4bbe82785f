"""Edits of a draft's schemas."""

from __future__ import annotations

from app.engine.change.draft import MetadataDraft
from app.engine.change.numbering import check_chosen_id, named_id
from app.engine.change.updates import AddSchema, RemoveSchemas, SetCurrentSchema
from app.engine.model.schema import LAST_FIELD_ID, check_format_version, check_schema
from app.errors import InvalidUpdate

NO_SCHEMA_ADDED = "Cannot set last added schema: no schema has been added"


def add_schema(draft: MetadataDraft, update: AddSchema) -> None:
    """Add a schema, or find the equal one."""
    schema = update.schema_
    check_schema(schema)
    check_format_version(schema, draft.format_version)
    if schema.highest_field_id > LAST_FIELD_ID:
        # It would become the last assigned id, and no more columns could be added.
        raise InvalidUpdate(f"Cannot add schema: field id {schema.highest_field_id} is reserved")
    check_chosen_id(schema.highest_field_id, draft.last_column_id, len(schema.columns), "a column")
    equal = draft.schemas.find_equal(schema)
    if equal is None:
        equal = draft.schemas.add(schema.with_id(draft.schemas.next_id()))
        draft.has_changes = True
    if schema.highest_field_id > draft.last_column_id:
        draft.last_column_id = schema.highest_field_id
        draft.has_changes = True
    # An equal schema counts as added last too, so that a second writer of the same change succeeds.
    draft.last_added_schema_id = equal.schema_id


def set_current_schema(draft: MetadataDraft, update: SetCurrentSchema) -> None:
    """Make a schema current; specs and sort orders follow, as they only have source ids."""
    schema_id = named_id(update.schema_id, draft.last_added_schema_id, NO_SCHEMA_ADDED)
    if schema_id == draft.current_schema_id:
        return
    if schema_id not in draft.schemas:
        raise InvalidUpdate(f"Cannot set current schema to unknown schema: {schema_id}")
    draft.current_schema_id = schema_id
    draft.check_names_of_specs()
    draft.has_changes = True


def remove_schemas(draft: MetadataDraft, update: RemoveSchemas) -> None:
    """Remove schemas; the current one must stay."""
    doomed = {schema_id for schema_id in update.schema_ids if schema_id in draft.schemas}
    if draft.current_schema_id in doomed:
        raise InvalidUpdate("Cannot remove the current schema")
    for schema_id in doomed:
        draft.has_changes |= draft.schemas.remove(schema_id) is not None
