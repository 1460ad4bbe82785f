"""Laws of schemas: every column has one id and one name, and fresh ids change nothing else."""

from __future__ import annotations

import itertools

from hypothesis import given

from app.engine.model.schema import Schema, check_format_version, check_schema, renumber
from tests.strategies.table_schemas import schema_documents

SCHEMAS = schema_documents(3, with_unknown=True).map(Schema.from_object)


@given(SCHEMAS)
def test_valid_schema_passes_every_check(schema: Schema) -> None:
    check_schema(schema)
    check_format_version(schema, 3)


@given(SCHEMAS)
def test_every_column_is_found_by_its_name(schema: Schema) -> None:
    for field_id, column in schema.columns.items():
        assert schema.ids_by_name[column.name] == field_id
        assert column.field.id == field_id
        assert column.name.endswith(column.field.name)


@given(SCHEMAS)
def test_fresh_ids_are_dense_and_leave_all_else_as_it_was(schema: Schema) -> None:
    ids = itertools.count(501)

    fresh, new_ids = renumber(schema, lambda: next(ids))

    assert sorted(new_ids.values()) == list(range(501, 501 + len(schema.columns)))
    names = {new_ids[field_id]: column.name for field_id, column in schema.columns.items()}
    assert {field_id: column.name for field_id, column in fresh.columns.items()} == names
    back, _ = renumber(fresh, iter([*new_ids]).__next__)
    assert back == schema


@given(SCHEMAS)
def test_schema_differs_from_its_copy_in_the_id_only(schema: Schema) -> None:
    copy = schema.with_id(7)

    assert copy.same_columns(schema)
    assert copy.with_id(schema.schema_id) == schema
    assert copy.highest_field_id == schema.highest_field_id
