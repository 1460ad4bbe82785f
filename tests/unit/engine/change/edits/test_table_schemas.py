"""Edits of schemas: ids, reuse, the last column id, what is current, what may go."""

from __future__ import annotations

import pytest

from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidUpdate
from tests.unit.engine.documents import (
    Json,
    applied,
    column,
    committed,
    list_of,
    part,
    schema_json,
    spec_json,
    table,
)

ID = column(1, "id", "long", required=True)
CATEGORY = column(2, "category", "string")
NAME = column(3, "name", "string")
SET_LAST: Json = {"action": "set-current-schema", "schema-id": -1}
BASE = table()
WIDER = schema_json(ID, CATEGORY, NAME, schema_id=77)


def add(document: Json) -> Json:
    return {"action": "add-schema", "schema": document}


def set_current(schema_id: int) -> Json:
    return {"action": "set-current-schema", "schema-id": schema_id}


def refusal(base: TableMetadata, *updates: Json) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        applied(base, *updates)
    return str(caught.value)


def test_new_schema_gets_the_next_id_whatever_was_sent() -> None:
    after = committed(BASE, add(WIDER), SET_LAST)

    assert [item.schema_id for item in after.schemas] == [0, 1]
    assert after.current_schema_id == 1
    assert after.last_column_id == 3


def test_next_id_follows_the_highest_one() -> None:
    base = table(schemas=[schema_json(ID, CATEGORY), schema_json(ID, schema_id=5)])

    assert committed(base, add(WIDER), SET_LAST).current_schema_id == 6


def test_new_schema_is_not_current_by_itself() -> None:
    after = committed(BASE, add(WIDER))

    assert after.current_schema_id == 0
    assert after.last_column_id == 3


def test_equal_schema_is_found_and_nothing_changes() -> None:
    draft = applied(BASE, add(schema_json(ID, CATEGORY, schema_id=9)))

    assert not draft.has_changes
    assert draft.last_added_schema_id == 0


def test_reverting_to_an_old_schema_takes_its_id_again() -> None:
    wider = committed(BASE, add(WIDER), SET_LAST)

    after = committed(wider, add(schema_json(ID, CATEGORY)), SET_LAST)

    assert len(after.schemas) == 2
    assert after.current_schema_id == 0
    assert after.last_column_id == 3


def test_schema_with_other_identifier_fields_is_another_one() -> None:
    after = committed(BASE, add(schema_json(ID, CATEGORY, identifiers=[1])), SET_LAST)

    assert after.current_schema_id == 1


def test_last_column_id_counts_nested_columns_and_never_falls() -> None:
    nested = schema_json(ID, CATEGORY, column(3, "tags", list_of(40, "string")))
    widest = committed(BASE, add(nested), SET_LAST)

    assert widest.last_column_id == 40
    assert committed(widest, add(WIDER), SET_LAST).last_column_id == 40


def test_old_schema_above_the_last_column_id_corrects_it() -> None:
    base = table().replace(last_column_id=1)

    draft = applied(base, add(schema_json(ID, CATEGORY)))

    assert draft.has_changes
    assert draft.last_column_id == 2


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (schema_json(column(1, "v", "variant")), "variant is not supported until v3"),
        (schema_json(column(1, "d", initial_default=4)), "non-null default (4) is not supported until v3"),
        (schema_json(ID, ID), "field id 1 is used more than once"),
        (schema_json(ID, identifiers=[9]), "Cannot add fieldId 9 as an identifier field"),
        (schema_json(column(2**31 - 1, "x")), "Cannot add schema: field id 2147483647 is reserved"),
    ],
)
def test_schema_that_cannot_be_is_refused(document: Json, message: str) -> None:
    assert message in refusal(BASE, add(document))


def test_half_of_all_field_ids_may_be_chosen() -> None:
    after = committed(BASE, add(schema_json(column(2**30, "x"))))

    assert after.last_column_id == 2**30
    assert refusal(BASE, add(schema_json(column(2**30 + 1, "x")))) == (
        "Cannot add a column with id 1073741825: it would leave too few ids for others; the highest allowed "
        "is 1073741824"
    )


