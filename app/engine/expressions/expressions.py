"""Expressions: the filter of a scan or conflict check, before and after it is bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, Generic, TypeAlias, TypeVar, assert_never
from uuid import UUID

from app.engine.model.data_types.transforms import Transform
from app.engine.model.data_types.types import PrimitiveType, Type
from app.engine.model.ids import FieldId

Value: TypeAlias = bool | int | float | str | bytes | Decimal | UUID
"""What a literal can be. Dates and times are strings, as in JSON, or numbers."""


class Operation(StrEnum):
    """What a predicate asks of a value."""

    IS_NULL = "is-null"
    NOT_NULL = "not-null"
    IS_NAN = "is-nan"
    NOT_NAN = "not-nan"
    LT = "lt"
    LT_EQ = "lt-eq"
    GT = "gt"
    GT_EQ = "gt-eq"
    EQ = "eq"
    NOT_EQ = "not-eq"
    STARTS_WITH = "starts-with"
    NOT_STARTS_WITH = "not-starts-with"
    IN = "in"
    NOT_IN = "not-in"

    @property
    def negated(self) -> Operation:
        return _NEGATED[self]

    @property
    def is_unary(self) -> bool:
        return self in _UNARY

    @property
    def is_set(self) -> bool:
        return self in (Operation.IN, Operation.NOT_IN)


_UNARY: Final = frozenset({Operation.IS_NULL, Operation.NOT_NULL, Operation.IS_NAN, Operation.NOT_NAN})
_OPPOSITES: Final = (
    (Operation.IS_NULL, Operation.NOT_NULL),
    (Operation.IS_NAN, Operation.NOT_NAN),
    (Operation.LT, Operation.GT_EQ),
    (Operation.GT, Operation.LT_EQ),
    (Operation.EQ, Operation.NOT_EQ),
    (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH),
    (Operation.IN, Operation.NOT_IN),
)
_NEGATED: Final = dict(_OPPOSITES) | {right: left for left, right in _OPPOSITES}


@dataclass(frozen=True, slots=True)
class NamedReference:
    """A column by its name; nested ones have dots."""

    name: str


@dataclass(frozen=True, slots=True)
class IdReference:
    """A column by its field id."""

    field_id: FieldId


Reference: TypeAlias = NamedReference | IdReference


@dataclass(frozen=True, slots=True)
class TransformTerm:
    """A transform of a column's value."""

    transform: Transform
    reference: Reference


Term: TypeAlias = NamedReference | IdReference | TransformTerm


@dataclass(frozen=True, slots=True)
class Literal:
    """A value to compare with; it has the column's type, unless it has its own."""

    value: Value
    data_type: PrimitiveType | None = None


@dataclass(frozen=True, slots=True)
class Predicate:
    """An operation on a column, with no literal, one, or for `in` and `not-in` any number."""

    operation: Operation
    term: Term
    literals: tuple[Literal, ...] = ()

    @property
    def negated(self) -> Predicate:
        return Predicate(self.operation.negated, self.term, self.literals)


@dataclass(frozen=True, slots=True)
class BoundReference:
    """A column of a schema or partition tuple; `positions` lead to its value in nested tuples."""

    field_id: FieldId
    name: str
    type: Type
    positions: tuple[int, ...]
    is_nullable: bool = True


@dataclass(frozen=True, slots=True)
class BoundTransform:
    """A transform of a bound column's value."""

    transform: Transform
    reference: BoundReference

    @property
    def type(self) -> Type:
        return self.transform.result_type(self.reference.type)


BoundTerm: TypeAlias = BoundReference | BoundTransform


@dataclass(frozen=True, slots=True)
class BoundPredicate:
    """An operation on a bound column; values are of the term's type, and sorted in a set."""

    operation: Operation
    term: BoundTerm
    values: tuple[Any, ...] = ()

    @property
    def negated(self) -> BoundPredicate:
        return BoundPredicate(self.operation.negated, self.term, self.values)

    @property
    def reference(self) -> BoundReference:
        return self.term if isinstance(self.term, BoundReference) else self.term.reference


@dataclass(frozen=True, slots=True)
class AlwaysTrue:
    """Every row matches."""


@dataclass(frozen=True, slots=True)
class AlwaysFalse:
    """No row matches."""


