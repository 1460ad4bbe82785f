"""The next id: one more than the highest, as long as there is one."""

from __future__ import annotations

import pytest

from app.engine.change.numbering import MOST_OF_A_KIND, next_id
from app.errors import InvalidUpdate


@pytest.mark.parametrize(
    ("taken", "first", "expected"),
    [
        ([], 0, 0),
        ([], 1, 1),
        ([0], 0, 1),
        ([5, 2], 0, 6),
        ([-7], 0, 0),
        ([0], 1, 1),
        ([2**31 - 2], 0, 2**31 - 1),
    ],
)
def test_id_is_one_more_than_the_highest(taken: list[int], first: int, expected: int) -> None:
    assert next_id(iter(taken), first, "schema") == expected


def test_there_is_no_id_after_the_last() -> None:
    with pytest.raises(
        InvalidUpdate, match=r"^Cannot number another schema: 2147483647 is the last id there is$"
    ):
        next_id([2**31 - 1], 0, "schema")


def test_there_can_be_only_so_many() -> None:
    assert next_id(range(MOST_OF_A_KIND - 1), 0, "schema") == MOST_OF_A_KIND - 1

    with pytest.raises(InvalidUpdate, match=r"^Cannot add another schema: there are 10000"):
        next_id(range(MOST_OF_A_KIND), 0, "schema")
