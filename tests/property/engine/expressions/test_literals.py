"""Comparisons with any number at all, also one that no value of the column's type can be."""

from __future__ import annotations

import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.engine.model.data_types.types import parse_primitive
from tests.builders.filtered_files import asked, bound_of
from tests.builders.filters import row_test
from tests.strategies.single_values import single_values

_COMPARED = {
    "lt": operator.lt,
    "lt-eq": operator.le,
    "gt": operator.gt,
    "gt-eq": operator.ge,
    "eq": operator.eq,
    "not-eq": operator.ne,
}
_WHOLE = st.integers(-(2**70), 2**70) | st.sampled_from([2**31, -(2**31) - 1, 2**63, -(2**63) - 1, 10**400])
_DECIMALS = st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=4
)


@given(
    st.data(), st.sampled_from(sorted(_COMPARED)), st.sampled_from(["int", "long", "date", "time"]), _WHOLE
)
def test_whole_numbers_compare_as_numbers(
    data: st.DataObject, operation: str, kind: str, literal: int
) -> None:
    near = single_values(parse_primitive(kind)).filter(lambda value: value != literal)
    value = data.draw(near, "value")

    test = row_test(bound_of(kind, asked(operation, literal)))

    assert test((value,)) is _COMPARED[operation](value, literal)
    assert test((None,)) is (operation == "not-eq")


@given(st.data(), st.sampled_from(sorted(_COMPARED)), _DECIMALS)
def test_decimals_compare_as_numbers(data: st.DataObject, operation: str, literal: Decimal) -> None:
    some = single_values(parse_primitive("decimal(9,2)"))
    value: Any = data.draw(some | st.just(round(literal, 2)), "value")

    test = row_test(bound_of("decimal(9,2)", asked(operation, format(literal, "f"))))

    assert test((value,)) is _COMPARED[operation](value, literal)
    assert test((None,)) is (operation == "not-eq")


@given(
    st.data(),
    st.sampled_from(["lt", "lt-eq", "gt", "gt-eq"]),
    st.sampled_from(["float", "double"]),
    st.booleans(),
)
def test_infinity_compares_with_numbers_too_large_for_the_type(
    data: st.DataObject, operation: str, kind: str, is_negative: bool
) -> None:
    literal = -(10**400) if is_negative else 10**400
    value = data.draw(single_values(parse_primitive(kind)).filter(lambda found: found == found), "value")  # noqa: PLR0124 - no NaN

    expected = _COMPARED[operation](
        value if value in (float("inf"), float("-inf")) else Fraction(value), Fraction(literal)
    )

    assert row_test(bound_of(kind, asked(operation, literal)))((value,)) is expected