P = TypeVar("P", Predicate, BoundPredicate)
Q = TypeVar("Q", Predicate, BoundPredicate)


@dataclass(frozen=True, slots=True)
class And(Generic[P]):
    """Every part holds. Chains are flat: no part is itself an `And`."""

    parts: tuple[Tree[P], ...]


@dataclass(frozen=True, slots=True)
class Or(Generic[P]):
    """At least one part holds."""

    parts: tuple[Tree[P], ...]


@dataclass(frozen=True, slots=True)
class Not(Generic[P]):
    """The part does not hold. `rewrite_not` says what this means for null."""

    part: Tree[P]


Tree: TypeAlias = "AlwaysTrue | AlwaysFalse | And[P] | Or[P] | Not[P] | P"
Expression: TypeAlias = "Tree[Predicate]"
"""A filter with columns by name."""
BoundExpression: TypeAlias = "Tree[BoundPredicate]"
"""A filter on the columns of one schema, or on one spec's partition tuples."""

ALWAYS_TRUE: Final = AlwaysTrue()
ALWAYS_FALSE: Final = AlwaysFalse()


def conjunction(parts: Iterable[Tree[P]]) -> Tree[P]:
    """Return the simplest expression that holds when every part does."""
    return _joined(parts, And, neutral=ALWAYS_TRUE, decisive=ALWAYS_FALSE)


def disjunction(parts: Iterable[Tree[P]]) -> Tree[P]:
    """Return the simplest expression that holds when at least one part does."""
    return _joined(parts, Or, neutral=ALWAYS_FALSE, decisive=ALWAYS_TRUE)


def _joined(
    parts: Iterable[Tree[P]], chain: type[And[P] | Or[P]], *, neutral: Tree[P], decisive: Tree[P]
) -> Tree[P]:
    kept: list[Tree[P]] = []
    for part in parts:
        if isinstance(part, type(decisive)):
            return decisive
        if isinstance(part, chain):
            kept.extend(part.parts)
        elif not isinstance(part, type(neutral)):
            kept.append(part)
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else chain(tuple(kept))


def negation(part: Tree[P]) -> Tree[P]:
    """Return the simplest expression that holds when the part does not."""
    match part:
        case AlwaysTrue():
            return ALWAYS_FALSE
        case AlwaysFalse():
            return ALWAYS_TRUE
        case Not():
            return part.part
        case _:
            return Not(part)


def rewrite_not(expression: Tree[P]) -> Tree[P]:
    """Return the expression without `Not`, with the opposites of negated predicates.

    This defines negation: `not a < 5` is `a >= 5`, so neither holds for null. But null is not equal to anything.
    """
    return _without_not(expression, is_negated=False)


def _without_not(expression: Tree[P], *, is_negated: bool) -> Tree[P]:
    match expression:
        case AlwaysTrue() | AlwaysFalse():
            return negation(expression) if is_negated else expression
        case Not():
            return _without_not(expression.part, is_negated=not is_negated)
        case And() | Or():
            parts = (_without_not(part, is_negated=is_negated) for part in expression.parts)
            return conjunction(parts) if isinstance(expression, And) is not is_negated else disjunction(parts)
        case Predicate() | BoundPredicate():
            return expression.negated if is_negated else expression
        case never:
            assert_never(never)


def replace_predicates(expression: Tree[P], replaced: Callable[[P], Tree[Q]]) -> Tree[Q]:
    """Return the expression with each predicate replaced, and simplified if possible."""
    match expression:
        case AlwaysTrue() | AlwaysFalse():
            return expression
        case And():
            return conjunction(replace_predicates(part, replaced) for part in expression.parts)
        case Or():
            return disjunction(replace_predicates(part, replaced) for part in expression.parts)
        case Not():
            return negation(replace_predicates(expression.part, replaced))
        case _:
            return replaced(expression)


def predicates_of(expression: Tree[P]) -> Iterator[P]:
    """Yield every predicate of a filter, from left to right."""
    match expression:
        case AlwaysTrue() | AlwaysFalse():
            return
        case And() | Or():
            for part in expression.parts:
                yield from predicates_of(part)
        case Not():
            yield from predicates_of(expression.part)
        case _:
            yield expression
