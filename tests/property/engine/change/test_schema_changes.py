"""Laws of schema differences: every difference has a name, and the way back mirrors the way there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.engine.change.schema_changes import (
    ColumnAdded,
    ColumnDropped,
    ColumnRenamed,
    ColumnsReordered,
    schema_changes,
)
from app.engine.model.schema import Schema
from tests.strategies.table_schemas import evolutions, highest_id, schema_documents

VERSIONS = st.sampled_from([1, 2, 3])


@st.composite
def evolved_pairs(draw: st.DrawFn) -> tuple[Schema, Schema, int]:
    """Return a schema, one that allowed changes made of it, and the format version."""
    version = draw(VERSIONS)
    old = draw(schema_documents(version, min_columns=1))
    new = draw(evolutions(old, version, highest_id(old) + 1, 1))
    return Schema.from_object(old), Schema.from_object(new), version


@given(evolved_pairs())
def test_schemas_differ_exactly_when_something_changed(pair: tuple[Schema, Schema, int]) -> None:
    old, new, _ = pair

    assert (schema_changes(old, new) == ()) == old.same_columns(new)
    assert schema_changes(old, old.with_id(9)) == ()


@given(st.data(), VERSIONS)
def test_unrelated_schemas_differ_by_name_too(data: st.DataObject, version: int) -> None:
    old = Schema.from_object(data.draw(schema_documents(version)))
    new = Schema.from_object(data.draw(schema_documents(version)))

    assert (schema_changes(old, new) == ()) == old.same_columns(new)


@given(evolved_pairs())
def test_the_way_back_mirrors_the_way_there(pair: tuple[Schema, Schema, int]) -> None:
    old, new, _ = pair

    there, back = schema_changes(old, new), schema_changes(new, old)

    def ids(changes: tuple[object, ...], kind: type[ColumnAdded | ColumnDropped | ColumnRenamed]) -> set[int]:
        return {change.field_id for change in changes if isinstance(change, kind)}

    assert ids(there, ColumnAdded) == ids(back, ColumnDropped)
    assert ids(there, ColumnDropped) == ids(back, ColumnAdded)
    assert ids(there, ColumnRenamed) == ids(back, ColumnRenamed)
    assert sum(isinstance(change, ColumnsReordered) for change in there) == sum(
        isinstance(change, ColumnsReordered) for change in back
    )
