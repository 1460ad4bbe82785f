"""Binding: a filter's names become columns of a schema, its literals values of their types."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from app.engine.expressions import expressions as e
from app.engine.expressions.comparisons import MATCHED_BY_NULL
from app.engine.expressions.literals import Between, OutOfRange, value_of
from app.engine.model.data_types.types import PrimitiveType, StructType
from app.engine.model.data_types.values import FLOATING_KINDS, UNORDERED_KINDS, order_key
from app.engine.model.schema import Column, Schema
from app.errors import InvalidFilter

_TRUE_ABOVE = frozenset({e.Operation.LT, e.Operation.LT_EQ})
_TRUE_BELOW = frozenset({e.Operation.GT, e.Operation.GT_EQ})
_BESIDE = {e.Operation.LT: e.Operation.LT_EQ, e.Operation.GT_EQ: e.Operation.GT}
"""The operation on the value below that replaces one on a literal between two values."""


def bind(expression: e.Expression, schema: Schema, *, case_sensitive: bool = True) -> e.BoundExpression:
    """Return the filter on a schema's columns, without `Not`, and as simple as possible.

    Raises:
        InvalidFilter: a column is missing or cannot be filtered by, or a literal is not a value of its type.
    """
    return e.replace_predicates(
        e.rewrite_not(expression),
        lambda predicate: bind_predicate(predicate, schema, case_sensitive=case_sensitive),
    )


def bind_predicate(predicate: e.Predicate, schema: Schema, *, case_sensitive: bool) -> e.BoundExpression:
    """Return one predicate on a schema's columns.

    Raises:
        InvalidFilter: a column is missing or cannot be filtered by, or a literal is not a value of its type.
    """
    term = bind_term(predicate.term, schema, case_sensitive=case_sensitive)
    operation = predicate.operation
    if operation.is_unary:
        bound = _bind_unary(operation, term)
    else:
        bound = _bind_comparison(operation, term, predicate.literals)
    if (
        isinstance(bound, e.BoundPredicate)
        and isinstance(term, e.BoundTransform)
        and term.transform.name == "void"
    ):
        # Void makes everything null.
        return e.ALWAYS_TRUE if operation in MATCHED_BY_NULL else e.ALWAYS_FALSE
    return bound


def _bind_comparison(
    operation: e.Operation, term: e.BoundTerm, literals: tuple[e.Literal, ...]
) -> e.BoundExpression:
    if not isinstance(term.type, PrimitiveType) or term.type.kind in UNORDERED_KINDS:
        raise InvalidFilter(
            f"Invalid filter: {_shown(term)} cannot be compared: there are only is-null and not-null for it"
        )
    if operation in (e.Operation.STARTS_WITH, e.Operation.NOT_STARTS_WITH) and term.type.kind != "string":
        raise InvalidFilter(f"Invalid filter: {operation} needs a string, not {_shown(term)}")
    values = [_value(literal, term, term.type) for literal in literals]
    if operation.is_set:
        return _bind_set(operation, term, values)
    (value,) = values
    if isinstance(value, Between):
        if operation in (e.Operation.EQ, e.Operation.NOT_EQ):
            return e.ALWAYS_TRUE if operation is e.Operation.NOT_EQ else e.ALWAYS_FALSE
        operation, value = _BESIDE.get(operation, operation), value.below
    if isinstance(value, OutOfRange):
        return _bind_beyond(operation, term, value)
    return e.BoundPredicate(operation, term, (value,))


def _bind_beyond(operation: e.Operation, term: e.BoundTerm, place: OutOfRange) -> e.BoundExpression:
    """Return what is left of a comparison with a literal above or below all values of its type."""
    if operation is e.Operation.NOT_EQ:
        return e.ALWAYS_TRUE
    if operation in (_TRUE_ABOVE if place is OutOfRange.ABOVE else _TRUE_BELOW):
        return _bind_unary(e.Operation.NOT_NULL, term)
    return e.ALWAYS_FALSE


def _bind_unary(operation: e.Operation, term: e.BoundTerm) -> e.BoundExpression:
    if operation in (e.Operation.IS_NAN, e.Operation.NOT_NAN):
        if not isinstance(term.type, PrimitiveType) or term.type.kind not in FLOATING_KINDS:
            raise InvalidFilter(f"Invalid filter: {operation} needs a float or double, not {_shown(term)}")
    elif not _may_be_null(term):
        return e.ALWAYS_FALSE if operation is e.Operation.IS_NULL else e.ALWAYS_TRUE
    return e.BoundPredicate(operation, term)


def _may_be_null(term: e.BoundTerm) -> bool:
    if isinstance(term, e.BoundReference):
        return term.is_nullable
    return term.transform.name == "void" or term.reference.is_nullable


def _bind_set(operation: e.Operation, term: e.BoundTerm, values: list[Any]) -> e.BoundExpression:
    # No dictionary: one of numbers that were chosen to do harm takes seconds.
    in_order = sorted((each for each in values if not isinstance(each, OutOfRange | Between)), key=order_key)
    ordered = tuple(next(equal) for _, equal in groupby(in_order, order_key))
    if not ordered:
        return e.ALWAYS_FALSE if operation is e.Operation.IN else e.ALWAYS_TRUE
    if len(ordered) == 1:
        operation = e.Operation.EQ if operation is e.Operation.IN else e.Operation.NOT_EQ
    return e.BoundPredicate(operation, term, ordered)


def _value(literal: e.Literal, term: e.BoundTerm, kind: PrimitiveType) -> Any:
    try:
        return value_of(literal, kind)
    except ValueError as error:
        raise InvalidFilter(
            f"Invalid filter: {str(literal.value)[:100]!r} cannot be compared with {_shown(term)}: {error}"
        ) from error


def bind_term(term: e.Term, schema: Schema, *, case_sensitive: bool) -> e.BoundTerm:
    """Return a term on a schema's columns.

    Raises:
        InvalidFilter: the column is missing or inside a list or map, or the transform does not apply to it.
    """
    if not isinstance(term, e.TransformTerm):
        return bind_reference(_column_of(term, schema, case_sensitive=case_sensitive), schema)
    reference = bind_reference(_column_of(term.reference, schema, case_sensitive=case_sensitive), schema)
    if not term.transform.applies_to(reference.type):
        raise InvalidFilter(f"Invalid filter: {term.transform} does not apply to {_shown(reference)}")
    return reference if term.transform.name == "identity" else e.BoundTransform(term.transform, reference)


def _column_of(reference: e.Reference, schema: Schema, *, case_sensitive: bool) -> Column:
    if isinstance(reference, e.IdReference):
        column = schema.columns.get(reference.field_id)
        if column is None:
            raise InvalidFilter(f"Invalid filter: there is no column with the field id {reference.field_id}")
        return column
    field_id = schema.ids_by_name.get(reference.name)
    if field_id is not None and case_sensitive:
        return schema.columns[field_id]
    alike = schema.names_alike.get(reference.name.lower(), {})
    if case_sensitive or not alike:
        hint = f", but there is {next(iter(alike))!r}: names are case-sensitive" if alike else ""
        raise InvalidFilter(f"Invalid filter: there is no column named {reference.name[:100]!r}{hint}")
    if len(set(alike.values())) > 1:
        raise InvalidFilter(
            f"Invalid filter: {reference.name[:100]!r} could be any of {', '.join(sorted(alike))}"
        )
    return schema.columns[next(iter(alike.values()))]


def bind_reference(column: Column, schema: Schema) -> e.BoundReference:
    """Return a column with the positions that lead to its value in a row.

    Raises:
        InvalidFilter: it is inside a list or map, where a row has no single value of it.
    """
    positions: list[int] = []
    is_nullable = False
    place: Column | None = column
    while place is not None:
        is_nullable = is_nullable or not place.field.required
        above = place.parent.field.type if place.parent is not None else schema
        if not isinstance(above, (StructType, Schema)):
            raise InvalidFilter(f"Invalid filter: {column.name} is inside a list or map")
        positions.append(place.position)
        place = place.parent
    return e.BoundReference(
        column.field.id, column.name, column.field.type, tuple(reversed(positions)), is_nullable
    )


def _shown(term: e.BoundTerm) -> str:
    if isinstance(term, e.BoundTransform):
        return f"{term.transform}({term.reference.name}) of type {term.type}"
    kind = term.type if isinstance(term.type, PrimitiveType) else term.type.type
    return f"{term.name} of type {kind}"
