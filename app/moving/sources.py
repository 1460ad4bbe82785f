"""Sources: catalogs that tables and views are moved out of, and what each of them can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from app.engine.model.identifiers import Namespace, TableIdentifier

EntryKind = Literal["table", "view"]


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A table or view of a source."""

    identifier: TableIdentifier
    kind: EntryKind = "table"


class SourceFailed(Exception):
    """A source cannot be read, or does not do what it is asked; `str(failure)` is one sentence."""


class SourceMoved(SourceFailed):
    """An entry is not where it was seen: it was left as it is."""


class Source(Protocol):
    """A catalog that tables are moved out of; safe to use from several threads.

    Every method raises `SourceFailed`, or `CallFailed` if it is behind a REST API.
    """

    @property
    def name(self) -> str:
        """What reports call it; without passwords."""
        ...

    @property
    def drop_obstacle(self) -> str | None:
        """Why its entries cannot be dropped with their files left in place; None if they can."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What people have to know before they take tables from it."""
        ...

    @property
    def shows_default_locations(self) -> bool:
        """Whether namespaces may show a `location` without one having been set."""
        ...

    @property
    def has_entries(self) -> bool:
        """Whether names are noted there; if not, files are all there is to drop."""
        ...

    def namespaces(self) -> Iterator[Namespace]:
        """Yield all namespaces, also inner ones."""
        ...

    def properties(self, namespace: Namespace) -> Mapping[str, str]:
        """Return the properties of a namespace; none if it has none."""
        ...

    def entries(self, namespace: Namespace) -> Iterator[Entry]:
        """Yield the tables and views in a namespace."""
        ...

    def find_location(self, entry: Entry) -> str | None:
        """Return where the metadata file of an entry is now; None if the entry is not there."""
        ...

    def find_uuid(self, entry: Entry) -> str | None:
        """Return the uuid of a table or view; None where the source does not say it."""
        ...

    def identity(self, entry: Entry, location: str) -> str | None:
        """Return an id that no other entry of any catalog has; None where it is unknown."""
        ...

    def drop(self, entry: Entry, location: str) -> str | None:
        """Drop an entry and leave its files; return where its metadata was, if the source says so.

        Raises:
            SourceMoved: its metadata is not at this location.
        """
        ...

    def mark(self, entry: Entry, properties: Mapping[str, str]) -> bool:
        """Set properties of an entry by one commit, unless it has them; False if that cannot be."""
        ...
