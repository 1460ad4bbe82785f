from __future__ import annotations

import pytest

from app.engine.expressions.binding import bind
from app.engine.expressions.evaluation import (
    compiled,
    partition_test,
)
from app.engine.expressions.expression_json import parse_expression
from app.engine.expressions.expressions import ALWAYS_FALSE, ALWAYS_TRUE, Not
from tests.builders.filtered_files import Json, asked, bound_of, schema_of, spec_of, struct_of
from tests.builders.filters import project, row_test


def joined(kind: str, *documents: Json) -> Json:
    first, *rest = documents
    for document in rest:
        first = {"type": kind, "left": first, "right": document}
    return first


@pytest.mark.parametrize(
    ("document", "matching"),
    [
        (True, [0, 1, 2, 3]),
        (False, []),
        (asked("lt", 2), [0, 1]),
        ({"type": "not", "child": asked("lt", 2)}, [2, 3]),
        (joined("and", asked("gt", 0), asked("lt", 3)), [1, 2]),
        (joined("and", asked("gt", 0), asked("lt", 3), asked("not-eq", 2)), [1]),
        (joined("or", asked("eq", 0), asked("eq", 3)), [0, 3]),
        (joined("or", asked("eq", 0), asked("eq", 3), asked("eq", 2)), [0, 2, 3]),
    ],
)
def test_rows_match_as_predicates_are_joined(document: Json, matching: list[int]) -> None:
    test = row_test(bound_of("int", document))

    assert [value for value in range(4) if test((value,))] == matching


def test_value_is_found_inside_structs() -> None:
    schema = schema_of(a="int", place=struct_of(city="string", height="double"))
    test = row_test(bind(parse_expression(asked("eq", 1.5, of="place.height")), schema))
    is_null = row_test(bind(parse_expression(asked("is-null", of="place.height")), schema))

    rows = [(1, ("Ulm", 1.5)), (1, ("Ulm", None)), (1, None)]
    assert [test(row) for row in rows] == [True, False, False]
    assert [is_null(row) for row in rows] == [False, True, True]


def test_partition_is_kept_and_not_certain_where_engines_disagree() -> None:
    schema, spec = schema_of(c="double"), spec_of((1, "identity"))
    expression = parse_expression(asked("lt", 0.0))
    inclusive = partition_test(project(expression, schema, spec))
    strict = partition_test(project(expression, schema, spec, strict=True), strict=True)

    assert inclusive((-0.0,))
    assert not strict((-0.0,))
    assert inclusive((-1.0,))
    assert strict((-1.0,))
    assert not inclusive((1.0,))


def test_partition_value_is_found_by_its_position() -> None:
    schema, spec = schema_of(a="int", b="int"), spec_of((1, "identity"), (2, "void"), (2, "identity"))
    test = partition_test(project(parse_expression(asked("eq", 7, of="b")), schema, spec))

    assert test((0, None, 7))
    assert not test((7, 7, 0))


def test_negation_must_be_gone_before() -> None:
    assert partition_test(Not(ALWAYS_FALSE))(())
    with pytest.raises(AssertionError, match="rewrite_not comes first"):
        compiled(Not(ALWAYS_TRUE), lambda _: lambda _: True)


@pytest.mark.parametrize("value", ["1.50", b"\x96", 1])
@pytest.mark.parametrize("operation", ["lt", "eq", "gt-eq"])
@pytest.mark.parametrize("transform", ["identity", "truncate[10]"])
def test_partition_value_of_another_type_than_the_fields_excludes_nothing(
    value: object, operation: str, transform: str
) -> None:
    schema, spec = schema_of(c="decimal(9, 2)"), spec_of((1, transform))
    expression = parse_expression(asked(operation, "1.50"))

    assert partition_test(project(expression, schema, spec))((value,))
    assert not partition_test(project(expression, schema, spec, strict=True), strict=True)((value,))
