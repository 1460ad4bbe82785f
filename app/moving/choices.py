"""Choices: what of a source is moved, and what names and paths it has then."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.moving.sources import Entry

Names = tuple[str, ...]
"""Levels of a namespace, and perhaps the name of a table."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to move, and what becomes of its name."""

    identifiers: frozenset[TableIdentifier] = frozenset()
    """Only these; empty for all."""
    pattern: re.Pattern[str] | None = None
    """Only those whose whole name, joined by dots, it matches."""
    renamed: Mapping[Names, Names] = field(default_factory=dict)
    """New beginnings of names; the longest that fits counts."""

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return not self.identifiers and self.pattern is None

    def has(self, entry: Entry) -> bool:
        """Say whether an entry is to be moved."""
        identifier = entry.identifier
        if self.identifiers and identifier not in self.identifiers:
            return False
        whole = ".".join((*identifier.namespace.levels, identifier.name))
        return self.pattern is None or self.pattern.fullmatch(whole) is not None

    def namespace_of(self, namespace: Namespace) -> Namespace:
        """Return what a namespace is called where it is moved to."""
        return Namespace(self._renamed(namespace.levels))

    def name_of(self, identifier: TableIdentifier) -> TableIdentifier:
        """Return what a table or view is called where it is moved to."""
        *levels, name = self._renamed((*identifier.namespace.levels, identifier.name))
        return TableIdentifier(Namespace(tuple(levels)), name)

    def _renamed(self, names: Names) -> Names:
        for length in range(len(names), 0, -1):
            start = self.renamed.get(names[:length])
            if start is not None:
                return start + names[length:]
        return names


@dataclass(frozen=True, slots=True)
class PathMap:
    """Beginnings of locations that have another spelling where the tables are moved to."""

    pairs: Sequence[tuple[str, str]] = ()

    def apply(self, location: str) -> str:
        """Return a location as it is spelled there; the longest beginning counts, of whole folders."""
        for start, other in sorted(self.pairs, key=lambda pair: -len(pair[0])):
            below = location.removeprefix(start)
            if location.startswith(start) and (start.endswith("/") or below.startswith("/") or not below):
                return other + below
        return location
