"""Sort orders: how rows are ordered in files, and how an order is bound to a schema."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Annotated, Literal, Self

from app.engine.model.data_types.transforms import find_transform
from app.engine.model.data_types.types import is_primitive
from app.engine.model.document import FIRST_ERROR, INT, Document
from app.engine.model.ids import FieldId, SortOrderId
from app.engine.model.partition_spec import SourcedField, parse_sent_transform
from app.engine.model.schema import Schema
from app.errors import InvalidUpdate

UNSORTED_ORDER_ID = 0
FIRST_ORDER_ID = 1


class SortField(SourcedField):
    """One column of a sort order.

    Spec: #sorting
    """

    transform: str
    source_id: Annotated[FieldId, INT]
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]


class SortOrder(Document):
    """An ordered list of sort fields, named by its id; id 0 is unsorted."""

    order_id: Annotated[SortOrderId, INT]
    fields: Annotated[tuple[SortField, ...], FIRST_ERROR]

    @property
    def is_unsorted(self) -> bool:
        return not self.fields

    def same_fields(self, other: Self) -> bool:
        """Return whether two orders sort in the same way; their ids do not count."""
        return self.meaning == other.meaning

    @cached_property
    def meaning(self) -> str:
        """What equal orders have in common: all but their id."""
        # As text: hashes of fields leave out what other writers added to them, and clients can choose those of numbers.
        return json.dumps([field.model_dump() for field in self.fields], sort_keys=True)


UNSORTED = SortOrder(order_id=SortOrderId(UNSORTED_ORDER_ID), fields=())


def bind_order(order: SortOrder, schema: Schema) -> SortOrder:
    """Return the order that a request sends, checked against the schema.

    Raises:
        InvalidUpdate: a transform is unknown, or a source column is missing or has the wrong type.
    """
    fields = tuple(
        field.replace(transform=str(parse_sent_transform(field.transform))) for field in order.fields
    )
    bound = order.replace(fields=fields)
    check_order(bound, schema)
    return bound


def check_order(order: SortOrder, schema: Schema) -> None:
    """Check that each sort field, also a void one, has a primitive source column that fits.

    Raises:
        InvalidUpdate: names the source and what is wrong with it.
    """
    for field in order.fields:
        what = f"sort field with source-id {field.source_id}"
        column = schema.columns.get(field.source_id)
        if column is None:
            raise InvalidUpdate(f"Cannot find source column for {what}")
        source = column.field.type
        if not is_primitive(source):
            raise InvalidUpdate(f"Cannot use {column.name} as source of {what}: it is not a primitive type")
        transform = find_transform(field.transform)
        if transform is not None and not transform.applies_to(source):
            raise InvalidUpdate(f"Invalid source type {source} for transform {transform} of {what}")
