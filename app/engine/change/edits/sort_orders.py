"""Edits of a draft's sort orders."""

from __future__ import annotations

from app.engine.change.draft import MetadataDraft
from app.engine.change.numbering import named_id, next_id
from app.engine.change.updates import AddSortOrder, SetDefaultSortOrder
from app.engine.model.ids import SortOrderId
from app.engine.model.sort_order import FIRST_ORDER_ID, UNSORTED_ORDER_ID, bind_order


def add_sort_order(draft: MetadataDraft, update: AddSortOrder) -> None:
    """Add a sort order, or find the equal one; the unsorted order always has id 0."""
    order = bind_order(update.sort_order, draft.current_schema)
    equal = next((item for item in draft.sort_orders if item.same_fields(order)), None)
    if equal is None:
        taken = (item.order_id for item in draft.sort_orders)
        order_id = UNSORTED_ORDER_ID if order.is_unsorted else next_id(taken, FIRST_ORDER_ID, "sort order")
        equal = order.replace(order_id=SortOrderId(order_id))
        draft.sort_orders.append(equal)
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
