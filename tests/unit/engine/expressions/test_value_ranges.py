from __future__ import annotations

from typing import Any

import pytest

from app.engine.expressions.value_ranges import value_ranges
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.files.entry_filters import ValueRange
from tests.builders.filtered_files import Json, asked, bound_of


def ranges(kind: str, document: Json) -> list[tuple[Any, Any]]:
    return [(found.lowest, found.highest) for found in value_ranges(bound_of(kind, document))]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (asked("eq", 5), [(5, 5)]),
        (asked("lt", 5), [(None, 5)]),
        (asked("lt-eq", 5), [(None, 5)]),
        (asked("gt", 5), [(5, None)]),
        (asked("gt-eq", 5), [(5, None)]),
        (asked("in", 7, 5, 6), [(5, 7)]),
        ({"type": "and", "left": asked("gt", 5), "right": asked("lt", 9)}, [(5, None), (None, 9)]),
        ({"type": "not", "child": asked("not-eq", 5)}, [(5, 5)]),
        ({"type": "or", "left": asked("eq", 5), "right": asked("eq", 7)}, []),
        (asked("not-eq", 5), []),
        (asked("not-in", 5, 6), []),
        (asked("is-null"), []),
        (asked("eq", 5, through="truncate[10]"), []),
        (True, []),
    ],
)
def test_what_every_match_must_fulfil(document: Json, expected: list[tuple[Any, Any]]) -> None:
    assert ranges("int", document) == expected


def test_range_names_its_column() -> None:
    (found,) = value_ranges(bound_of("int", asked("eq", 5)))

    assert found == ValueRange(1, parse_primitive("int"), 5, 5)


def test_types_that_have_no_range() -> None:
    assert ranges("uuid", asked("eq", "00000000-0000-0000-0000-000000000005")) == []
    assert ranges("string", asked("starts-with", "a")) == []


def test_nan_is_above_a_number_for_some_engines() -> None:
    assert ranges("double", asked("gt", 5.0)) == []
    assert ranges("float", asked("gt-eq", 5.0)) == []
    assert ranges("double", asked("lt", 5.0)) == [(None, 5.0)]
    assert ranges("double", asked("eq", 5.0)) == [(5.0, 5.0)]
