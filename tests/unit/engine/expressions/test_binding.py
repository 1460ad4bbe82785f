from __future__ import annotations

from typing import Any

import pytest

from app.engine.expressions.binding import _bind_set, bind
from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.expressions.expressions import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    BoundExpression,
    BoundPredicate,
    BoundReference,
    BoundTransform,
    Operation,
)
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.schema import Schema
from app.errors import InvalidFilter
from tests.builders.filtered_files import asked, bound_of, schema_of, struct_of
from tests.unit.engine.effort import calls_in, comparisons_of

NESTED = schema_of(
    id="long",
    place=struct_of(first_id=11, city="string", Height="double"),
    tags={"type": "list", "element-id": 20, "element-required": False, "element": "string"},
    notes={
        "type": "map",
        "key-id": 21,
        "key": "string",
        "value-id": 22,
        "value-required": False,
        "value": "int",
    },
    shape="geometry",
    any="variant",
)


def bound(document: Any, schema: Schema = NESTED, *, case_sensitive: bool = True) -> BoundExpression:
    return bind(parse_expression(document), schema, case_sensitive=case_sensitive)


def refusal(document: Any, schema: Schema = NESTED, *, case_sensitive: bool = True) -> str:
    with pytest.raises(InvalidFilter) as caught:
        bound(document, schema, case_sensitive=case_sensitive)
    return str(caught.value)


def test_a_column_is_found_by_its_name() -> None:
    assert bound(asked("eq", 5, of="id")) == BoundPredicate(
        Operation.EQ, BoundReference(NESTED.ids_by_name["id"], "id", parse_primitive("long"), (0,)), (5,)
    )


def test_a_column_inside_a_struct_is_found_by_its_path() -> None:
    found = bound(asked("eq", "Ulm", of="place.city"))

    assert isinstance(found, BoundPredicate)
    assert (found.reference.name, found.reference.positions, found.reference.is_nullable) == (
        "place.city",
        (1, 0),
        True,
    )


def test_a_column_is_found_by_its_field_id() -> None:
    by_id = {"type": "eq", "left": {"type": "reference", "id": 11}, "right": "Ulm"}

    assert bound(by_id) == bound(asked("eq", "Ulm", of="place.city"))
    assert refusal({"type": "is-null", "child": {"type": "reference", "id": 99}}).endswith(
        "there is no column with the field id 99"
    )


def test_a_required_column_inside_an_optional_struct_may_be_null() -> None:
    required = schema_of(place=struct_of(required=True, city="string"))
    all_required = schema_of(required=True, place=struct_of(required=True, city="string"))

    assert bound(asked("is-null", of="place.city"), required) != ALWAYS_FALSE
    assert bound(asked("is-null", of="place.city"), all_required) == ALWAYS_FALSE


def test_an_optional_column_inside_a_required_struct_may_be_null() -> None:
    schema = schema_of(required=True, place=struct_of(city="string"))

    assert isinstance(bound(asked("is-null", of="place.city"), schema), BoundPredicate)


def test_unknown_column_is_refused_and_a_near_one_named() -> None:
    assert refusal(asked("eq", 1, of="nope")) == "Invalid filter: there is no column named 'nope'"
    assert refusal(asked("eq", 1, of="ID")) == (
        "Invalid filter: there is no column named 'ID', but there is 'id': names are case-sensitive"
    )
    assert "'place.Height'" in refusal(asked("eq", 1, of="place.height"))
    assert len(refusal(asked("eq", 1, of="x" * 5000))) < 300


def test_case_does_not_matter_if_it_need_not() -> None:
    assert bound(asked("gt", 1.5, of="PLACE.hEIGHT"), case_sensitive=False) == bound(
        asked("gt", 1.5, of="place.Height")
    )
    assert refusal(asked("gt", 1.5, of="places"), case_sensitive=False).endswith("no column named 'places'")


def test_name_of_two_columns_that_differ_in_case_is_refused_where_case_does_not_matter() -> None:
    twins = schema_of(a="int", A="int")

    assert refusal(asked("eq", 1, of="a"), twins, case_sensitive=False) == (
        "Invalid filter: 'a' could be any of A, a"
    )
    assert isinstance(bound(asked("eq", 1, of="a"), twins), BoundPredicate)


