"""Predicates on bounds: whether values between two bounds may match, or all do.

Bounds are in binary form. They may be truncated or missing, and may be of the type that a column had before it was
widened. A bound that cannot be read counts as missing.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from app.engine.expressions.expressions import BoundPredicate, BoundTransform, Operation
from app.engine.expressions.transform_values import lowest_unwrapped, transform_function, unchanged, unscaled
from app.engine.expressions.uuid_bounds import enclosing_bounds
from app.engine.model.data_types.moments import UNITS_A_DAY
from app.engine.model.data_types.transforms import Transform
from app.engine.model.data_types.types import PrimitiveType, Type
from app.engine.model.data_types.values import from_bytes, order_key

Bound = bytes | None
RangeTest = Callable[[Bound, Bound], bool]

_INT: Final = struct.Struct("<i").unpack
_LONG: Final = struct.Struct("<q").unpack
_FLOAT: Final = struct.Struct("<f").unpack
_DOUBLE: Final = struct.Struct("<d").unpack
_ORDERED: Final = frozenset({"truncate", "year", "month", "day", "hour"})


@dataclass(frozen=True, slots=True)
class _Order:
    """A way to compare: functions that make a bound (None if unreadable) or value comparable."""

    of_bound: Callable[[bytes], Any]
    of_value: Callable[[Any], Any]


def range_may_match(predicate: BoundPredicate) -> RangeTest | None:
    """Return a test of whether a value between two bounds may match; None if bounds cannot say.

    If values have several orders, as floats have with -0.0, it may match if it may in any of them.
    """
    tests = [_may_match(predicate.operation, keys, read) for keys, read in _compared(predicate)]
    if not tests:
        return None
    test = tests[0] if len(tests) == 1 else _either(*tests)
    return _unless_wrapped(predicate, _between_uuids(predicate, test))


def range_all_match(predicate: BoundPredicate) -> RangeTest | None:
    """Return a test of whether all values between two bounds match; None if bounds cannot say."""
    opposite = range_may_match(predicate.negated)
    return opposite and (lambda lower, upper: not opposite(lower, upper))


def _either(first: RangeTest, second: RangeTest) -> RangeTest:
    return lambda lower, upper: first(lower, upper) or second(lower, upper)


def _compared(predicate: BoundPredicate) -> list[tuple[tuple[Any, ...], Callable[[bytes], Any]]]:
    """Return the keys of the values and the reader of bounds, for each order that matters."""
    term = predicate.term
    if not isinstance(term, BoundTransform):
        orders = _orders(term.type, predicate.values)
    elif term.transform.name in _ORDERED and not _is_cut_prefix(predicate, term.transform):
        orders = _orders_of_transformed(term)
    else:
        orders = []
    return [
        (tuple(sorted(order.of_value(value) for value in predicate.values)), order.of_bound)
        for order in orders
    ]


def _is_cut_prefix(predicate: BoundPredicate, transform: Transform) -> bool:
    """Return whether a prefix is longer than truncated values, so that none starts with it.

    Bounds cannot show this: they are from before the values were truncated.
    """
    if predicate.operation not in (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH):
        return False
    return transform.parameter is not None and len(predicate.values[0]) > transform.parameter


def _orders(kind: Type, values: tuple[Any, ...]) -> list[_Order]:
    assert isinstance(kind, PrimitiveType)  # nothing else can be compared
    match kind.kind:
        case "int" | "long" | "date" | "time":
            return [_Order(_number, unchanged)]
        case "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
            return [_Order(_number_reader(UNITS_A_DAY[kind.kind]), unchanged)]
        case "string":
            # As bytes, which have the order of code points, as writers may cut a bound inside a character.
            return [_Order(unchanged, str.encode)]
        case "binary" | "fixed":
            return [_Order(unchanged, unchanged)]
        case "decimal":
            scale = kind.scale or 0
            return [_Order(_unscaled_number, lambda value: unscaled(value, scale))]
        case "float" | "double":
            native = _Order(_floating, unchanged)
            # Comparisons with zero are made in both orders of -0.0 and 0.0; others do not depend on it.
            return [native, _Order(_total_floating, order_key)] if 0.0 in values else [native]
        case "uuid":
            return [_Order(_uuid, lambda value: value.bytes)]
        case "boolean":
            return [_Order(_boolean, unchanged)]
    raise AssertionError(f"binding lets no {kind} be compared")


def _orders_of_transformed(term: BoundTransform) -> list[_Order]:
    source = term.reference.type
    assert isinstance(source, PrimitiveType)  # said by `applies_to`
    transformed = transform_function(term.transform, source)
    (order,) = _orders(term.type, ())

    def of_bound(content: bytes) -> Any:
        try:
            return order.of_value(transformed(from_bytes(source, content)))
        except ValueError:
            return None

    return [_Order(of_bound, order.of_value)]


def _unless_wrapped(predicate: BoundPredicate, test: RangeTest) -> RangeTest:
    """Return a test that any value may pass where truncation may have wrapped values around."""
    term = predicate.term
    if not isinstance(term, BoundTransform):
        return test
    lowest = lowest_unwrapped(term.transform, term.reference.type)
    if lowest is None:
        return test

    def guarded(lower: Bound, upper: Bound) -> bool:
        number = None if lower is None else _number(lower)
        return number is None or number < lowest or test(lower, upper)

    return guarded


def _between_uuids(predicate: BoundPredicate, test: RangeTest) -> RangeTest:
    """Return a test of all uuids between two bounds, in either order that writers use."""
    kind = predicate.term.type
    if not isinstance(kind, PrimitiveType) or kind.kind != "uuid":
        return test

    return lambda lower, upper: test(*enclosing_bounds(lower, upper))


def _number_reader(factor: int = 1) -> Callable[[bytes], int | None]:
    """Return a reader of numbers; those from before a column was widened are multiplied."""

    def read(content: bytes) -> int | None:
        if len(content) == 8:
            number: int = _LONG(content)[0]
            return number
        return _INT(content)[0] * factor if len(content) == 4 else None

    return read


_number = _number_reader()


def _unscaled_number(content: bytes) -> int | None:
    return int.from_bytes(content, "big", signed=True) if content else None


def _floating(content: bytes) -> float | None:
    number: float
    if len(content) == 8:
        number = _DOUBLE(content)[0]
    elif len(content) == 4:
        number = _FLOAT(content)[0]
    else:
        return None
    # NaN is not a bound: a writer that has it did not compare the other values.
    return None if math.isnan(number) else number


def _total_floating(content: bytes) -> Any:
    number = _floating(content)
    return None if number is None else order_key(number)


def _uuid(content: bytes) -> bytes | None:
    return bytes(content) if len(content) == 16 else None


def _boolean(content: bytes) -> bool | None:
    return content != b"\x00" if len(content) == 1 else None


def _may_match(operation: Operation, keys: tuple[Any, ...], read: Callable[[bytes], Any]) -> RangeTest:
    key, *_ = keys

    def less_or_equal(lower: Bound, _: Bound) -> bool:
        return lower is None or (least := read(lower)) is None or least <= key

    def greater_or_equal(_: Bound, upper: Bound) -> bool:
        return upper is None or (most := read(upper)) is None or most >= key

    def apart(lower: Bound, upper: Bound) -> bool:
        return not _is_single(keys, lower, upper, read)

    tests: dict[Operation, RangeTest] = {
        Operation.LT: lambda lower, _: lower is None or (least := read(lower)) is None or least < key,
        Operation.LT_EQ: less_or_equal,
        Operation.GT: lambda _, upper: upper is None or (most := read(upper)) is None or most > key,
        Operation.GT_EQ: greater_or_equal,
        Operation.EQ: lambda lower, upper: less_or_equal(lower, upper) and greater_or_equal(lower, upper),
        Operation.NOT_EQ: apart,
        Operation.IN: lambda lower, upper: _holds_any(keys, lower, upper, read),
        Operation.NOT_IN: apart,
        Operation.STARTS_WITH: lambda lower, upper: not _is_beside_prefix(key, lower, upper),
        Operation.NOT_STARTS_WITH: lambda lower, upper: not _all_prefixed(key, lower, upper),
    }
    return tests[operation]  # unary operations compare nothing


def _holds_any(keys: tuple[Any, ...], lower: Bound, upper: Bound, read: Callable[[bytes], Any]) -> bool:
    least = None if lower is None else read(lower)
    first = 0 if least is None else bisect_left(keys, least)
    if first == len(keys):
        return False
    most = None if upper is None else read(upper)
    return most is None or bool(keys[first] <= most)


def _is_single(keys: tuple[Any, ...], lower: Bound, upper: Bound, read: Callable[[bytes], Any]) -> bool:
    """Return whether there is only one value between the bounds, and it is one of the keys."""
    if lower is None or upper is None:
        return False
    least = read(lower)
    if least is None or least != read(upper):
        return False
    place = bisect_left(keys, least)
    return place < len(keys) and bool(keys[place] == least)


def _is_beside_prefix(prefix: bytes, lower: Bound, upper: Bound) -> bool:
    size = len(prefix)
    return (lower is not None and lower[:size] > prefix) or (upper is not None and upper[:size] < prefix)


def _all_prefixed(prefix: bytes, lower: Bound, upper: Bound) -> bool:
    return lower is not None and upper is not None and lower.startswith(prefix) and upper.startswith(prefix)
