"""Calls about namespaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from app.client.answers import NamespaceAnswer, NamespacePage, PropertiesAnswer
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import namespace_path
from app.engine.model.identifiers import LEVEL_SEPARATOR, Namespace


class NamespaceCalls(CatalogCalls):
    """The namespaces of one warehouse."""

    def list(self, parent: Namespace | None = None) -> Iterator[Namespace]:
        """Yield the children of a namespace, or the outermost namespaces."""
        query = {"parent": LEVEL_SEPARATOR.join(parent.levels)} if parent else {}
        for page in self._calls.read_pages(NamespacePage, f"{self._root}/namespaces", query):
            yield from page.items()

    def create(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> dict[str, str]:
        """Create a namespace and return its properties."""
        body = {"namespace": list(namespace.levels), "properties": dict(properties or {})}
        found = self._calls.read(NamespaceAnswer, "POST", f"{self._root}/namespaces", body=body)
        return found.properties or {}

    def load(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of a namespace."""
        found = self._calls.read(NamespaceAnswer, "GET", self._path(namespace))
        return found.properties or {}

    def exists(self, namespace: Namespace) -> bool:
        """Return whether there is such a namespace."""
        return self._calls.exists(self._path(namespace))

    def drop(self, namespace: Namespace) -> None:
        """Drop an empty namespace."""
        self._calls.send("DELETE", self._path(namespace))

    def update_properties(
        self, namespace: Namespace, updates: Mapping[str, str], removals: Sequence[str] = ()
    ) -> PropertiesAnswer:
        """Set and remove properties of a namespace."""
        body = {"updates": dict(updates), "removals": [*removals]}
        return self._calls.read(PropertiesAnswer, "POST", f"{self._path(namespace)}/properties", body=body)

    def _path(self, namespace: Namespace) -> str:
        return f"{self._root}/{namespace_path(namespace)}"
