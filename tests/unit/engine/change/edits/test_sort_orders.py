"""Edits of sort orders: ids, reuse, the default."""

from __future__ import annotations

import pytest

from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidUpdate
from tests.unit.engine.documents import Json, applied, committed, order_json, sort_json, table

BASE = table()
SET_LAST: Json = {"action": "set-default-sort-order", "sort-order-id": -1}


def add(*fields: Json, order_id: int = 77) -> Json:
    return {"action": "add-sort-order", "sort-order": order_json(*fields, order_id=order_id)}


def refusal(base: TableMetadata, *updates: Json) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        applied(base, *updates)
    return str(caught.value)


def test_new_order_gets_the_next_id_whatever_was_sent() -> None:
    after = committed(BASE, add(sort_json(1)), SET_LAST, add(sort_json(2)), SET_LAST)

    assert [item.order_id for item in after.sort_orders] == [0, 1, 2]
    assert after.default_sort_order_id == 2


def test_first_order_is_number_1() -> None:
    base = table(sort_orders=[order_json(sort_json(1), order_id=0)])

    assert committed(base, add(sort_json(2)), SET_LAST).default_sort_order_id == 1


def test_unsorted_order_is_number_0() -> None:
    base = table(sort_orders=[order_json(sort_json(1), order_id=4)], default_sort_order_id=4)

    after = committed(base, add(), SET_LAST)

    assert [item.order_id for item in after.sort_orders] == [4, 0]
    assert after.default_sort_order.is_unsorted


def test_equal_order_is_found_and_nothing_changes() -> None:
    sorted_by_id = committed(BASE, add(sort_json(1)), SET_LAST)

    draft = applied(sorted_by_id, add(sort_json(1, "IDENTITY")), add())

    assert not draft.has_changes
    assert draft.last_added_order_id == 0


def test_reverting_to_an_old_order_takes_its_id_again() -> None:
    twice = committed(BASE, add(sort_json(1)), add(sort_json(2)), SET_LAST)

    assert committed(twice, add(sort_json(1)), SET_LAST).default_sort_order_id == 1


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (sort_json(99), "Cannot find source column for sort field with source-id 99"),
        (sort_json(2, "day"), "Invalid source type string for transform day"),
        (sort_json(2, "zorder"), "Unknown transform: 'zorder'"),
    ],
)
def test_order_that_cannot_be_is_refused(field: Json, message: str) -> None:
    assert message in refusal(BASE, add(field))


def test_setting_the_default_order_again_changes_nothing() -> None:
    assert not applied(BASE, {"action": "set-default-sort-order", "sort-order-id": 0}).has_changes


def test_last_added_order_needs_one_that_was_added() -> None:
    assert refusal(BASE, SET_LAST) == "Cannot set last added sort order: no sort order has been added"


def test_there_is_no_order_id_after_the_last() -> None:
    base = table(sort_orders=[order_json(order_id=0), order_json(sort_json(1), order_id=2**31 - 1)])

    assert refusal(base, add(sort_json(2))).startswith("Cannot number another sort order")
