"""Calls that tables and views have alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Generic, Literal, TypeVar

from app.client.answers import IdentifierPage, ServerAnswer
from app.client.http_calls import CatalogCalls
from app.client.request_parts import JsonObject, change_body, identifier_body, named_path, namespace_path
from app.engine.model.identifiers import Namespace, TableIdentifier

A = TypeVar("A", bound=ServerAnswer)


class NamedCalls(CatalogCalls, Generic[A]):
    """The tables or the views of one warehouse."""

    kind: ClassVar[Literal["tables", "views"]]
    answer: type[A]

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

    def rename(self, source: TableIdentifier, destination: TableIdentifier) -> None:
        """Give a table or view another name, in the same namespace or another."""
        body = {"source": identifier_body(source), "destination": identifier_body(destination)}
        self._calls.send("POST", f"{self._root}/{self.kind}/rename", body=body)

    def drop(self, identifier: TableIdentifier) -> None:
        """Drop a table or view; its files stay."""
        self._calls.send("DELETE", self._path(identifier))

    def _add(self, endpoint: str, identifier: TableIdentifier, body: JsonObject) -> A:
        """Post a new table or view to its namespace."""
        path = f"{self._root}/{namespace_path(identifier.namespace)}/{endpoint}"
        return self._calls.read(self.answer, "POST", path, body={"name": identifier.name, **body})

    def _path(self, identifier: TableIdentifier) -> str:
        return f"{self._root}/{named_path(identifier, self.kind)}"
