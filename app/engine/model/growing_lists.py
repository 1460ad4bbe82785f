"""Lists of a document that grow: most of their JSON is in that of the state before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import is_

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

    def __init__(self, known: KnownJson) -> None:
        self._known = known
        self._pieces: list[bytes | memoryview] = [b"{"]
        self._size = 1
        self._lists: dict[str, KnownList] = {}

    def add_fields(self, written: bytes) -> None:
        """Add the fields of a JSON object."""
        if written != b"{}":
            self._separate()
            self._add(memoryview(written)[1:-1])

    def add_list(self, field: str, name: str, items: tuple[Document, ...]) -> None:
        """Add a list; `field` is its name in Python, `name` in JSON."""
        self._separate()
        self._add(b'"%s":[' % name.encode())
        begins_at, fresh = self._size, items
        known = self._known.lists.get(field)
        if known is not None and known.items and _begins_with(items, known.items):
            self._add(memoryview(self._known.document)[known.begins_at : known.ends_at])
            fresh = items[len(known.items) :]
            if fresh:
                self._add(b",")
        self._add(b",".join(item.to_json() for item in fresh))
        self._lists[field] = KnownList(items, begins_at, self._size)
        self._add(b"]")

    def finish(self) -> KnownJson:
        """Return the whole."""
        self._add(b"}")
        return KnownJson(b"".join(self._pieces), self._lists)

    def _separate(self) -> None:
        if self._size > 1:
            self._add(b",")

    def _add(self, piece: bytes | memoryview) -> None:
        self._pieces.append(piece)
        self._size += len(piece)


def _begins_with(items: tuple[Document, ...], earlier: tuple[Document, ...]) -> bool:
    # By identity: to compare what is in them would take as long as to write them out.
    return len(earlier) <= len(items) and all(map(is_, earlier, items))
