"""Columns of bounds: which positions a range leaves, and what making them does not cost."""

from __future__ import annotations

import math
import struct
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from app.engine.model.data_types.types import parse_primitive
from app.engine.model.data_types.values import to_bytes
from app.engine.model.files.entry_filters import ValueRange
from app.engine.model.ids import FieldId
from app.formats.manifests.bound_columns import bound_columns

ROOT = Path(__file__).parents[3]
FIELD = FieldId(1)


def left(
    kind: str, bounds: list[tuple[bytes | None, bytes | None]], lowest: Any, highest: Any
) -> list[int] | None:
    """Return the positions that a range leaves; None where the type has no columns."""
    type_ = parse_primitive(kind)
    columns = bound_columns(type_, [lower for lower, _ in bounds], [upper for _, upper in bounds])
    return (
        None if columns is None else sorted(columns.positions_in(ValueRange(FIELD, type_, lowest, highest)))
    )


def between(kind: str, *pairs: tuple[Any, Any]) -> list[tuple[bytes | None, bytes | None]]:
    type_ = parse_primitive(kind)
    return [(to_bytes(type_, lower), to_bytes(type_, upper)) for lower, upper in pairs]


@pytest.mark.parametrize(
    ("kind", "pairs", "lowest", "highest", "expected"),
    [
        ("int", [(0, 4), (5, 9), (10, 14)], 5, 10, [1, 2]),
        ("long", [(-(2**63), -1), (0, 2**63 - 1)], None, -1, [0]),
        ("long", [(0, 4), (5, 9)], None, None, [0, 1]),
        ("double", [(-1.5, -0.0), (0.5, math.inf)], 0.0, 0.25, [0]),
        ("string", [("a", "b"), ("é", "é"), ("\U0001f600", "\U0001f600")], "ç", None, [1, 2]),
        (
            "decimal(38, 2)",
            [(Decimal("-9.99"), Decimal(0)), (Decimal(1), Decimal("1e35"))],
            Decimal("0.01"),
            None,
            [1],
        ),
        ("binary", [(b"\x00", b"\x7f"), (b"\x80", b"\xff")], b"\x80", b"\x80", [1]),
    ],
)
def test_a_range_leaves_what_may_be_in_it(
    kind: str, pairs: list[tuple[Any, Any]], lowest: Any, highest: Any, expected: list[int]
) -> None:
    assert left(kind, between(kind, *pairs), lowest, highest) == expected


@pytest.mark.parametrize("missing", [None, b"", b"\x01\x02\x03", struct.pack("<d", math.nan)])
def test_bounds_that_are_missing_or_make_no_sense_rule_nothing_out(missing: bytes | None) -> None:
    (known,) = between("double", (1.0, 2.0))

    assert left("double", [(missing, known[1]), (known[0], missing), known], 5.0, 9.0) == [1]
    assert left("double", [(missing, known[1]), (known[0], missing), known], 0.0, 0.5) == [0]


def test_bounds_from_before_a_promotion() -> None:
    assert left("long", between("int", (1, 2), (8, 9)), 5, None) == [1]
    assert left(
        "timestamp",
        between("date", (1, 1), (2, 2)),
        None,
        86_400_000_000,
    ) == [0]


@pytest.mark.parametrize(
    ("kind", "limit"), [("int", 2**31), ("string", "\ud800"), ("decimal(4, 2)", Decimal("1.234"))]
)
def test_a_limit_that_the_type_cannot_have_rules_nothing_out(kind: str, limit: Any) -> None:
    assert left(kind, [(None, None)], limit, limit) == [0]


def test_a_limit_between_two_floats() -> None:
    above = math.nextafter(0.5, 1)  # in 64 bits; the float of 32 bits nearest to it is 0.5

    assert left("float", between("float", (0.0, 0.5), (0.5, 1.0)), above, None) == [1]


def test_types_whose_bounds_are_not_compared_so() -> None:
    assert left("boolean", [(b"\x00", b"\x01")], True, True) is None


def test_pandas_is_left_alone() -> None:
    """Arrow loads it to convert Python's values, which takes longer than all the rest of a scan's planning."""
    program = f"""
import sys
from {__name__} import left, between
assert left("double", between("double", (1.0, 2.0)), 0.5, 1.5) == [0]
assert left("string", between("string", ("a", "b")), "a", "c") == [0]
assert left("decimal(9, 2)", between("decimal(9, 2)", (1, 2)), 0, 1) == [0]
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=ROOT).returncode == 0
