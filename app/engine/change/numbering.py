"""Ids of schemas, specs, sort orders and view versions: the next one, and the last added."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.engine.model.document import MAX_INT
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.sort_order import FIRST_ORDER_ID, SortOrder
from app.engine.model.view_metadata import ViewVersion
from app.errors import InvalidUpdate

Id = TypeVar("Id", bound=int)
Item = TypeVar("Item")

LAST_ADDED = -1
"""In place of an id: the schema, spec, order or view version that this request added last."""
MOST_OF_A_KIND = 10_000
"""How many schemas, specs, orders or versions there can be: no table needs more."""


FREE_CHOICE = 2**30
"""Clients may give ids of columns, partition fields and view versions up to here, whatever ids there are.

It leaves half of all ids: no commit takes the last one, after which the table or view could have no other. Beyond are
only tables and views of other catalogs, where the next ids go on.
"""


def check_chosen_id(chosen: int, last: int, count: int, what: str) -> None:
    """Check the highest id that a client has given to new items.

    Args:
        chosen: the id.
        last: the highest id so far.
        count: how many items there are at most that are new: counted on from the last id they may be beyond.
        what: what it is an id of.

    Raises:
        InvalidUpdate: it leaves too few ids for others.
    """
    highest = max(FREE_CHOICE, last + count)
    if chosen > highest:
        raise InvalidUpdate(
            f"Cannot add {what} with id {chosen}: it would leave too few ids for others; the highest allowed is "
            f"{highest}"
        )


def named_id(named: Id, last_added: Id | None, otherwise: str) -> Id:
    """Return the id that an update names, which may be `LAST_ADDED`.

    Raises:
        InvalidUpdate: nothing was added; `otherwise` is the message.
    """
    if named != LAST_ADDED:
        return named
    if last_added is None:
        raise InvalidUpdate(otherwise)
    return last_added


@dataclass(frozen=True, slots=True)
class Numbering(Generic[Item]):
    """How items of one kind are numbered and compared."""

    what: str
    first_id: int
    id_of: Callable[[Item], int]
    meaning_of: Callable[[Item], Hashable]
    """Equal for items that differ at most in their ids."""


class NumberedItems(Generic[Item]):
    """A draft's schemas, specs, sort orders or view versions, in their order.

    A request may name thousands of them: each step takes the same time, however many there are.
    """

    def __init__(self, numbering: Numbering[Item], items: Iterable[Item] = ()) -> None:
        self._numbering = numbering
        self._items = {numbering.id_of(item): item for item in items}
        # Made when first needed: most commits add nothing.
        self._equal: dict[Hashable, dict[int, None]] | None = None
        self._highest_first: list[int] | None = None

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item_id: object) -> bool:
        """Return whether an item has this id."""
        return item_id in self._items

    @property
    def ids(self) -> frozenset[int]:
        """The ids of all items."""
        return frozenset(self._items)

    @property
    def highest_id(self) -> int | None:
        """The highest id; None without items."""
        if self._highest_first is None:
            self._highest_first = [-item_id for item_id in self._items]
            heapq.heapify(self._highest_first)
        while self._highest_first and -self._highest_first[0] not in self._items:
            heapq.heappop(self._highest_first)  # it was removed
        return -self._highest_first[0] if self._highest_first else None

    def find(self, item_id: int | None) -> Item | None:
        """Return the item with an id; None if there is none."""
        return None if item_id is None else self._items.get(item_id)

    def find_equal(self, wanted: Item) -> Item | None:
        """Return the first item that is equal but for its id; None if there is none."""
        if self._equal is None:
            self._equal = {}
            for item_id, item in self._items.items():
                self._equal.setdefault(self._numbering.meaning_of(item), {})[item_id] = None
        equal = self._equal.get(self._numbering.meaning_of(wanted))
        return self._items[next(iter(equal))] if equal else None

    def next_id(self) -> int:
        """Return one more than the highest id, and at least the first of this kind.

        Raises:
            InvalidUpdate: the highest id is the last one possible, or there are too many.
        """
        what, first = self._numbering.what, self._numbering.first_id
        if len(self) >= MOST_OF_A_KIND:
            raise InvalidUpdate(
                f"Cannot add another {what}: there are {len(self)}, which is the most there can be"
            )
        highest = self.highest_id
        if highest is None:
            return first
        if highest >= MAX_INT:
            raise InvalidUpdate(f"Cannot number another {what}: {highest} is the last id there is")
        return max(highest + 1, first)

    def add(self, item: Item) -> Item:
        """Put an item behind all others, and return it.

        Raises:
            InvalidUpdate: another one has its id.
        """
        item_id = self._numbering.id_of(item)
        if item_id in self._items:
            raise InvalidUpdate(f"Two {self._numbering.what}s have the same id: {item_id}")
        self._items[item_id] = item
        if self._equal is not None:
            self._equal.setdefault(self._numbering.meaning_of(item), {})[item_id] = None
        if self._highest_first is not None:
            heapq.heappush(self._highest_first, -item_id)
        return item

    def remove(self, item_id: int) -> Item | None:
        """Take the item with an id out, and return it; None if there is none."""
        item = self._items.pop(item_id, None)
        if item is not None and self._equal is not None:
            meaning = self._numbering.meaning_of(item)
            del self._equal[meaning][item_id]
            if not self._equal[meaning]:
                del self._equal[meaning]
        return item


_SCHEMAS: Numbering[Schema] = Numbering("schema", 0, lambda item: item.schema_id, lambda item: item.meaning)
_SPECS: Numbering[PartitionSpec] = Numbering(
    "partition spec", 0, lambda item: item.spec_id, lambda item: item.meaning
)
_ORDERS: Numbering[SortOrder] = Numbering(
    "sort order", FIRST_ORDER_ID, lambda item: item.order_id, lambda item: item.meaning
)
_VERSIONS: Numbering[ViewVersion] = Numbering(
    "view version", 1, lambda item: item.version_id, lambda item: item.meaning
)


def numbered_schemas(items: Iterable[Schema] = ()) -> NumberedItems[Schema]:
    """Return schemas as a draft has them."""
    return NumberedItems(_SCHEMAS, items)


def numbered_specs(items: Iterable[PartitionSpec] = ()) -> NumberedItems[PartitionSpec]:
    """Return partition specs as a draft has them."""
    return NumberedItems(_SPECS, items)


def numbered_orders(items: Iterable[SortOrder] = ()) -> NumberedItems[SortOrder]:
    """Return sort orders as a draft has them."""
    return NumberedItems(_ORDERS, items)


def numbered_versions(items: Iterable[ViewVersion] = ()) -> NumberedItems[ViewVersion]:
    """Return a view's versions as a draft has them."""
    return NumberedItems(_VERSIONS, items)
