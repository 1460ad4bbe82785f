from __future__ import annotations

import math
import sys
from typing import Any

import pytest

from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.expressions.residuals import residual_function
from app.errors import InvalidFilter
from tests.builders.filtered_files import asked, schema_of, spec_of

SCHEMA = schema_of(id="long", at="timestamp", x="double", name="string")


def left(document: Any, fields: list[tuple[int, str]], partition: tuple[Any, ...]) -> Any:
    return to_json(residual_function(parse_expression(document), spec_of(*fields), SCHEMA)(partition))


@pytest.mark.parametrize(("value", "expected"), [(5, True), (6, False), (None, False)])
def test_identity_leaves_no_question(value: Any, expected: bool) -> None:
    assert left(asked("eq", 5, of="id"), [(1, "identity")], (value,)) is expected


def test_null_partition_has_no_row_below_a_literal() -> None:
    assert left(asked("lt", 5, of="id"), [(1, "identity")], (None,)) is False
    assert left(asked("not-eq", 5, of="id"), [(1, "identity")], (None,)) is True
    assert left(asked("starts-with", "a", of="name"), [(4, "identity")], (None,)) is False


@pytest.mark.parametrize(("day", "expected"), [(0, True), (1, "the question"), (2, False)])
def test_days_around_a_moment(day: int, expected: Any) -> None:
    question = asked("lt", "1970-01-02T12:00:00", of="at")

    found = left(question, [(2, "day")], (day,))

    assert found == (question if expected == "the question" else expected)


def test_question_is_left_where_engines_disagree() -> None:
    question = asked("lt", 0.0, of="x")

    assert left(question, [(3, "identity")], (-0.0,)) == question
    assert left(asked("gt", 5.0, of="x"), [(3, "identity")], (math.nan,)) == asked("gt", 5.0, of="x")
    assert left(question, [(3, "identity")], (-1.0,)) is True


def test_decimal_may_have_more_digits_than_the_column() -> None:
    typed = {"type": "literal", "value": "1000000.00", "data-type": "decimal(20, 2)"}
    question = parse_expression({"type": "lt", "term": "price", "value": typed})

    function = residual_function(question, spec_of(), schema_of(price="decimal(4, 2)"))

    assert to_json(function(())) == asked("lt", "1000000.00", of="price")


@pytest.mark.parametrize(
    ("operation", "left"), [("lt", "lt"), ("lt-eq", "lt"), ("gt", "gt-eq"), ("gt-eq", "gt-eq")]
)
@pytest.mark.parametrize(
    ("kind", "value", "data_type", "lowest"),
    [
        ("float", -1e300, "double", -3.40282347e38),
        ("double", f"-1{'0' * 309}", "string", -sys.float_info.max),
    ],
)
def test_number_below_all_of_the_column_is_left_as_one_that_clients_can_read(
    operation: str, left: str, kind: str, value: object, data_type: str, lowest: float
) -> None:
    typed = {"type": "literal", "value": value, "data-type": data_type}
    question = parse_expression({"type": operation, "term": "f", "value": typed})

    function = residual_function(question, spec_of(), schema_of(f=kind))

    assert to_json(function(())) == asked(left, lowest, of="f")


def test_number_above_all_of_the_column_is_left_as_one_that_clients_can_read() -> None:
    typed = {"type": "literal", "value": f"1{'0' * 309}", "data-type": "string"}
    question = parse_expression({"type": "gt", "term": "x", "value": typed})

    assert to_json(residual_function(question, spec_of(), SCHEMA)(())) == asked(
        "gt", sys.float_info.max, of="x"
    )


