"""Every transform on every type, in partition specs and in sort orders: allowed by both sides or by none."""

from __future__ import annotations

import itertools

import pytest

from tests.conformance.oracle import engine
from tests.conformance.oracle.columns import PLAIN_TYPES, TRANSFORMS, V3_TYPES
from tests.conformance.oracle.outcomes import Accepted, Json, Outcome
from tests.conformance.oracle.plain_documents import schema_of, table
from tests.conformance.oracle.reference import Reference
from tests.conformance.oracle.table_documents import START_MS, TABLE_LOCATION
from tests.conformance.oracle.update_lists import LAST_ADDED, act

pytestmark = pytest.mark.spark

NESTED_TYPES: tuple[Json, ...] = (
    {"type": "list", "element-id": 5, "element": "int", "element-required": False},
    {"type": "map", "key-id": 5, "key": "int", "value-id": 6, "value": "int", "value-required": False},
    {"type": "struct", "fields": [{"id": 5, "name": "x", "required": False, "type": "int"}]},
)
TYPES = (*PLAIN_TYPES, *V3_TYPES, *NESTED_TYPES)
ID = {"id": 1, "name": "id", "required": True, "type": "long"}


def table_with(kind: object) -> Json:
    """Return a table whose column 4, and whose column 5 inside it if it has parts, can be transformed."""
    column = {"id": 4, "name": "c", "required": False, "type": kind}
    return table(3, 0, schemas=[schema_of(ID, column)], partition_specs=[{"spec-id": 0, "fields": []}])


@pytest.mark.parametrize("source_id", [4, 5])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_partitioning_is_allowed_alike(reference: Reference, transform: str, source_id: int) -> None:
    field = {"name": "p", "transform": transform, "source-id": source_id, "field-id": 1001}
    updates = [
        act("add-spec", spec={"spec-id": 1, "fields": [field]}),
        act("set-default-spec", spec_id=LAST_ADDED),
    ]

    for kind in types_with(source_id):
        assert are_alike(reference, table_with(kind), updates), kind


@pytest.mark.parametrize("source_id", [4, 5])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_sorting_is_allowed_alike(reference: Reference, transform: str, source_id: int) -> None:
    field = {"transform": transform, "source-id": source_id, "direction": "asc", "null-order": "nulls-first"}
    updates = [
        act("add-sort-order", sort_order={"order-id": 1, "fields": [field]}),
        act("set-default-sort-order", sort_order_id=LAST_ADDED),
    ]

    for kind in types_with(source_id):
        assert are_alike(reference, table_with(kind), updates), kind


def types_with(source_id: int) -> tuple[object, ...]:
    return TYPES if source_id == 4 else NESTED_TYPES


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_change_of_type_leaves_a_table_that_can_be_read(reference: Reference, transform: str) -> None:
    """Old specs stay in the table, and every reader binds them to the schema that is current now."""
    outcomes = set()
    for old, new in itertools.product(("string", "date", "long", "timestamp"), TYPES):
        base = table_with(old)
        field = {"name": "p", "transform": transform, "source-id": 4, "field-id": 1000}
        base["partition-specs"].append({"spec-id": 1, "fields": [field]})
        if not isinstance(engine.read_table(base), Accepted) or not isinstance(
            reference.read_table(base), Accepted
        ):
            continue
        changed = schema_of(ID, {"id": 4, "name": "c", "required": False, "type": new})
        updates = [act("add-schema", schema=changed), act("set-current-schema", schema_id=LAST_ADDED)]

        ours = commit(base, updates)

        outcomes.add(type(ours))
        theirs = reference.commit(base, TABLE_LOCATION, updates)
        assert isinstance(theirs, Accepted), theirs
        can_be_read = isinstance(reference.read_table(theirs.document), Accepted)
        assert isinstance(ours, Accepted) == can_be_read, (old, new)
    assert Accepted in outcomes


def commit(base: Json, updates: list[Json]) -> Outcome:
    return engine.commit(base, TABLE_LOCATION, updates, START_MS + 100_000)


def are_alike(reference: Reference, base: Json, updates: list[Json]) -> bool:
    theirs, ours = reference.commit(base, TABLE_LOCATION, updates), commit(base, updates)
    return isinstance(theirs, Accepted) == isinstance(ours, Accepted)
