"""Targets: what has a name there already, and whether a metadata file can be registered."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.client.answers import TableAnswer, ViewAnswer
from app.client.catalog import RemoteCatalog
from app.client.http.failures import CatalogRefused
from app.client.table.registrations import CHECK_ENDPOINT, FindingAnswer
from app.engine.model.identifiers import TableIdentifier
from app.moving.sources import EntryKind

_REGISTER_VIEW = "POST /v1/{prefix}/namespaces/{namespace}/register-view"


@dataclass(frozen=True, slots=True)
class Present:
    """What has a name at the target now."""

    kind: EntryKind
    location: str
    uuid: str
    is_read_only: bool = False
    id: str | None = None
    """Of the entry itself, as `Source.identity` returns it; None where it is unknown."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a target says about a metadata file before it is registered."""

    present: Present | None
    findings: Sequence[FindingAnswer] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    """What is in the file; empty if the target cannot say."""

    @property
    def uuid(self) -> str | None:
        """The uuid of the table or view."""
        return self.facts.get("uuid") or None

    @property
    def earlier_locations(self) -> frozenset[str]:
        """The metadata files that came before it, as far as its log goes."""
        return frozenset(self.facts.get("metadata-log", ()))


class MoveTarget:
    """A catalog that tables and views are registered in: Icetower, or any other server."""

    def __init__(self, catalog: RemoteCatalog) -> None:
        """Register in a catalog that is connected already."""
        self.catalog = catalog
        self._endpoints = frozenset(catalog.config.endpoints or ())
        self._can_check = CHECK_ENDPOINT in self._endpoints

    def obstacle_to(self, kind: EntryKind) -> str | None:
        """Return why entries of a kind cannot be registered; None if they can, as far as is known."""
        # It is not among the endpoints that a server without a list of them has by the protocol.
        if kind == "table" or _REGISTER_VIEW in self._endpoints:
            return None
        return "the target has no register-view, so views cannot move there: create them there with their SQL"

    def inspect(self, name: TableIdentifier, kind: EntryKind, location: str) -> Inspection:
        """Return what registering a metadata file would meet, as far as the server can say."""
        if not self._can_check:
            return Inspection(self.find(name, kind))
        found = self.catalog.registrations.check(name, location, kind)
        present = found.present
        return Inspection(
            None
            if present is None
            else Present(
                "view" if present.type == "view" else "table",
                present.metadata_location,
                present.uuid,
                present.read_only,
                present.id,
            ),
            found.findings,
            found.found or {},
        )

    def find(self, name: TableIdentifier, kind: EntryKind) -> Present | None:
        """Return what has a name, if it is of this kind."""
        found = self._metadata(name, kind)
        if found is None:
            return None
        location, named = found
        return Present(kind, location, str(named.metadata.get(f"{kind}-uuid") or ""))

    def find_readable(self, name: TableIdentifier, kind: EntryKind) -> Present | None:
        """Return what has a name, if its metadata file is found."""
        try:
            return self.find(name, kind)
        except CatalogRefused as refused:
            if refused.is_missing_file:
                return None
            raise

    def has_been_at(self, name: TableIdentifier, kind: EntryKind, location: str) -> bool:
        """Say whether what has a name is at a metadata file, or has come from it."""
        found = self._metadata(name, kind)
        if found is None:
            return False
        at, named = found
        return location == at or location in named.earlier_locations

    def register(
        self,
        name: TableIdentifier,
        kind: EntryKind,
        location: str,
        *,
        replaces: str | None = None,
        read_only: bool = False,
    ) -> str | None:
        """Register a metadata file, and return the uuid in it.

        `replaces` is where the metadata is that it takes the place of.
        """
        is_ours = self._can_check
        registered = self.catalog.named(kind).register(
            name,
            location,
            overwrite=replaces is not None,
            read_only=read_only,
            expected=replaces if is_ours else None,
        )
        return registered.metadata.get(f"{kind}-uuid")

    def give_uuid(self, name: TableIdentifier) -> str:
        """Return a table's uuid, and give it one by a commit if it has none."""
        found = self.find(name, "table")
        if found is not None and found.uuid:
            return found.uuid
        new = str(uuid.uuid4())
        self.catalog.tables.commit(name, [{"action": "assign-uuid", "uuid": new}])
        return new

    def take_back(self, name: TableIdentifier, kind: EntryKind, properties: Sequence[str]) -> str | None:
        """Remove properties that a fence has set at the source; return where the metadata is then."""
        found = self.catalog.tables.load(name, "refs") if kind == "table" else self.catalog.views.load(name)
        if all(found.property(key) is None for key in properties):
            return found.metadata_location
        return (
            self.catalog.named(kind)
            .commit(
                name,
                [{"action": "remove-properties", "removals": [*properties]}],
                [{"type": f"assert-{kind}-uuid", "uuid": found.metadata.get(f"{kind}-uuid")}],
            )
            .metadata_location
        )

    def _metadata(
        self, name: TableIdentifier, kind: EntryKind
    ) -> tuple[str, TableAnswer | ViewAnswer] | None:
        try:
            if kind == "table":
                table = self.catalog.tables.load(name, "refs")
                return table.metadata_location or "", table
            view = self.catalog.views.load(name)
        except CatalogRefused as refused:
            if refused.status == 404 and not refused.is_missing_file:
                return None
            raise
        return view.metadata_location, view