@pytest.mark.parametrize("name", ["tags.element", "notes.key", "notes.value"])
def test_column_inside_a_list_or_map_is_refused(name: str) -> None:
    assert refusal(asked("is-null", of=name)) == f"Invalid filter: {name} is inside a list or map"


@pytest.mark.parametrize("name", ["tags", "notes", "place", "shape", "any"])
def test_column_without_an_order_is_only_asked_for_null(name: str) -> None:
    assert isinstance(bound(asked("is-null", of=name)), BoundPredicate)
    message = refusal(asked("eq", 1, of=name))
    assert message.startswith(f"Invalid filter: {name} of type ")
    assert "only is-null and not-null" in message


def test_literal_of_another_type_is_refused_naming_both() -> None:
    assert refusal(asked("eq", "five", of="id")) == (
        "Invalid filter: 'five' cannot be compared with id of type long: it is no value of type long"
    )
    assert "'2024-02-30'" in refusal(asked("eq", "2024-02-30"), schema_of(c="date"))
    assert len(refusal(asked("eq", "x" * 5000, of="id"))) < 300


@pytest.mark.parametrize("operation", ["is-nan", "not-nan"])
def test_nan_is_asked_of_floats_only(operation: str) -> None:
    assert isinstance(bound(asked(operation, of="place.Height")), BoundPredicate)
    assert refusal(asked(operation, of="id")) == (
        f"Invalid filter: {operation} needs a float or double, not id of type long"
    )


@pytest.mark.parametrize("operation", ["starts-with", "not-starts-with"])
def test_prefix_is_asked_of_strings_only(operation: str) -> None:
    assert isinstance(bound(asked(operation, "U", of="place.city")), BoundPredicate)
    assert refusal(asked(operation, 5, of="id")) == (
        f"Invalid filter: {operation} needs a string, not id of type long"
    )
    assert "needs a string" in refusal(asked(operation, "0A", of="c"), schema_of(c="binary"))
    assert "needs a string" in refusal(asked(operation, 2**40, of="c"), schema_of(c="int"))


def test_transform_must_apply_to_the_column() -> None:
    assert refusal(asked("eq", 1, of="id", through="day")) == (
        "Invalid filter: day does not apply to id of type long"
    )
    assert "does not apply to place of type struct" in refusal(
        asked("eq", 1, of="place", through="bucket[2]")
    )


def test_transform_of_a_column_has_values_of_its_own_type() -> None:
    found = bound_of("timestamp", asked("eq", "1970-01-02", through="day"))

    assert isinstance(found, BoundPredicate)
    assert isinstance(found.term, BoundTransform)
    assert found.values == (1,)
    with pytest.raises(InvalidFilter, match=r"day\(c\) of type date"):
        bound_of("timestamp", asked("eq", "x", through="day"))


def test_identity_is_the_column_itself() -> None:
    assert bound_of("uuid", asked("not-null", through="identity")) == bound_of("uuid", asked("not-null"))


@pytest.mark.parametrize(
    ("operation", "values", "expected"),
    [
        ("is-null", (), ALWAYS_TRUE),
        ("not-null", (), ALWAYS_FALSE),
        ("eq", (5,), ALWAYS_FALSE),
        ("lt", (5,), ALWAYS_FALSE),
        ("not-eq", (5,), ALWAYS_TRUE),
        ("in", (5, 6), ALWAYS_FALSE),
        ("not-in", (5, 6), ALWAYS_TRUE),
    ],
)
def test_void_makes_everything_null(operation: str, values: Any, expected: BoundExpression) -> None:
    assert bound_of("int", asked(operation, *values, through="void")) == expected
    assert bound_of("int", asked(operation, *values, through="void"), required=True) == expected


def test_required_column_is_never_null() -> None:
    assert bound_of("int", asked("is-null"), required=True) == ALWAYS_FALSE
    assert bound_of("int", asked("not-null"), required=True) == ALWAYS_TRUE
    assert bound_of("int", asked("is-null", through="bucket[3]"), required=True) == ALWAYS_FALSE
    assert isinstance(bound_of("int", asked("is-null", through="bucket[3]")), BoundPredicate)


