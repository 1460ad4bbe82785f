"""Items of answers of which it is counted how many a command keeps at a time."""

from __future__ import annotations

import weakref
from typing import Any


class _Item(dict[str, Any]):
    """A dictionary whose end is seen."""


class PassingItems:
    """Makes items, and counts those that are there at the same time."""

    def __init__(self) -> None:
        self._made: list[weakref.ref[_Item]] = []
        self.most = 0

    def item(self, **facts: Any) -> dict[str, Any]:
        """Return an item; its names are written with underscores here."""
        made = _Item({name.replace("_", "-"): value for name, value in facts.items()})
        self._made = [seen for seen in self._made if seen() is not None]
        self._made.append(weakref.ref(made))
        self.most = max(self.most, len(self._made))
        return made
