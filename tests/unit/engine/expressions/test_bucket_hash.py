from __future__ import annotations

from uuid import UUID

import pytest

from app.engine.expressions.bucket_hash import hash_bytes, hash_long


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", 0),
        (b"iceberg", 1_210_000_089),
        (b"\x00\x01\x02\x03", -188_683_207),
        (UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, 1_488_055_340),
        ((1420).to_bytes(2, "big"), -500_754_589),  # the decimal 14.20
    ],
)
def test_bytes_hash_as_the_specification_says(content: bytes, expected: int) -> None:
    assert hash_bytes(content) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (34, 2_017_239_379),
        (17_486, -653_330_422),
        (81_068_000_000, -662_762_989),
        (1_510_871_468_000_000, -2_047_944_441),
        (1_510_871_468_000_001, -1_207_196_810),
    ],
)
def test_longs_hash_as_the_specification_says(number: int, expected: int) -> None:
    assert hash_long(number) == expected
