from __future__ import annotations

import math
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from app.engine.expressions.comparisons import value_judge, value_test
from app.engine.expressions.expressions import BoundPredicate, Operation
from tests.builders.filtered_files import asked, bound_of
from tests.unit.engine.effort import comparisons_of


def predicate_of(kind: str, operation: str, *values: Any, through: str | None = None) -> BoundPredicate:
    found = bound_of(kind, asked(operation, *values, through=through))
    assert isinstance(found, BoundPredicate)
    return found


@pytest.mark.parametrize(
    ("operation", "literals", "matching", "others"),
    [
        ("lt", [5], [4], [5, 6, None]),
        ("lt-eq", [5], [4, 5], [6, None]),
        ("gt", [5], [6], [4, 5, None]),
        ("gt-eq", [5], [5, 6], [4, None]),
        ("eq", [5], [5], [4, None]),
        ("not-eq", [5], [4, None], [5]),
        ("in", [5, 7], [5, 7], [6, None]),
        ("not-in", [5, 7], [6, None], [5, 7]),
        ("is-null", [], [None], [5]),
        ("not-null", [], [5], [None]),
    ],
)
def test_number_matches(operation: str, literals: list[int], matching: list[Any], others: list[Any]) -> None:
    predicate = predicate_of("int", operation, *literals)
    for of in (value_test(predicate), value_judge(predicate)):
        assert [of(value) for value in matching] == [True] * len(matching)
        assert [of(value) for value in others] == [False] * len(others)


@pytest.mark.parametrize(
    ("operation", "matching", "others"),
    [
        ("starts-with", ["ab", "abc"], ["a", "b", "", None]),
        ("not-starts-with", ["a", "", None], ["ab", "abc"]),
    ],
)
def test_text_matches_a_prefix(operation: str, matching: list[Any], others: list[Any]) -> None:
    test = value_test(predicate_of("string", operation, "ab"))

    assert all(test(value) for value in matching)
    assert not any(test(value) for value in others)


@pytest.mark.parametrize("operation", ["eq", "in", "not-eq", "lt", "gt-eq"])
def test_bytes_of_a_uuid_match_as_the_uuid_does(operation: str) -> None:
    values = [UUID(int=number) for number in (1, 7, 2**127)]
    test = value_test(predicate_of("uuid", operation, str(UUID(int=7))))

    assert [test(value.bytes) for value in values] == [test(value) for value in values]
    assert any(map(test, values))
    assert not all(map(test, values))


@pytest.mark.parametrize(
    ("operation", "of_nan", "of_null"), [("is-nan", True, False), ("not-nan", False, True)]
)
def test_nan_and_null_are_not_the_same(operation: str, of_nan: bool, of_null: bool) -> None:
    test = value_test(predicate_of("double", operation))

    assert test(math.nan) is of_nan
    assert test(None) is of_null
    assert test(1.5) is not of_nan


@pytest.mark.parametrize(
    ("operation", "literals", "verdicts"),
    [
        # of -0.0, 0.0, 1.5, NaN and null
        ("lt", [0.0], [None, False, False, False, False]),
        ("lt-eq", [-0.0], [True, None, False, False, False]),
        ("gt", [0.0], [False, False, True, None, False]),
        ("gt-eq", [0.0], [None, True, True, None, False]),
        ("gt", [5.0], [False, False, False, None, False]),
        ("eq", [0.0], [None, True, False, False, False]),
        ("not-eq", [0.0], [None, False, True, True, True]),
        ("in", [0.0, 1.5], [None, True, True, False, False]),
        ("not-in", [0.0, 1.5], [None, False, False, True, True]),
        ("is-nan", [], [False, False, False, True, False]),
    ],
)
def test_verdict_is_open_where_engines_disagree(
    operation: str, literals: list[float], verdicts: list[Any]
) -> None:
    judge = value_judge(predicate_of("double", operation, *literals))

    assert [judge(value) for value in (-0.0, 0.0, 1.5, math.nan, None)] == verdicts


def test_value_is_transformed_first() -> None:
    predicate = predicate_of("int", "eq", 10, through="truncate[10]")
    for of in (value_test(predicate), value_judge(predicate)):
        assert [of(value) for value in (9, 10, 19, 20, None)] == [False, True, True, False, False]
    assert value_test(predicate_of("int", "is-null", through="bucket[4]"))(None)
    assert not value_test(predicate_of("int", "is-null", through="bucket[4]"))(5)


@pytest.mark.parametrize("kind", ["long", "double", "decimal(9, 0)", "string", "uuid"])
def test_one_of_very_many_is_found_as_one_of_few(kind: str) -> None:
    def literal(number: int) -> Any:
        return (
            f"{UUID(int=number)}"
            if kind == "uuid"
            else str(number)
            if kind in ("string", "decimal(9, 0)")
            else number
        )

    few = predicate_of(kind, "in", literal(4), literal(7))
    many = predicate_of(kind, "in", *map(literal, range(0, 6_000, 2)))
    (four, seven), beyond = few.values, predicate_of(kind, "eq", literal(6_000)).values[0]

    for operation, test in (
        ("in", value_test(many)),
        ("not-in", value_test(replace(many, operation=Operation.NOT_IN))),
    ):
        assert [test(value) for value in (four, seven, beyond, None)] == [
            found is (operation == "in") for found in (True, False, False, False)
        ]


@pytest.mark.parametrize("operation", [Operation.IN, Operation.NOT_IN])
def test_numbers_that_were_chosen_to_do_harm_are_compared_with_few_others(operation: Operation) -> None:
    predicate = predicate_of("long", "in", 1, 2)

    def ask(numbers: tuple[int, ...]) -> list[bool]:
        test = value_test(replace(predicate, operation=operation, values=numbers))
        return [test(number) for number in numbers[:10]]

    assert comparisons_of(range(3_000), ask) < 10 * 3_000