def test_parts_simplify_each_by_itself() -> None:
    by_id, by_name = asked("eq", 5, of="id"), asked("eq", "a", of="name")
    fields = [(1, "identity")]

    assert left({"type": "and", "left": by_id, "right": by_name}, fields, (5,)) == by_name
    assert left({"type": "and", "left": by_id, "right": by_name}, fields, (6,)) is False
    assert left({"type": "or", "left": by_id, "right": by_name}, fields, (5,)) is True
    assert left({"type": "or", "left": by_id, "right": by_name}, fields, (6,)) == by_name
    assert left({"type": "not", "child": by_name}, fields, (5,)) == asked("not-eq", "a", of="name")
    assert left(True, fields, (5,)) is True
    assert left(False, fields, (5,)) is False


def test_literal_no_value_can_be_leaves_no_question() -> None:
    assert left(asked("eq", 2**70, of="id"), [(1, "identity")], (5,)) is False
    assert left(asked("not-eq", 2**70, of="id"), [], ()) is True
    assert left(asked("not-in", of="id"), [], ()) is True


def test_question_keeps_the_words_it_came_in() -> None:
    question = asked("lt", 1_000_000, of="at")
    assert left(question, [], ()) == question


def test_question_is_put_in_words_that_every_client_reads() -> None:
    typed = {
        "type": "lt",
        "left": {"type": "reference", "id": 2},
        "right": {"type": "literal", "value": "1970-01-02", "data-type": "date"},
    }
    transformed = {
        "type": "eq",
        "left": {"type": "apply", "function": "bucket", "arguments": [4, {"type": "reference", "id": 1}]},
        "right": 3,
    }

    assert left(typed, [], ()) == asked("lt", "1970-01-02T00:00:00.000000", of="at")
    assert left(transformed, [], ()) == asked("eq", 3, of="id", through="bucket[4]")


@pytest.mark.parametrize(
    ("kind", "literal", "data_type", "below"),
    [
        ("date", "2020-01-01T12:00:00", "timestamp", "2020-01-01"),
        ("timestamp", "2020-01-01T00:00:00.000000500", "timestamp_ns", "2020-01-01T00:00:00.000000"),
        ("decimal(9, 2)", "1.255", "decimal(9, 3)", "1.25"),
    ],
)
@pytest.mark.parametrize(
    ("operation", "plain"), [("lt", "lt-eq"), ("lt-eq", "lt-eq"), ("gt", "gt"), ("gt-eq", "gt")]
)
def test_question_about_a_literal_between_two_values_is_put_about_the_lower_one(
    kind: str, literal: str, data_type: str, below: str, operation: str, plain: str
) -> None:
    question = {
        "type": operation,
        "left": {"type": "reference", "name": "c"},
        "right": {"type": "literal", "value": literal, "data-type": data_type},
    }

    of = residual_function(parse_expression(question), spec_of(), schema_of(c=kind))

    assert to_json(of(())) == asked(plain, below, of="c")


@pytest.mark.parametrize(("operation", "value"), [("lt", 2**40), ("gt", -(2**40))])
def test_question_about_a_literal_beyond_all_values_is_one_about_null(operation: str, value: int) -> None:
    question = {
        "type": operation,
        "left": {"type": "reference", "name": "c"},
        "right": {"type": "literal", "value": value, "data-type": "long"},
    }

    of = residual_function(parse_expression(question), spec_of(), schema_of(c="int"))

    assert to_json(of(())) == asked("not-null", of="c")


def test_one_function_answers_for_every_partition() -> None:
    of = residual_function(parse_expression(asked("in", 1, 2, of="id")), spec_of((1, "truncate[2]")), SCHEMA)

    assert [to_json(of((value,))) for value in (0, 2, 4)] == [
        asked("in", 1, 2, of="id"),
        asked("in", 1, 2, of="id"),
        False,
    ]


def test_filter_must_fit_the_schema() -> None:
    with pytest.raises(InvalidFilter, match="no column named 'ID'"):
        left(asked("eq", 5, of="ID"), [], ())
    residual = residual_function(
        parse_expression(asked("eq", 5, of="ID")), spec_of(), SCHEMA, case_sensitive=False
    )
    assert to_json(residual(())) == asked("eq", 5, of="ID")
