"""Residuals: what is left of a filter to be asked of the rows of one partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app.engine.expressions.binding import bind_predicate
from app.engine.expressions.evaluation import partition_test
from app.engine.expressions.expressions import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundPredicate,
    Expression,
    IdReference,
    Literal,
    NamedReference,
    Or,
    Predicate,
    TransformTerm,
    conjunction,
    disjunction,
    rewrite_not,
)
from app.engine.expressions.projection import (
    PartitionSource,
    inclusively_projected,
    partition_sources,
    strictly_projected,
)
from app.engine.model.ids import FieldId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.types import PrimitiveType
from app.engine.model.values import to_json_value

ResidualFunction = Callable[[Sequence[Any]], Expression]
_Sources = dict[FieldId, tuple[PartitionSource, ...]]


def residual_function(
    expression: Expression, spec: PartitionSpec, schema: Schema, *, case_sensitive: bool = True
) -> ResidualFunction:
    """Return the function from a spec's partition tuples to what their rows must still be asked.

    A row of a partition matches the residual exactly if it matches the filter. Predicates keep the words they came
    in, so that a client reads them as it wrote them.

    Raises:
        InvalidFilter: the filter does not fit the schema.
    """
    sources = partition_sources(spec)

    def compiled(part: Expression) -> ResidualFunction:
        match part:
            case And():
                ands = [compiled(inner) for inner in part.parts]
                return lambda partition: conjunction(left(partition) for left in ands)
            case Or():
                ors = [compiled(inner) for inner in part.parts]
                return lambda partition: disjunction(left(partition) for left in ors)
            case Predicate():
                bound = bind_predicate(part, schema, case_sensitive=case_sensitive)
                if isinstance(bound, BoundPredicate):
                    return _predicate_function(part, bound, sources)
                return _constant(ALWAYS_TRUE if bound == ALWAYS_TRUE else ALWAYS_FALSE)
            case AlwaysTrue() | AlwaysFalse():
                return _constant(part)
            case _:
                raise AssertionError("rewrite_not comes first")

    return compiled(rewrite_not(expression))


def _constant(expression: Expression) -> ResidualFunction:
    return lambda _: expression


def _predicate_function(predicate: Predicate, bound: BoundPredicate, sources: _Sources) -> ResidualFunction:
    left = _plain(predicate, bound)
    fields = sources.get(bound.reference.field_id)
    if not fields:
        return _constant(left)
    all_match = partition_test(strictly_projected(bound, fields), strict=True)
    may_match = partition_test(inclusively_projected(bound, fields))

    def of(partition: Sequence[Any]) -> Expression:
        if all_match(partition):
            return ALWAYS_TRUE
        return left if may_match(partition) else ALWAYS_FALSE

    return of


def _plain(predicate: Predicate, bound: BoundPredicate) -> Predicate:
    """Return a predicate as every client reads it: columns by name, literals without types of their own."""
    term, literals = predicate.term, predicate.literals
    if any(literal.data_type is not None for literal in literals):
        kind = bound.term.type
        assert isinstance(kind, PrimitiveType)  # nothing else can be compared
        literals = tuple(Literal(to_json_value(kind, value)) for value in bound.values)
    match term:
        case IdReference():
            term = NamedReference(bound.reference.name)
        case TransformTerm(transform, IdReference()):
            term = TransformTerm(transform, NamedReference(bound.reference.name))
        case _:
            pass
    return Predicate(predicate.operation, term, literals)
