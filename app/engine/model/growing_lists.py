"""Lists of a document that keep most of their items, and so most of their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import is_
from typing import Any

from app.engine.model.document import Document


@dataclass(frozen=True, slots=True)
class KnownList:
    """A list that a document has."""

    items: tuple[Document, ...]
    begins_at: int
    """Where its JSON begins in the document, behind the bracket that opens it."""
    ends_at: int


@dataclass(frozen=True, slots=True)
class KnownJson:
    """A document, and where its growing lists are in it."""

    document: bytes
    lists: Mapping[str, KnownList]


NOTHING_KNOWN = KnownJson(b"", {})


class GrowingJson:
    """JSON that is put together from its fields, in order; what is known is copied."""

    def __init__(self, first: bytes, known: KnownJson) -> None:
        """Begin with the JSON of an object that has the first fields, one at least."""
        self._known = known
        self._pieces: list[bytes] = [first[:-1]]
        self._size = len(first) - 1
        self._lists: dict[str, KnownList] = {}

    def add_fields(self, written: bytes) -> None:
        """Add the fields of a JSON object."""
        if written != b"{}":
            self._add(b"," + written[1:-1])

    def add_list(self, name: str, items: tuple[Document, ...]) -> None:
        """Add a list under its name in JSON."""
        self._add(b',"%s":[' % name.encode())
        begins_at, fresh = self._size, items
        known = self._known.lists.get(name)
        gone = None if known is None else count_gone(items, known.items)
        if known is not None and gone is not None and gone < len(items):
            skipped = sum(len(item.to_json()) + len(b",") for item in known.items[:gone])
            self._add(self._known.document[known.begins_at + skipped : known.ends_at])
            fresh = items[len(known.items) - gone :]
            if fresh:
                self._add(b",")
        if fresh:
            self._add(b",".join([item.to_json() for item in fresh]))
        self._lists[name] = KnownList(items, begins_at, self._size)
        self._add(b"]")

    def finish(self) -> KnownJson:
        """Return the whole."""
        self._add(b"}")
        return KnownJson(b"".join(self._pieces), self._lists)

    def _add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)


def count_gone(items: tuple[Any, ...], earlier: tuple[Any, ...]) -> int | None:
    """Return how many of the earlier items are gone from the front.

    None if the items do not begin with all the others.
    """
    # By identity: to compare what is in them would take as long as to write them out.
    if not items or not earlier:
        return None
    first, gone = items[0], 0
    if first is not earlier[0]:
        gone = next((at for at, item in enumerate(earlier) if item is first), len(earlier))
    rest = earlier[gone:]
    return gone if rest and len(rest) <= len(items) and all(map(is_, rest, items)) else None
