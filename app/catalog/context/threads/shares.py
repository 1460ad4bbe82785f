"""Shares: how places are kept free for those that come later."""

from __future__ import annotations

from collections.abc import Hashable


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
