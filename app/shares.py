"""Shares: how warehouses and tables keep places free for those that come later."""

from __future__ import annotations

from collections.abc import Hashable
from contextvars import ContextVar
from typing import Final


class Shares:
    """Places that parties take; none may hold more than are left free.

    One party alone gets half of them, two get a third each, and so on: however many hold as much as they can, the
    next one finds a place.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._held: dict[Hashable, int] = {}

    def __bool__(self) -> bool:
        return bool(self._held)

    def has_room(self, party: Hashable) -> bool:
        """Return whether a party may take one more place."""
        return self._held.get(party, 0) < self._free

    def take(self, party: Hashable) -> None:
        """Take a place."""
        self._free -= 1
        self._held[party] = self._held.get(party, 0) + 1

    def give_back(self, party: Hashable) -> None:
        """Give a place back."""
        self._free += 1
        self._held[party] -= 1
        if not self._held[party]:
            del self._held[party]


Group = tuple[str, str]
"""A warehouse, and what in it the work is for."""
group_at_work: Final[ContextVar[Group]] = ContextVar("group_at_work", default=("", ""))
"""Whom the work of this context is for; by default, for the server itself."""


class TableShares:
    """Places that warehouses share, and in each its tables.

    A warehouse may hold as many as are left free, a table as many as are left free of its warehouse's half.
    """

    def __init__(self, places: int) -> None:
        self._of_one = max(1, places // 2)
        self._warehouses = Shares(places)
        self._tables: dict[str, Shares] = {}

    def warehouse_has_room(self, warehouse: str) -> bool:
        """Return whether a warehouse may take one more place, whatever its tables may."""
        return self._warehouses.has_room(warehouse)

    def has_room(self, group: Group) -> bool:
        """Return whether a table may take one more place."""
        warehouse, table = group
        if not self._warehouses.has_room(warehouse):
            return False
        tables = self._tables.get(warehouse)
        return tables is None or tables.has_room(table)

    def take(self, group: Group) -> None:
        """Take a place."""
        warehouse, table = group
        self._warehouses.take(warehouse)
        if warehouse not in self._tables:
            self._tables[warehouse] = Shares(self._of_one)
        self._tables[warehouse].take(table)

    def give_back(self, group: Group) -> None:
        """Give a place back."""
        warehouse, table = group
        self._warehouses.give_back(warehouse)
        self._tables[warehouse].give_back(table)
        if not self._tables[warehouse]:
            del self._tables[warehouse]
