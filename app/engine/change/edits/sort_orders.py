"""Edits of a draft's sort orders."""

from __future__ import annotations

from app.engine.change.draft import MetadataDraft
from app.engine.change.numbering import named_id
from app.engine.change.updates import AddSortOrder, SetDefaultSortOrder
from app.engine.model.ids import SortOrderId
from app.engine.model.sort_order import UNSORTED_ORDER_ID, bind_order


def add_sort_order(draft: MetadataDraft, update: AddSortOrder) -> None:
    """Add a sort order, or find the equal one; the unsorted order always has id 0."""
    order = bind_order(update.sort_order, draft.current_schema)
    equal = draft.sort_orders.find_equal(order)
    if equal is None:
        order_id = UNSORTED_ORDER_ID if order.is_unsorted else draft.sort_orders.next_id()
        equal = draft.sort_orders.add(order.replace(order_id=SortOrderId(order_id)))
        draft.has_changes = True
    draft.last_added_order_id = equal.order_id


def set_default_sort_order(draft: MetadataDraft, update: SetDefaultSortOrder) -> None:
    """Make a sort order the default."""
    order_id = named_id(
        update.sort_order_id,
        draft.last_added_order_id,
        "Cannot set last added sort order: no sort order has been added",
    )
    draft.has_changes |= order_id != draft.default_sort_order_id
    draft.default_sort_order_id = order_id