NOT_NULL = bound_of("int", asked("not-null"))


@pytest.mark.parametrize(
    ("operation", "above", "below"),
    [
        ("lt", NOT_NULL, ALWAYS_FALSE),
        ("lt-eq", NOT_NULL, ALWAYS_FALSE),
        ("gt", ALWAYS_FALSE, NOT_NULL),
        ("gt-eq", ALWAYS_FALSE, NOT_NULL),
        ("eq", ALWAYS_FALSE, ALWAYS_FALSE),
        ("not-eq", ALWAYS_TRUE, ALWAYS_TRUE),
    ],
)
def test_literal_beyond_all_values_of_the_type(
    operation: str, above: BoundExpression, below: BoundExpression
) -> None:
    """Null is not below anything, so only what is there matches."""
    assert bound_of("int", asked(operation, 2**31)) == above
    assert bound_of("int", asked(operation, -(2**31) - 1)) == below


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("lt", asked("lt-eq", "1.25")),
        ("lt-eq", asked("lt-eq", "1.25")),
        ("gt", asked("gt", "1.25")),
        ("gt-eq", asked("gt", "1.25")),
        ("eq", False),
        ("not-eq", True),
    ],
)
def test_literal_between_two_values_of_the_type(operation: str, expected: Any) -> None:
    assert to_json(bound_of("decimal(9,2)", asked(operation, "1.255"))) == expected


def test_infinity_is_above_a_literal_that_no_float_can_be() -> None:
    assert to_json(bound_of("float", asked("gt", 1e300))) == asked("gt", 3.40282347e38)
    assert to_json(bound_of("float", asked("lt", 1e300))) == asked("lt-eq", 3.40282347e38)
    assert to_json(bound_of("float", asked("lt", -1e300))) == asked("lt-eq", "-Infinity")


@pytest.mark.parametrize(
    ("operation", "values", "expected"),
    [
        ("in", [], ALWAYS_FALSE),
        ("not-in", [], ALWAYS_TRUE),
        ("in", [2**31, -(2**40)], ALWAYS_FALSE),
        ("not-in", [2**31], ALWAYS_TRUE),
    ],
)
def test_set_of_no_values(operation: str, values: list[int], expected: BoundExpression) -> None:
    assert bound_of("int", asked(operation, *values)) == expected


def test_set_is_sorted_and_has_each_value_once() -> None:
    assert to_json(bound_of("int", asked("in", 3, 1, 2**31, 3, 2))) == asked("in", 1, 2, 3)
    assert to_json(bound_of("int", asked("not-in", 3, 3))) == asked("not-eq", 3)
    assert to_json(bound_of("int", asked("in", 3, 2**40))) == asked("eq", 3)


def test_set_of_numbers_that_were_chosen_to_do_harm_takes_few_comparisons() -> None:
    (term,) = [each.term for each in [bound_of("long", asked("eq", 1))] if isinstance(each, BoundPredicate)]

    assert comparisons_of(range(3_000), lambda ids: _bind_set(Operation.IN, term, list(ids))) < 10 * 3_000


def test_both_zeros_stay_in_a_set() -> None:
    found = bound_of("double", asked("in", 0.0, -0.0))

    assert isinstance(found, BoundPredicate)
    assert [str(value) for value in found.values] == ["-0.0", "0.0"]


def test_negation_is_gone_and_constants_simplify() -> None:
    document = {
        "type": "not",
        "child": {"type": "or", "left": asked("lt", 5), "right": asked("lt", -(2**40))},
    }

    assert to_json(bound_of("int", document, required=True)) == asked("gt-eq", 5)


def test_columns_are_found_in_any_case_without_a_look_at_all_others() -> None:
    def columns(count: int) -> Schema:
        names: dict[str, Any] = {f"C{number}": "int" for number in range(count)}
        return schema_of(**names)

    questions = [parse_expression(asked("eq", 1, of=f"c{number % 10}")) for number in range(100)]

    def effort(schema: Schema) -> int:
        bind(questions[0], schema, case_sensitive=False)
        return calls_in(lambda: [bind(each, schema, case_sensitive=False) for each in questions])

    assert effort(columns(1_000)) < 2 * effort(columns(10))
