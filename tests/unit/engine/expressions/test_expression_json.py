from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from app.engine.expressions.binding import bind
from app.engine.expressions.expression_json import MAX_LEVELS, parse_expression, to_json
from app.engine.expressions.expressions import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    Expression,
    IdReference,
    Literal,
    NamedReference,
    Not,
    Operation,
    Or,
    Predicate,
    TransformTerm,
)
from app.engine.model.data_types.transforms import Transform
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.ids import FieldId
from app.errors import InvalidFilter
from tests.builders.filtered_files import asked, schema_of
from tests.builders.filters import predicate

COLUMN = {"type": "reference", "name": "c"}
FIVE = predicate(Operation.EQ, "c", 5)


def literal(value: Any, data_type: str | None = None) -> dict[str, Any]:
    return {"type": "literal", "value": value} | ({} if data_type is None else {"data-type": data_type})


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (True, ALWAYS_TRUE),
        (False, ALWAYS_FALSE),
        ({"type": "true"}, ALWAYS_TRUE),
        ({"type": "false"}, ALWAYS_FALSE),
        (literal(True), ALWAYS_TRUE),
        (literal(False), ALWAYS_FALSE),
        (asked("eq", 5), FIVE),
        ({"type": "eq", "term": COLUMN, "value": literal(5)}, FIVE),
        ({"type": "eq", "left": COLUMN, "right": 5}, FIVE),
        ({"type": "eq", "left": literal(5), "right": COLUMN}, FIVE),
        ({"type": "EQ", "term": "c", "value": 5}, FIVE),
        ({"type": "lt", "left": literal(5), "right": COLUMN}, predicate(Operation.GT, "c", 5)),
        ({"type": "gt-eq", "left": literal(5), "right": COLUMN}, predicate(Operation.LT_EQ, "c", 5)),
        ({"type": "IS_NULL", "term": "c"}, predicate(Operation.IS_NULL, "c")),
        ({"type": "not-nan", "child": COLUMN}, predicate(Operation.NOT_NAN, "c")),
        (asked("in", 1, 2), predicate(Operation.IN, "c", 1, 2)),
        (asked("in"), predicate(Operation.IN, "c")),
        ({"type": "not-in", "child": COLUMN, "values": [literal(1)]}, predicate(Operation.NOT_IN, "c", 1)),
        (
            {
                "type": "in",
                "child": COLUMN,
                "values": {"type": "literals", "data-type": "int", "values": [1, literal(2)]},
            },
            Predicate(
                Operation.IN,
                NamedReference("c"),
                (Literal(1, parse_primitive("int")), Literal(2, parse_primitive("int"))),
            ),
        ),
        (
            {"type": "eq", "left": COLUMN, "right": literal("1.50", "decimal(9,2)")},
            Predicate(Operation.EQ, NamedReference("c"), (Literal("1.50", parse_primitive("decimal(9,2)")),)),
        ),
        (
            {"type": "eq", "left": {"type": "reference", "id": 7}, "right": "x"},
            Predicate(Operation.EQ, IdReference(FieldId(7)), (Literal("x"),)),
        ),
        ({"type": "is-null", "term": {"type": "reference", "term": "c"}}, predicate(Operation.IS_NULL, "c")),
        (
            {"type": "not", "child": {"type": "starts-with", "term": "c", "value": "a"}},
            Not(predicate(Operation.STARTS_WITH, "c", "a")),
        ),
    ],
)
def test_both_forms_are_read(document: Any, expected: Expression) -> None:
    assert parse_expression(document) == expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({"type": "transform", "transform": "bucket[4]", "term": "c"}, Transform("bucket", 4)),
        ({"type": "transform", "transform": "DAY", "term": COLUMN}, Transform("day")),
        ({"type": "apply", "function": "days", "arguments": [COLUMN]}, Transform("day")),
        (
            {"type": "apply", "function": ["system", "Bucket"], "arguments": [4, COLUMN]},
            Transform("bucket", 4),
        ),
        (
            {"type": "apply", "function": {"identifier": ["truncate"]}, "arguments": [COLUMN, literal(4)]},
            Transform("truncate", 4),
        ),
        (
            {
                "type": "apply",
                "function": {"catalog": "iceberg_functions", "identifier": ["year"]},
                "arguments": [COLUMN],
            },
            Transform("year"),
        ),
        (
            {"type": "apply", "function": {"catalog": None, "identifier": ["year"]}, "arguments": [COLUMN]},
            Transform("year"),
        ),
    ],
)
def test_both_forms_of_transforms_are_read(term: Any, expected: Transform) -> None:
    assert parse_expression({"type": "is-null", "child": term}) == Predicate(
        Operation.IS_NULL, TransformTerm(expected, NamedReference("c"))
    )