def test_table_of_another_catalog_goes_on_beyond_them() -> None:
    last = 2**31 - 201 - 2
    base = table(last_column_id=last)

    def new(*ids: int) -> Json:
        return add(schema_json(*(column(field_id, f"c{field_id}") for field_id in ids)))

    assert committed(base, new(last + 1, last + 2)).last_column_id == 2**31 - 201
    assert committed(base, new(last - 1)).last_column_id == last
    assert refusal(base, new(last + 2)).endswith(f"the highest allowed is {last + 1}")
    assert "is reserved" in refusal(base, new(last + 1, last + 2, last + 3))


def test_v3_takes_what_it_brought() -> None:
    document = schema_json(ID, CATEGORY, column(3, "v", "variant"), column(4, "d", initial_default=4))

    assert committed(table(3), add(document), SET_LAST).current_schema_id == 1


def test_schema_may_reuse_field_ids_for_other_things() -> None:
    """A replaced table keeps its ids for columns of the same name, whatever their types."""
    document = schema_json(column(1, "id", "string"), column(2, "category", "string"))

    assert committed(BASE, add(document), SET_LAST).current_schema.fields[0].required is False


def test_setting_the_schema_that_is_current_changes_nothing() -> None:
    assert not applied(BASE, set_current(0)).has_changes


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ([SET_LAST], "Cannot set last added schema: no schema has been added"),
        ([set_current(9)], "Cannot set current schema to unknown schema: 9"),
        ([add(WIDER), set_current(77)], "Cannot set current schema to unknown schema: 77"),
        (
            [add(WIDER), {"action": "remove-schemas", "schema-ids": [1]}, SET_LAST],
            "Cannot set current schema to unknown schema: 1",
        ),
    ],
)
def test_schema_that_is_not_there_cannot_be_current(updates: list[Json], message: str) -> None:
    assert refusal(BASE, *updates) == message


def test_column_may_not_take_the_name_of_a_partition_field_of_any_spec() -> None:
    base = table(partition_specs=[spec_json(), spec_json(part("bucketed", 1, 1000, "bucket[4]"), spec_id=1)])
    clash = schema_json(ID, CATEGORY, column(3, "bucketed"))

    assert refusal(base, add(clash), SET_LAST) == (
        "Cannot create partition from name that exists in schema: bucketed"
    )


def test_schemas_that_nothing_needs_go_and_unknown_ones_are_passed_over() -> None:
    wider = committed(BASE, add(WIDER), SET_LAST)

    after = committed(wider, {"action": "remove-schemas", "schema-ids": [0, 42]})

    assert [item.schema_id for item in after.schemas] == [1]
    assert not applied(after, {"action": "remove-schemas", "schema-ids": [0, 42]}).has_changes


def test_current_schema_stays() -> None:
    assert refusal(BASE, {"action": "remove-schemas", "schema-ids": [7, 0]}) == (
        "Cannot remove the current schema"
    )


def test_schema_that_went_can_come_back_in_the_same_commit() -> None:
    wider = committed(BASE, add(WIDER), SET_LAST)

    after = committed(
        wider, {"action": "remove-schemas", "schema-ids": [0]}, add(schema_json(ID, CATEGORY)), SET_LAST
    )

    assert [item.schema_id for item in after.schemas] == [1, 2]
    assert after.current_schema_id == 2


def test_there_is_no_schema_id_after_the_last() -> None:
    base = table(schemas=[schema_json(ID, CATEGORY), schema_json(ID, schema_id=2**31 - 1)])

    assert refusal(base, add(WIDER)) == "Cannot number another schema: 2147483647 is the last id there is"


def test_unknown_fields_of_a_schema_are_stored_as_sent() -> None:
    document = schema_json(ID | {"vendor": [1]}, CATEGORY) | {"vendor": {"a": None}}

    after = committed(BASE, add(document), SET_LAST)

    assert after.to_object()["schemas"][1] == document | {"schema-id": 1}
