"""Calls about views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from app.client.answers import IdentifierPage, JsonObject, LoadedView
from app.client.http_calls import HttpCalls
from app.client.names_in_urls import namespace_path, view_path
from app.client.tables import identifier_body
from app.engine.model.identifiers import Namespace, TableIdentifier


class ViewCalls:
    """The views of one warehouse."""

    def __init__(self, calls: HttpCalls, root: str) -> None:
        self._calls = calls
        self._root = root

    def list(self, namespace: Namespace) -> Iterator[TableIdentifier]:
        """Yield the views of a namespace."""
        path = f"{self._root}/{namespace_path(namespace)}/views"
        for page in self._calls.read_pages(IdentifierPage, path):
            yield from page.items()

    def create(
        self,
        identifier: TableIdentifier,
        schema: JsonObject,
        view_version: JsonObject,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> LoadedView:
        """Create a view."""
        body: JsonObject = {
            "name": identifier.name,
            "schema": schema,
            "view-version": view_version,
            "properties": dict(properties or {}),
            **({"location": location} if location is not None else {}),
        }
        path = f"{self._root}/{namespace_path(identifier.namespace)}/views"
        return self._calls.read(LoadedView, "POST", path, body=body)

    def load(self, identifier: TableIdentifier) -> LoadedView:
        """Return a view."""
        return self._calls.read(LoadedView, "GET", self._path(identifier))

    def exists(self, identifier: TableIdentifier) -> bool:
        """Return whether there is such a view."""
        return self._calls.exists(self._path(identifier))

    def replace(
        self,
        identifier: TableIdentifier,
        updates: Sequence[JsonObject],
        requirements: Sequence[JsonObject] = (),
    ) -> LoadedView:
        """Change a view by one commit."""
        body = {
            "identifier": identifier_body(identifier),
            "requirements": [*requirements],
            "updates": [*updates],
        }
        return self._calls.read(LoadedView, "POST", self._path(identifier), body=body)

    def register(self, identifier: TableIdentifier, metadata_location: str) -> LoadedView:
        """Make a metadata file that is already there a view of the catalog."""
        body = {"name": identifier.name, "metadata-location": metadata_location}
        path = f"{self._root}/{namespace_path(identifier.namespace)}/register-view"
        return self._calls.read(LoadedView, "POST", path, body=body)

    def rename(self, source: TableIdentifier, destination: TableIdentifier) -> None:
        """Give a view another name, in the same namespace or another."""
        body = {"source": identifier_body(source), "destination": identifier_body(destination)}
        self._calls.send("POST", f"{self._root}/views/rename", body=body)

    def drop(self, identifier: TableIdentifier) -> None:
        """Drop a view."""
        self._calls.send("DELETE", self._path(identifier))

    def _path(self, identifier: TableIdentifier) -> str:
        return f"{self._root}/{view_path(identifier)}"
