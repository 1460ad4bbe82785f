"""What a catalog shows of its names, now or at a time, and what a model of it remembers."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.catalog import named, namespaces
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS, Kind
from app.catalog.context.listings import Page
from app.catalog.past.loads import load_as_it_was
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.settings.properties import GC_ENABLED
from app.recoveries import PastIsGone

Key = tuple[int, TableIdentifier]
"""The number of a warehouse, and a name in it."""
EVERYTHING = Page()


@dataclass(frozen=True)
class Shown:
    """A table or view as a catalog shows it."""

    kind: str
    uuid: str
    location: str
    text: str
    """The metadata without `gc.enabled`, as JSON."""

    @property
    def document(self) -> dict[str, Any]:
        """Return the metadata."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    def snapshots(self) -> dict[int, str]:
        """Return the manifest lists of the snapshots, by their ids."""
        return {each["snapshot-id"]: each["manifest-list"] for each in self.document.get("snapshots", ())}

    @property
    def head(self) -> int | None:
        """Return the id of the current snapshot."""
        found = self.document.get("current-snapshot-id")
        return None if found in (None, -1) else found


GONE = Shown("", "", "", "")
"""In the place of what was there, and cannot be read any more."""


@dataclass
class World:
    """All namespaces with their properties, and all names."""

    namespaces: dict[tuple[int, Namespace], Mapping[str, str]] = field(default_factory=dict)
    names: dict[Key, Shown] = field(default_factory=dict)

    def copy(self) -> World:
        """Return what stays as it is now."""
        return copy.deepcopy(self)


def shown(kind: str, location: str | None, content: bytes, uuid: str) -> Shown:
    """Return what is compared of a table or view."""
    document = json.loads(content)
    document.get("properties", {}).pop(GC_ENABLED, None)
    return Shown(kind, uuid, str(location), json.dumps(document, sort_keys=True))


def look(catalogs: list[Catalog], at_ms: int | None = None) -> World:
    """Return everything that some warehouses show, now or at a time."""
    found = World()
    for number, catalog in enumerate(catalogs):
        _look_into(found, number, replace(catalog, as_of_ms=at_ms), None)
    return found


def _look_into(found: World, number: int, catalog: Catalog, parent: Namespace | None) -> None:
    for namespace in namespaces.list_namespaces(catalog, parent, EVERYTHING).items:
        found.namespaces[number, namespace] = catalog.load_namespace(namespace)
        kinds: tuple[Kind[Any], ...] = (TABLES, VIEWS)
        for kind in kinds:
            listed = named.list_names(catalog, kind, namespace, EVERYTHING).items
            assert tuple(sorted(set(listed))) == listed, "a name is listed once, in order"
            for name in listed:
                identifier = TableIdentifier(namespace, name)
                assert (number, identifier) not in found.names, "a name is a table's or a view's"
                found.names[number, identifier] = _load(catalog, str(kind), identifier)
        _look_into(found, number, catalog, namespace)


def _load(catalog: Catalog, kind: str, identifier: TableIdentifier) -> Shown:
    try:
        if kind == "view":
            view = named.load(catalog, VIEWS, identifier)
            return shown(kind, view.location, view.json, view.metadata.uuid)
        is_now = catalog.as_of_ms is None
        table = named.load(catalog, TABLES, identifier) if is_now else load_as_it_was(catalog, identifier)
        assert is_now or table.metadata.properties[GC_ENABLED] == "false"
        return shown(kind, table.location, table.json, table.metadata.uuid)
    except PastIsGone:
        return GONE
