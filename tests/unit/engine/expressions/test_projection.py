from __future__ import annotations

import pytest

from app.engine.expressions.binding import bind
from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.expressions.expressions import Not
from app.engine.expressions.projection import partition_sources, project_bound
from app.engine.model.ids import FieldId
from app.errors import InvalidFilter
from tests.builders.filtered_files import asked, schema_of, spec_of, struct_of
from tests.builders.filters import project

SCHEMA = schema_of(id="long", at="timestamp", place=struct_of(city="string"))


def test_each_field_of_a_column_adds_what_it_knows() -> None:
    spec = spec_of((1, "bucket[1]"), (1, "identity"))
    expression = parse_expression(asked("eq", 5, of="id"))

    both = {"left": asked("eq", 0, of="p0"), "right": asked("eq", 5, of="p1")}
    assert to_json(project(expression, SCHEMA, spec)) == {"type": "and"} | both
    # One of them is enough to be certain.
    assert to_json(project(expression, SCHEMA, spec, strict=True)) == asked("eq", 5, of="p1")


def test_column_without_a_field_says_nothing() -> None:
    spec = spec_of((1, "identity"))
    expression = parse_expression(asked("eq", "Ulm", of="place.city"))

    assert to_json(project(expression, SCHEMA, spec)) is True
    assert to_json(project(expression, SCHEMA, spec, strict=True)) is False


@pytest.mark.parametrize("transform", ["void", "zorder", "bucket[4,5]", "week"])
def test_void_and_unknown_transforms_say_nothing_and_keep_their_place(transform: str) -> None:
    spec = spec_of((1, transform), (1, "identity"))
    projected = project(parse_expression(asked("eq", 5, of="id")), SCHEMA, spec)

    assert to_json(projected) == asked("eq", 5, of="p1")
    assert [source.position for source in partition_sources(spec)[FieldId(1)]] == [1]


def test_field_of_a_dropped_column_says_nothing() -> None:
    spec = spec_of((99, "identity"), (1, "truncate[10]"))
    expression = parse_expression(asked("eq", 15, of="id"))

    assert to_json(project(expression, SCHEMA, spec)) == asked("eq", 10, of="p1")
    assert to_json(project(expression, SCHEMA, spec, strict=True)) is False


def test_transform_that_does_not_apply_to_what_the_column_is_now_says_nothing() -> None:
    spec = spec_of((1, "day"))

    assert to_json(project(parse_expression(asked("eq", 5, of="id")), SCHEMA, spec)) is True
    assert to_json(project(parse_expression(asked("eq", 5, of="id")), SCHEMA, spec, strict=True)) is False


def test_column_inside_a_struct_is_projected() -> None:
    spec = spec_of((11, "truncate[1]"))

    projected = project(parse_expression(asked("eq", "Ulm", of="place.city")), SCHEMA, spec)

    assert to_json(projected) == asked("eq", "U", of="p0")


def test_negation_is_rewritten_before_it_is_projected() -> None:
    spec = spec_of((1, "truncate[10]"))
    bound = bind(parse_expression(asked("not-eq", 15, of="id")), SCHEMA)

    assert to_json(project_bound(Not(bound), spec)) == asked("eq", 10, of="p0")


def test_parts_are_joined_as_they_were() -> None:
    spec = spec_of((1, "identity"))
    left, right = asked("eq", 5, of="id"), asked("eq", "Ulm", of="place.city")

    either = parse_expression({"type": "or", "left": left, "right": right})
    both = parse_expression({"type": "and", "left": left, "right": right})
    assert to_json(project(either, SCHEMA, spec)) is True
    assert to_json(project(both, SCHEMA, spec)) == asked("eq", 5, of="p0")
    assert to_json(project(either, SCHEMA, spec, strict=True)) == asked("eq", 5, of="p0")
    assert to_json(project(both, SCHEMA, spec, strict=True)) is False


def test_case_of_names() -> None:
    expression = parse_expression(asked("eq", 5, of="ID"))

    assert to_json(project(expression, SCHEMA, spec_of((1, "identity")), case_sensitive=False)) == asked(
        "eq", 5, of="p0"
    )
    with pytest.raises(InvalidFilter, match="no column named 'ID'"):
        project(expression, SCHEMA, spec_of((1, "identity")))
