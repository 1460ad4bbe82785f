"""Calls that tables and views have alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Generic, Literal, TypeVar

from app.client.answers import IdentifierPage, ServerAnswer, Unregistered
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import (
    JsonObject,
    change_body,
    given,
    identifier_body,
    named_path,
    namespace_path,
    path_piece,
)
from app.engine.model.identifiers import Namespace, TableIdentifier

A = TypeVar("A", bound=ServerAnswer)


class NamedCalls(CatalogCalls, Generic[A]):
    """The tables or the views of one warehouse."""

    kind: ClassVar[Literal["tables", "views"]]
    answer: type[A]
    register_endpoint: ClassVar[str]

    def list(self, namespace: Namespace) -> Iterator[TableIdentifier]:
        """Yield the names in a namespace."""
        path = f"{self._root}/{namespace_path(namespace)}/{self.kind}"
        for page in self._calls.read_pages(IdentifierPage, path):
            yield from page.items()

    def load(self, identifier: TableIdentifier) -> A:
        """Return a table or view."""
        return self._calls.read(self.answer, "GET", self._path(identifier))

    def exists(self, identifier: TableIdentifier) -> bool:
        """Return whether there is one of this name."""
        return self._calls.exists(self._path(identifier))

    def commit(
        self,
        identifier: TableIdentifier,
        updates: Sequence[JsonObject],
        requirements: Sequence[JsonObject] = (),
    ) -> A:
        """Change a table or view by one commit."""
        body = change_body(identifier, updates, requirements)
        return self._calls.read(self.answer, "POST", self._path(identifier), body=body)

    def register(
        self,
        identifier: TableIdentifier,
        metadata_location: str,
        *,
        overwrite: bool = False,
        read_only: bool = False,
        expected: str | None = None,
    ) -> A:
        """Make an existing metadata file a table or view of the catalog.

        Args:
            identifier: its name here.
            metadata_location: the file.
            overwrite: also if the name is in use.
            read_only: it stays another catalog's: Icetower's own, beyond the protocol.
            expected: where the metadata must be of what is overwritten: Icetower's own as well.
        """
        body = {
            "metadata-location": metadata_location,
            "overwrite": overwrite or None,
            "read-only": read_only or None,
            "expected-metadata-location": expected,
        }
        return self._add(self.register_endpoint, identifier, given(body))

    def rename(self, source: TableIdentifier, destination: TableIdentifier) -> None:
        """Give a table or view another name, in the same namespace or another."""
        body = {"source": identifier_body(source), "destination": identifier_body(destination)}
        self._calls.send("POST", f"{self._root}/{self.kind}/rename", body=body)

    def drop(self, identifier: TableIdentifier, *, once: bool = False) -> None:
        """Drop a table or view; its files stay.

        Args:
            identifier: the table or view.
            once: not to be asked for again if the answer is lost: another one may have the name by then.
        """
        self._calls.send("DELETE", self._path(identifier), once=once)

    def unregister(self, identifier: TableIdentifier, *, expected: str | None = None) -> A:
        """Take a table or view out of the catalog, touch no file, and return where its metadata is.

        Args:
            identifier: the table or view.
            expected: where its metadata must be, else it stays: Icetower's own, beyond the protocol.
        """
        # Percent-encoded: headers are no place for every character.
        headers = {} if expected is None else {"X-Icetower-Expected-Metadata-Location": path_piece(expected)}
        return self._calls.read(self.answer, "POST", f"{self._path(identifier)}/unregister", headers=headers)

    def unregister_unread(self, identifier: TableIdentifier) -> str:
        """Take a table or view out of the catalog, readable or not; return where its metadata is."""
        path, headers = f"{self._path(identifier)}/unregister", {"X-Icetower-Unread": "true"}
        return self._calls.read(Unregistered, "POST", path, headers=headers).metadata_location

    def _add(self, endpoint: str, identifier: TableIdentifier, body: JsonObject) -> A:
        """Post a new table or view to its namespace."""
        path = f"{self._root}/{namespace_path(identifier.namespace)}/{endpoint}"
        return self._calls.read(self.answer, "POST", path, body={"name": identifier.name, **body})

    def _path(self, identifier: TableIdentifier) -> str:
        return f"{self._root}/{named_path(identifier, self.kind)}"
