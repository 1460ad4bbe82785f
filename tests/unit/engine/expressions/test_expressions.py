from __future__ import annotations

import pytest

from app.engine.expressions.expressions import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    BoundPredicate,
    BoundReference,
    BoundTransform,
    Expression,
    Not,
    Operation,
    Or,
    Predicate,
    conjunction,
    disjunction,
    negation,
    replace_predicates,
    rewrite_not,
)
from app.engine.model.data_types.transforms import Transform
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.ids import FieldId
from tests.builders.filters import predicate

A = predicate(Operation.EQ, "a", 1)
B = predicate(Operation.LT, "b", 2)
C = predicate(Operation.IS_NULL, "c")


def test_the_opposite_of_the_opposite_is_the_operation() -> None:
    for operation in Operation:
        assert operation.negated is not operation
        assert operation.negated.negated is operation
        assert operation.negated.is_unary is operation.is_unary
        assert operation.negated.is_set is operation.is_set


def test_chains_are_kept_flat() -> None:
    assert conjunction([conjunction([A, B]), C]) == And((A, B, C))
    assert disjunction([A, disjunction([B, C])]) == Or((A, B, C))


def test_constants_are_left_out_of_chains() -> None:
    true: Expression = ALWAYS_TRUE
    false: Expression = ALWAYS_FALSE
    none: list[Expression] = []

    assert conjunction([true, A]) == A
    assert conjunction([A, false, B]) == ALWAYS_FALSE
    assert conjunction(none) == ALWAYS_TRUE
    assert disjunction([false, A]) == A
    assert disjunction([A, true, B]) == ALWAYS_TRUE
    assert disjunction(none) == ALWAYS_FALSE


def test_negation_is_simplified() -> None:
    assert negation(ALWAYS_TRUE) == ALWAYS_FALSE
    assert negation(ALWAYS_FALSE) == ALWAYS_TRUE
    assert negation(negation(A)) == A
    assert negation(A) == Not(A)


def test_not_is_pushed_down_to_the_predicates() -> None:
    opposite_of_a = predicate(Operation.NOT_EQ, "a", 1)
    opposite_of_b = predicate(Operation.GT_EQ, "b", 2)

    assert rewrite_not(Not(And((A, B)))) == Or((opposite_of_a, opposite_of_b))
    assert rewrite_not(Not(Or((A, Not(B))))) == And((opposite_of_a, B))
    assert rewrite_not(Not(ALWAYS_TRUE)) == ALWAYS_FALSE
    assert rewrite_not(And((A, ALWAYS_TRUE))) == A


def test_not_is_pushed_down_to_bound_predicates() -> None:
    column = BoundReference(FieldId(1), "a", parse_primitive("int"), (0,))
    bound = BoundPredicate(Operation.IN, column, (1, 2))

    assert rewrite_not(bound) == bound
    assert rewrite_not(Not(bound)) == BoundPredicate(Operation.NOT_IN, column, (1, 2))


def test_replaced_predicates_simplify_what_is_around_them() -> None:
    def without_b(found: Predicate) -> Expression:
        return ALWAYS_FALSE if found == B else found

    everything: Expression = ALWAYS_TRUE
    assert replace_predicates(And((A, B)), without_b) == ALWAYS_FALSE
    assert replace_predicates(Or((A, Not(B))), without_b) == ALWAYS_TRUE
    assert replace_predicates(everything, without_b) == ALWAYS_TRUE


@pytest.mark.parametrize(("transform", "kind"), [("year", "int"), ("day", "date")])
def test_a_predicate_knows_its_column_through_a_transform(transform: str, kind: str) -> None:
    column = BoundReference(FieldId(1), "a", parse_primitive("timestamp"), (0,))
    term = BoundTransform(Transform(transform), column)

    assert BoundPredicate(Operation.EQ, term, (1,)).reference == column
    assert term.type == parse_primitive(kind)