@pytest.mark.parametrize(
    "function",
    [
        {"catalog": "sql_functions", "identifier": ["year"]},
        {"catalog": "spark_builtin_functions", "identifier": ["year"]},
        {"catalog": 5, "identifier": ["year"]},
        {"identifier": ["mine", "year"]},
        ["mine", "year"],
        ["mine", "system", "year"],
        [{}, "year"],
    ],
)
def test_functions_of_others_are_not_taken_for_transforms(function: Any) -> None:
    with pytest.raises(InvalidFilter, match="there are only the functions of iceberg_functions"):
        parse_expression(
            {
                "type": "eq",
                "left": {"type": "apply", "function": function, "arguments": [COLUMN]},
                "right": 2018,
            }
        )


def test_chain_is_flat_however_long() -> None:
    chain: Any = asked("eq", 0)
    for number in range(1, 20_000):
        chain = {"type": "or", "left": chain, "right": asked("eq", number)}

    parsed = parse_expression(chain)

    assert isinstance(parsed, Or)
    assert [part.literals[0].value for part in parsed.parts] == list(range(20_000))  # type: ignore[union-attr]  # all are predicates


def test_long_chain_is_written_as_a_tree_that_is_not_deep() -> None:
    parts = tuple(predicate(Operation.EQ, "c", number) for number in range(5_000))

    document = to_json(And(parts))

    depth, level = 0, document
    while level["type"] == "and":
        depth, level = depth + 1, level["left"]
    assert depth == 13
    assert parse_expression(document) == And(parts)


def nested(levels: int, wrap: Any, inside: Any) -> Any:
    for _ in range(levels):
        inside = wrap(inside)
    return inside


def negated(document: Any) -> Any:
    return {"type": "not", "child": document}


def test_levels_are_limited() -> None:
    assert isinstance(parse_expression(nested(MAX_LEVELS - 1, negated, asked("eq", 5))), Not | Predicate)
    with pytest.raises(InvalidFilter, match="nested more than 100 levels deep"):
        parse_expression(nested(MAX_LEVELS, negated, asked("eq", 5)))


