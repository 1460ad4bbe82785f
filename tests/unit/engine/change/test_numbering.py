"""Numbered items: their next id, equal ones, and how little is compared to find them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from app.engine.change.numbering import MOST_OF_A_KIND, NumberedItems, Numbering
from app.errors import InvalidUpdate


@dataclass
class Comparisons:
    """How many items have been compared with others."""

    count: int = 0


@dataclass(frozen=True)
class Meaning:
    """What an item says; it counts how often that is compared."""

    text: str
    comparisons: Comparisons = field(default_factory=Comparisons)

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        self.comparisons.count += 1
        return isinstance(other, Meaning) and self.text == other.text


@dataclass(frozen=True)
class Item:
    id: int
    meaning: Meaning


def numbered(*ids: int, first: int = 0) -> NumberedItems[Item]:
    numbering: Numbering[Item] = Numbering("schema", first, lambda item: item.id, lambda item: item.meaning)
    return NumberedItems(numbering, [Item(item_id, Meaning(str(item_id))) for item_id in ids])


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
    assert numbered(*taken, first=first).next_id() == expected


def test_there_is_no_id_after_the_last() -> None:
    with pytest.raises(
        InvalidUpdate, match=r"^Cannot number another schema: 2147483647 is the last id there is$"
    ):
        numbered(2**31 - 1).next_id()


def test_there_can_be_only_so_many() -> None:
    assert numbered(*range(MOST_OF_A_KIND - 1)).next_id() == MOST_OF_A_KIND - 1

    with pytest.raises(InvalidUpdate, match=r"^Cannot add another schema: there are 10000"):
        numbered(*range(MOST_OF_A_KIND)).next_id()


def test_id_of_what_was_removed_is_free_again() -> None:
    items = numbered(1, 4, 3)
    assert items.next_id() == 5

    assert items.remove(4) == Item(4, Meaning("4"))

    assert items.next_id() == 4
    assert items.remove(4) is None
    items.add(Item(4, Meaning("new")))
    assert items.next_id() == 5
    assert [item.id for item in items] == [1, 3, 4]


def test_id_that_is_taken_is_refused() -> None:
    with pytest.raises(InvalidUpdate, match=r"^Two schemas have the same id: 4$"):
        numbered(4).add(Item(4, Meaning("another")))


def test_first_of_several_equal_ones_is_found_and_the_next_when_it_is_gone() -> None:
    items = numbered(1, 2)
    items.add(Item(7, Meaning("1")))
    wanted = Item(99, Meaning("1"))

    found = [items.find_equal(wanted)]
    for item_id in (1, 7):
        items.remove(item_id)
        found.append(items.find_equal(wanted))

    assert [item and item.id for item in found] == [1, 7, None]


def test_items_are_not_compared_with_all_others() -> None:
    comparisons = Comparisons()
    items = numbered()

    for position in range(2_000):
        wanted = Item(-1, Meaning(str(position), comparisons))
        assert items.find_equal(wanted) is None
        items.add(replace(wanted, id=items.next_id()))

    # Each with itself at most, when it is added; and now and then with one that has a part of its hash.
    assert comparisons.count < 4_000
