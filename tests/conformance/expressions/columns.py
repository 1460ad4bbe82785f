"""Tables, rows and filters in the form that the reference reads, and what it cannot read left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from app.engine.expressions.binding import bind
from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.expressions.expressions import (
    BoundExpression,
    BoundPredicate,
    BoundTransform,
    Expression,
    predicates_of,
)
from app.engine.model.data_types.json_values import to_json_value
from app.engine.model.data_types.types import NestedField, PrimitiveType, StructType, Type
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from tests.conformance.expressions.reference import Json, Reference, ReferenceTable
from tests.strategies.data_files import Row, partition_kinds
from tests.strategies.filters import KINDS, filtered_schemas, filtered_specs, filters, predicates, rows

# With a schema its parser reads binary literals, but takes those of nanosecond columns for microseconds.
WITHOUT_BINARY = tuple(kind for kind in KINDS if kind not in ("binary", "fixed[3]"))
WITHOUT_NANOSECONDS = tuple(kind for kind in KINDS if not kind.endswith("_ns"))
ORDINARY = tuple(kind for kind in WITHOUT_NANOSECONDS if kind not in ("float", "double", "uuid"))
"""Types about whose order there is one opinion."""


class Question(NamedTuple):
    """A filter on a table of a few rows, in both forms."""

    schema: Schema
    spec: PartitionSpec
    document: Json
    expression: Expression
    bound: BoundExpression
    rows: list[Row]
    schema_document: Json
    spec_document: Json

    def table(self, reference: Reference) -> ReferenceTable:
        return reference.table(self.schema_document, self.spec_document)

    def __repr__(self) -> str:
        return f"{self.document} on {self.schema_document} by {self.spec_document} with {self.rows}"

    @property
    def predicate(self) -> BoundPredicate | None:
        """The only predicate there is, if binding has left one."""
        return self.bound if isinstance(self.bound, BoundPredicate) else None

    def partition_schema(self) -> Schema:
        """Return a schema whose columns are the fields of a partition tuple."""
        kinds = partition_kinds(self.spec, self.schema)
        fields = [
            {"id": field.field_id, "name": field.name, "required": False, "type": kind.text}
            for field, kind in zip(self.spec.fields, kinds, strict=True)
        ]
        return Schema.from_object({"type": "struct", "schema-id": 0, "fields": fields})


@st.composite
def questions(
    draw: st.DrawFn, *, depth: int = 0, kinds: Sequence[Sequence[str]] = (WITHOUT_BINARY, WITHOUT_NANOSECONDS)
) -> Question:
    """Return a filter on a table, with values that the reference can take in."""
    schema_document = draw(filtered_schemas(draw(st.sampled_from(kinds))))
    spec_document = draw(filtered_specs(schema_document))
    asked = (
        filters(schema_document, depth=depth, extremes=False)
        if depth
        else predicates(schema_document, extremes=False)
    )
    document = without_identity(draw(asked))
    schema = Schema.from_object(schema_document)
    expression = parse_expression(document)
    some = rows(schema, extremes=False).filter(lambda row: not _has_float_nan(row, schema.fields))
    return Question(
        schema,
        PartitionSpec.from_object(spec_document),
        document,
        expression,
        bind(expression, schema),
        draw(st.lists(some, min_size=1, max_size=3)),
        schema_document,
        spec_document,
    )


def without_identity(document: Json) -> Json:
    """Leave out identity transforms, which the reference keeps as functions that it then knows nothing of."""
    if not isinstance(document, dict):
        return document
    if document.get("type") == "transform" and document["transform"] == "identity":
        return document["term"]
    return {name: without_identity(value) for name, value in document.items()}


def _has_float_nan(row: Any, fields: Sequence[NestedField]) -> bool:
    """Return whether a float of 32 bits is NaN: there is no way to pass one on."""
    for field, value in zip(fields, row, strict=True):
        if isinstance(field.type, StructType):
            if value is not None and _has_float_nan(value, field.type.fields):
                return True
        elif str(field.type) == "float" and value is not None and value != value:  # noqa: PLR0124 - only NaN
            return True
    return False


def row_json(row: Any, fields: Sequence[NestedField]) -> Json:
    """Return a row as a struct in single-value JSON, without its nulls."""
    return {
        str(field.id): _value_json(value, field.type)
        for field, value in zip(fields, row, strict=True)
        if value is not None
    }


def _value_json(value: Any, kind: Type) -> Json:
    if isinstance(kind, StructType):
        return row_json(value, kind.fields)
    assert isinstance(kind, PrimitiveType)
    return to_json_value(kind, value)


def rewritten(document: Json, schema: Schema) -> Json:
    """Return an expression as we bind and write it, so that two that say the same look the same."""
    return to_json(bind(parse_expression(document), schema))


def asks_transformed(question: Question) -> bool:
    """Tell whether a filter asks about a transformed column."""
    return any(isinstance(predicate.term, BoundTransform) for predicate in predicates_of(question.bound))