@pytest.mark.parametrize(
    "wrap",
    [
        negated,
        literal,
        lambda inside: {"type": "transform", "transform": "day", "term": inside},
        lambda inside: {"type": "apply", "function": "days", "arguments": [inside]},
        lambda inside: {"type": "reference", "name": inside},
        lambda inside: [inside],
    ],
)
@pytest.mark.parametrize(
    "around",
    [
        lambda inside: inside,
        lambda inside: {"type": inside},
        lambda inside: {"type": "is-null", "term": inside},
        lambda inside: {"type": "eq", "term": "c", "value": inside},
        lambda inside: {"type": "eq", "left": inside, "right": inside},
        lambda inside: {"type": "in", "term": "c", "values": inside},
        lambda inside: {
            "type": "in",
            "term": "c",
            "values": {"type": "literals", "data-type": "int", "values": inside},
        },
        lambda inside: {"type": "is-null", "term": {"type": "transform", "transform": inside, "term": "c"}},
    ],
)
def test_nothing_is_too_deep_to_be_refused(wrap: Any, around: Any) -> None:
    with pytest.raises(InvalidFilter) as caught:
        parse_expression(around(nested(20_000, wrap, "x")))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("document", "named", "reason"),
    [
        (None, "None", "expected true, false or an object"),
        ([asked("eq", 5)], "eq", "expected true, false or an object"),
        ("c = 5", "c = 5", "expected true, false or an object"),
        ({}, "{}", "its type is missing"),
        ({"type": 5}, "5", "its type is missing"),
        ({"type": "like", "term": "c", "value": "a%"}, "a%", "there is no operation 'like'"),
        (literal(1), "1", "a literal alone must be true or false"),
        ({"type": "and", "left": True}, "left", "'right' is missing"),
        ({"type": "or", "right": True}, "right", "'left' is missing"),
        ({"type": "and", "left": 5, "right": True}, "5", "expected true, false or an object"),
        ({"type": "not"}, "not", "'child' is missing"),
        ({"type": "is-null"}, "is-null", "'term' is missing"),
        ({"type": "is-null", "term": "c", "value": 1}, "value", "is-null takes no value"),
        ({"type": "is-nan", "term": "c", "values": []}, "values", "is-nan takes no value"),
        ({"type": "is-null", "term": 5}, "5", "expected a reference to a column"),
        ({"type": "is-null", "term": {"type": "column", "name": "c"}}, "column", "expected a reference"),
        ({"type": "is-null", "term": {"type": "reference"}}, "reference", "needs a name or an id"),
        ({"type": "is-null", "term": {"type": "reference", "id": -1}}, "-1", "must be a field id"),
        ({"type": "is-null", "term": {"type": "reference", "id": True}}, "True", "must be a field id"),
        ({"type": "is-null", "term": {"type": "reference", "id": 2**31}}, "2147483648", "must be a field id"),
        ({"type": "is-null", "term": {"type": "reference", "name": None}}, "None", "needs a name or an id"),
        ({"type": "eq", "term": "c"}, "eq", "'value' is missing"),
        ({"type": "eq", "value": 5}, "eq", "'term' is missing"),
        ({"type": "eq", "right": literal(5)}, "eq", "'left' is missing"),
        ({"type": "eq", "term": "c", "value": None}, "None", "for null there is is-null"),
        ({"type": "eq", "term": "c", "value": [1]}, "[1]", "a literal must be"),
        ({"type": "eq", "term": "c", "value": float("nan")}, "nan", "a literal must be"),
        ({"type": "eq", "term": "c", "value": float("inf")}, "inf", "a literal must be"),
        ({"type": "eq", "term": "c", "value": {"a": 1}}, "a", "expected a literal"),
        ({"type": "eq", "term": "c", "value": literal(None)}, "None", "a literal must be"),
        ({"type": "eq", "term": "c", "value": {"type": "literal"}}, "literal", "'value' is missing"),
        ({"type": "eq", "term": "c", "value": literal(1, "integer")}, "integer", "primitive"),
        (
            {"type": "eq", "term": "c", "value": literal(1) | {"data-type": 5}},
            "5",
            "data type must be a string",
        ),
        ({"type": "eq", "term": "c", "values": [1]}, "values", "eq takes one value, not values"),
        ({"type": "in", "term": "c", "value": 1}, "value", "'values' is missing"),
        ({"type": "in", "term": "c", "values": 1}, "1", "expected an array of literals"),
        ({"type": "in", "term": "c", "values": [1, None]}, "None", "for null there is is-null"),
        ({"type": "in", "term": "c", "values": {"type": "literals"}}, "literals", "'data-type' is missing"),
        (
            {"type": "in", "term": "c", "values": {"type": "literals", "data-type": "int", "values": 1}},
            "literals",
            "expected an array of literals",
        ),
        ({"type": "eq", "left": literal(1), "right": literal(2)}, "left", "compares two literals"),
        ({"type": "eq", "left": "c", "right": 5}, "c", "a column is an object of type reference"),
        ({"type": "eq", "left": COLUMN, "right": COLUMN}, "right", "comparing two columns is not supported"),
        (
            {"type": "starts-with", "left": literal("a"), "right": COLUMN},
            "starts-with",
            "starts-with needs the column on its left",
        ),
        (asked("eq", 1, through="week"), "week", "Unknown transform"),
        (asked("eq", 1, through="bucket[0]"), "bucket[0]", "the parameter must be from 1"),
        (asked("eq", 1, through="bucket"), "bucket", "Unknown transform"),
        (
            {"type": "eq", "term": {"type": "transform", "term": "c"}, "value": 1},
            "transform",
            "'transform' is missing",
        ),
        (
            {"type": "eq", "term": {"type": "transform", "transform": 5, "term": "c"}, "value": 1},
            "5",
            "the transform must be a string",
        ),
        (
            {"type": "is-null", "term": {"type": "transform", "transform": "day", "term": 5}},
            "5",
            "day applies to a column",
        ),
        (
            {"type": "is-null", "term": {"type": "apply", "function": 5, "arguments": []}},
            "5",
            "expected the name of a function",
        ),
        (
            {"type": "is-null", "term": {"type": "apply", "function": [], "arguments": []}},
            "[]",
            "expected the name of a function",
        ),
        (
            {"type": "is-null", "term": {"type": "apply", "function": "days", "arguments": "c"}},
            "days",
            "a list of arguments",
        ),
        (
            {"type": "is-null", "term": {"type": "apply", "function": "days", "arguments": []}},
            "days",
            "one column and at most one parameter",
        ),
        (
            {"type": "is-null", "term": {"type": "apply", "function": "bucket", "arguments": [1, 2, COLUMN]}},
            "bucket",
            "one column and at most one parameter",
        ),
        ({"type": "is-null", "term": "\ud800"}, "ud800", "half of a surrogate pair"),
        ({"type": "eq", "term": "c", "value": "a\udfff"}, "udfff", "half of a surrogate pair"),
    ],
)
def test_what_cannot_be_read_is_named(document: Any, named: str, reason: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        parse_expression(document)
    message = str(caught.value)
    assert message.startswith("Invalid filter: ")
    assert named in message
    assert reason in message
    message.encode()


def test_number_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(InvalidFilter, match="more than 400 digits"):
        parse_expression(asked("eq", 10**5000))
    assert parse_expression(asked("eq", -(10**399))) == predicate(Operation.EQ, "c", -(10**399))


def test_message_stays_short_however_large_the_filter() -> None:
    document = asked("in", *range(200_000)) | {"type": "inside"}

    with pytest.raises(InvalidFilter) as caught:
        parse_expression(document)
    assert len(str(caught.value)) < 500


def test_huge_set_is_read_and_bound() -> None:
    bound = bind(parse_expression(asked("in", *range(100_000))), schema_of(c="long"))

    assert len(to_json(bound)["values"]) == 100_000


@pytest.mark.parametrize(
    "document",
    [
        True,
        False,
        asked("eq", 5),
        asked("in", 1, 2),
        asked("in"),
        asked("is-null", through="bucket[4]"),
        {"type": "not", "child": asked("lt", 5)},
        {
            "type": "and",
            "left": asked("eq", 5),
            "right": {"type": "or", "left": asked("lt", 1), "right": asked("gt", 2)},
        },
        {"type": "is-null", "term": {"type": "reference", "id": 7}},
        asked("eq", literal("1.50", "decimal(9, 2)")),
    ],
)
def test_older_form_is_written_as_it_was_read(document: Any) -> None:
    assert to_json(parse_expression(document)) == document


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\x0a", "0A"),
        (Decimal("1E+2"), "100"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("a", "a"),
        (1.5, 1.5),
    ],
)
def test_literals_of_programs_are_written_in_json(value: Any, expected: Any) -> None:
    assert to_json(predicate(Operation.EQ, "c", value)) == asked("eq", expected)


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("decimal(9,2)", asked("eq", "1.50")),
        ("decimal(9,2)", asked("lt", "123456789012345678901234567890.00")),
        ("timestamptz", asked("gt", "2024-01-01T00:00:00.000000+00:00")),
        ("date", asked("in", "2024-01-01", "2024-01-02")),
        ("binary", asked("eq", "0AFF")),
        ("timestamp", asked("eq", "2024-01-01", through="day")),
        ("string", asked("not-starts-with", "a")),
        ("int", {"type": "or", "left": asked("lt", 1), "right": asked("is-null")}),
    ],
)
def test_bound_filter_is_written_with_values_of_its_columns(kind: str, document: Any) -> None:
    assert to_json(bind(parse_expression(document), schema_of(c=kind))) == document
