"""Sort orders: reading them, and binding them to a schema."""

from __future__ import annotations

import json

import pytest

from app.engine.model.sort_order import UNSORTED, SortOrder, bind_order, check_order
from app.errors import InvalidMetadata, InvalidUpdate
from tests.unit.engine.documents import Json, column, encoded, list_of, order_json, schema, sort_json

COLUMNS = schema(column(1, "id", "long"), column(2, "tags", list_of(3, "string")), column(4, "v", "variant"))


def order(*fields: Json, order_id: int = 1, **more: object) -> SortOrder:
    return SortOrder.from_json(encoded(order_json(*fields, order_id=order_id) | more))


def test_orders_are_the_same_whatever_their_ids() -> None:
    assert order(sort_json(1)).same_fields(order(sort_json(1), order_id=9))
    assert not order(sort_json(1)).same_fields(order(sort_json(1, direction="desc")))
    assert not order(sort_json(1)).same_fields(UNSORTED)


def test_unsorted_order_has_no_fields_and_id_0() -> None:
    assert UNSORTED.is_unsorted
    assert json.loads(UNSORTED.to_json()) == {"order-id": 0, "fields": []}
    assert not order(sort_json(1)).is_unsorted


def test_bound_order_has_canonical_transforms_and_keeps_unknown_fields() -> None:
    sent = order(sort_json(1, "BUCKET[04]") | {"note": 1}, vendor=2)

    made = bind_order(sent, COLUMNS)

    assert json.loads(made.to_json()) == order_json(sort_json(1, "bucket[4]") | {"note": 1}) | {"vendor": 2}


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (sort_json(9), "Cannot find source column for sort field with source-id 9"),
        (sort_json(9, "void"), "Cannot find source column for sort field with source-id 9"),
        (
            sort_json(2),
            "Cannot use tags as source of sort field with source-id 2: it is not a primitive type",
        ),
        (sort_json(4), "Cannot use v as source of sort field with source-id 4: it is not a primitive type"),
        (sort_json(1, "day"), "Invalid source type long for transform day of sort field with source-id 1"),
        (sort_json(1, "zorder"), "Unknown transform: 'zorder'"),
    ],
)
def test_field_that_cannot_be_bound_is_refused(field: Json, message: str) -> None:
    with pytest.raises(InvalidUpdate) as caught:
        bind_order(order(field), COLUMNS)

    assert str(caught.value) == message


def test_transform_of_a_later_version_passes_where_it_is_already() -> None:
    check_order(order(sort_json(1, "zorder")), COLUMNS)


@pytest.mark.parametrize(
    "field",
    [
        sort_json(1, direction="ASC"),
        sort_json(1) | {"null-order": "first"},
        {"source-id": 1, "transform": "identity", "direction": "asc"},
        {"transform": "identity", "direction": "asc", "null-order": "nulls-first", "source-ids": [1, 2]},
    ],
)
def test_field_that_is_no_sort_field_is_refused(field: Json) -> None:
    with pytest.raises(InvalidMetadata, match=r"^fields\[0\]"):
        order(field)


def test_single_source_of_v3_is_read_as_the_source() -> None:
    field = {"transform": "identity", "direction": "asc", "null-order": "nulls-first", "source-ids": [1]}

    assert order(field).fields[0].source_id == 1
