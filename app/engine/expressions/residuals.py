"""Residuals: what is left of a filter for the rows of one partition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from app.engine.expressions import expressions as e
from app.engine.expressions.binding import bind_predicate
from app.engine.expressions.evaluation import partition_test
from app.engine.expressions.expression_json import value_json
from app.engine.expressions.projection import (
    PartitionSource,
    inclusively_projected,
    partition_sources,
    strictly_projected,
)
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import LARGEST
from app.engine.model.ids import FieldId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema

_BESIDE_INFINITY: Final = {e.Operation.LT_EQ: e.Operation.LT, e.Operation.GT: e.Operation.GT_EQ}
"""What the only comparisons with minus infinity are with the lowest number."""
ResidualFunction = Callable[[Sequence[Any]], e.Expression]
_Sources = dict[FieldId, tuple[PartitionSource, ...]]


def residual_function(
    expression: e.Expression, spec: PartitionSpec, schema: Schema, *, case_sensitive: bool = True
) -> ResidualFunction:
    """Return the function from a partition tuple to the filter that is left for its rows.

    Predicates stay as the client wrote them.

    Raises:
        InvalidFilter: the filter does not fit the schema.
    """
    sources = partition_sources(spec)

    def compiled(part: e.Expression) -> ResidualFunction:
        match part:
            case e.And():
                ands = [compiled(inner) for inner in part.parts]
                return lambda partition: e.conjunction(left(partition) for left in ands)
            case e.Or():
                ors = [compiled(inner) for inner in part.parts]
                return lambda partition: e.disjunction(left(partition) for left in ors)
            case e.Predicate():
                bound = bind_predicate(part, schema, case_sensitive=case_sensitive)
                if isinstance(bound, e.BoundPredicate):
                    return _predicate_function(part, bound, sources)
                return _constant(e.ALWAYS_TRUE if bound == e.ALWAYS_TRUE else e.ALWAYS_FALSE)
            case e.AlwaysTrue() | e.AlwaysFalse():
                return _constant(part)
            case _:
                raise AssertionError("rewrite_not comes first")

    return compiled(e.rewrite_not(expression))


def _constant(expression: e.Expression) -> ResidualFunction:
    return lambda _: expression


def _predicate_function(
    predicate: e.Predicate, bound: e.BoundPredicate, sources: _Sources
) -> ResidualFunction:
    left = _plain(predicate, bound)
    fields = sources.get(bound.reference.field_id)
    if not fields:
        return _constant(left)
    all_match = partition_test(strictly_projected(bound, fields), strict=True)
    may_match = partition_test(inclusively_projected(bound, fields))

    def of(partition: Sequence[Any]) -> e.Expression:
        if all_match(partition):
            return e.ALWAYS_TRUE
        return left if may_match(partition) else e.ALWAYS_FALSE

    return of


def _plain(predicate: e.Predicate, bound: e.BoundPredicate) -> e.Predicate:
    """Return a predicate that every client reads: literals have no type of their own."""
    operation, term, literals = predicate.operation, predicate.term, predicate.literals
    if any(literal.data_type is not None for literal in literals):
        # Less than noon is, of days, no later than that day.
        operation, values, kind = bound.operation, bound.values, bound.term.type
        assert isinstance(kind, PrimitiveType)  # nothing else can be compared
        if values == (-math.inf,):
            # A number below all of the type. Clients could not read infinity back.
            operation, values = _BESIDE_INFINITY[operation], (-LARGEST[kind.kind],)
        literals = tuple(e.Literal(value_json(kind, value)) for value in values)
    match term:
        case e.IdReference():
            term = e.NamedReference(bound.reference.name)
        case e.TransformTerm(transform, e.IdReference()):
            term = e.TransformTerm(transform, e.NamedReference(bound.reference.name))
        case _:
            pass
    return e.Predicate(operation, term, literals)
