"""A source behind the REST protocol: Icetower, or any other server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from app.client.answers import TableAnswer, ViewAnswer
from app.client.catalog import RemoteCatalog
from app.client.http.failures import CallFailed, CatalogRefused
from app.client.table.registrations import CHECK_ENDPOINT
from app.engine.model.identifiers import MAX_NAMESPACE_LENGTH, Namespace
from app.moving.sources import Entry, EntryKind, SourceFailed, SourceMoved

_UNREGISTER: Final[Mapping[EntryKind, str]] = {
    "table": "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister",
    "view": "POST /v1/{prefix}/namespaces/{namespace}/views/{view}/unregister",
}
_VIEWS = "GET /v1/{prefix}/namespaces/{namespace}/views"
_NOT_SERVED = frozenset({404, 405, 406, 501})
_MOST_LEVELS: Final = MAX_NAMESPACE_LENGTH // 2
"""A level and its separator have two characters at least."""


class RestSource:
    """One warehouse of a server."""

    drop_obstacle = None
    has_entries = True
    shows_default_locations = True
    warnings = ()

    def __init__(self, catalog: RemoteCatalog, name: str) -> None:
        """Read from a catalog that is connected already."""
        self._catalog = catalog
        self.name = name

    def namespaces(self) -> Iterator[Namespace]:
        # Not by recursion: a source says how deep it is.
        walks = [self._children(None)]
        while walks:
            try:
                namespace = next(walks[-1], None)
            except CatalogRefused as refused:
                # One that was dropped since it was listed has nothing below it.
                if len(walks) == 1 or not refused.is_missing_namespace:
                    raise
                namespace = None
            if namespace is None:
                walks.pop()
            else:
                yield namespace
                walks.append(self._children(namespace))

    def properties(self, namespace: Namespace) -> Mapping[str, str]:
        return self._catalog.namespaces.load(namespace)

    def entries(self, namespace: Namespace) -> Iterator[Entry]:
        try:
            yield from map(Entry, self._catalog.tables.list(namespace))
        except CatalogRefused as refused:
            if not refused.is_missing_namespace:
                raise
            return
        endpoints = self._catalog.config.endpoints
        if endpoints is not None and _VIEWS not in endpoints:
            return
        try:
            for identifier in self._catalog.views.list(namespace):
                yield Entry(identifier, "view")
        except CatalogRefused as refused:
            # Servers that do not say what they serve may have no views.
            may_have_none = endpoints is None and refused.status in _NOT_SERVED
            if not may_have_none and not refused.is_missing_namespace:
                raise

    def find_location(self, entry: Entry) -> str | None:
        found = self._find(entry)
        if found is None:
            return None
        if not found.metadata_location:
            raise SourceFailed(
                f"{self.name} does not say where the metadata file of {entry.identifier} is, so that it cannot be "
                "registered anywhere else"
            )
        return found.metadata_location

    def find_uuid(self, entry: Entry) -> str | None:
        found = self._find(entry)
        return None if found is None else found.metadata.get(f"{entry.kind}-uuid")

    def identity(self, entry: Entry, location: str) -> str | None:
        if CHECK_ENDPOINT not in (self._catalog.config.endpoints or []):
            return None
        try:
            found = self._catalog.registrations.check(entry.identifier, location, entry.kind)
        except CatalogRefused as refused:
            if refused.status >= 500:
                raise
            return None  # A warehouse in which nothing can be registered is the target of no move.
        return found.present.id if found.present is not None else None

    def drop(self, entry: Entry, location: str) -> str | None:
        endpoints = self._catalog.config.endpoints or []
        try:
            if _UNREGISTER[entry.kind] in endpoints:
                gone = self._catalog.named(entry.kind).unregister(entry.identifier, expected=location)
                return gone.metadata_location
            found = self.find_location(entry)
            if found is None:
                return None
            if found != location:
                raise SourceMoved(f"{entry.identifier} has moved on at {self.name}")
            self._drop_once(entry)
        except CatalogRefused as refused:
            if refused.status == 404 and not refused.is_missing_file:
                return None
            if refused.status == 409:
                raise SourceMoved(f"{entry.identifier} has moved on at {self.name}: {refused}") from refused
            raise
        return location

    def mark(self, entry: Entry, properties: Mapping[str, str]) -> bool:
        found = self._find(entry)
        if found is None or all(found.property(key) == value for key, value in properties.items()):
            return True
        updates = [{"action": "set-properties", "updates": dict(properties)}]
        uuid = found.metadata.get(f"{entry.kind}-uuid")
        requirements = [{"type": f"assert-{entry.kind}-uuid", "uuid": uuid}] if uuid else []
        self._catalog.named(entry.kind).commit(entry.identifier, updates, requirements)
        return True

    def _drop_once(self, entry: Entry) -> None:
        """Drop an entry; where the answer is lost, look whether that was done.

        A second request might drop another one, which was made under the name meanwhile.
        """
        try:
            self._catalog.named(entry.kind).drop(entry.identifier, once=True)
        except CallFailed as failure:
            is_refused = isinstance(failure, CatalogRefused) and failure.status < 500
            if is_refused or self.find_location(entry) is not None:
                raise

    def _children(self, parent: Namespace | None) -> Iterator[Namespace]:
        for namespace in self._catalog.namespaces.list(parent):
            # Servers with one level only may ignore the parent, and list it again.
            if parent is not None and namespace.levels[: len(parent.levels)] != parent.levels:
                continue
            if parent is not None and len(namespace.levels) <= len(parent.levels):
                continue
            if len(namespace.levels) > _MOST_LEVELS:
                raise SourceFailed(f"{self.name} has namespaces of more than {_MOST_LEVELS} levels")
            yield namespace

    def _find(self, entry: Entry) -> TableAnswer | ViewAnswer | None:
        try:
            if entry.kind == "table":
                return self._catalog.tables.load(entry.identifier, "refs")
            return self._catalog.views.load(entry.identifier)
        except CatalogRefused as refused:
            if refused.is_missing_file:
                raise SourceFailed(
                    f"{self.name} does not find the metadata file of {entry.identifier}: {refused.message}"
                ) from refused
            if refused.status == 404:
                return None
            raise
