"""Filters made in Python, and asked of one row or one partition: what only tests do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app.engine.expressions.binding import bind
from app.engine.expressions.comparisons import value_test
from app.engine.expressions.evaluation import compiled
from app.engine.expressions.expressions import (
    BoundExpression,
    BoundPredicate,
    Expression,
    Literal,
    NamedReference,
    Operation,
    Predicate,
    Value,
    rewrite_not,
)
from app.engine.expressions.projection import project_bound
from app.engine.expressions.transform_values import transform_function
from app.engine.model.data_types.transforms import Transform
from app.engine.model.data_types.types import Type
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema


def predicate(operation: Operation, column: str, *values: Value) -> Predicate:
    """Return a predicate on a column."""
    return Predicate(operation, NamedReference(column), tuple(Literal(value) for value in values))


def row_test(expression: BoundExpression) -> Callable[[Sequence[Any]], bool]:
    """Return whether a row matches; rows and structs in them are sequences of values in the fields' order."""
    return compiled(rewrite_not(expression), _row_predicate)


def _row_predicate(predicate: BoundPredicate) -> Callable[[Any], bool]:
    test, positions = value_test(predicate), predicate.reference.positions

    def match(row: Any) -> bool:
        value = row
        for position in positions:
            if value is None:
                break
            value = value[position]
        return test(value)

    return match


def project(
    expression: Expression,
    schema: Schema,
    spec: PartitionSpec,
    *,
    strict: bool = False,
    case_sensitive: bool = True,
) -> BoundExpression:
    """Return the filter that a spec's partition tuples must match."""
    return project_bound(bind(expression, schema, case_sensitive=case_sensitive), spec, strict=strict)


def transform_value(transform: Transform, source: Type, value: Any) -> Any:
    """Return the transformed value; null stays null."""
    return None if value is None else transform_function(transform, source)(value)
