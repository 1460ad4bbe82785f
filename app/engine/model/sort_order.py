"""Sort orders: how rows are ordered inside files, and the rules that bind an order to a schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import model_validator

from app.engine.model.document import Document, Int
from app.engine.model.ids import FieldId, SortOrderId
from app.engine.model.partition_spec import check_source, take_single_source
from app.engine.model.schema import Schema
from app.engine.model.transforms import parse_transform
from app.errors import InvalidUpdate

UNSORTED_ORDER_ID = 0


class SortField(Document):
    """One column of a sort order.

    Spec: #sorting
    """

    transform: str
    source_id: Annotated[FieldId, Int]
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]

    @model_validator(mode="before")
    @classmethod
    def _single_source(cls, value: Any) -> Any:
        return take_single_source(value)


class SortOrder(Document):
    """An ordered list of sort fields, named by its id; id 0 is unsorted."""

    order_id: Annotated[SortOrderId, Int]
    fields: tuple[SortField, ...]

    @property
    def is_unsorted(self) -> bool:
        return not self.fields

    def same_fields(self, other: Self) -> bool:
        """Tell whether two orders sort alike; their ids do not count."""
        return self.fields == other.fields


UNSORTED = SortOrder(order_id=SortOrderId(UNSORTED_ORDER_ID), fields=())


def check_order(order: SortOrder, schema: Schema) -> None:
    """Check that every sort field has a source column that its transform applies to.

    Raises:
        InvalidUpdate: names the source and what is wrong with it.
    """
    for field in order.fields:
        try:
            transform = parse_transform(field.transform)
        except ValueError as error:
            raise InvalidUpdate(str(error)) from error
        check_source(schema, field.source_id, transform, f"sort field with source-id {field.source_id}")
