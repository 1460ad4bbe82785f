"""Calls about views."""

from __future__ import annotations

from collections.abc import Mapping

from app.client.answers import ViewAnswer
from app.client.named import NamedCalls
from app.client.request_parts import JsonObject, given
from app.engine.model.identifiers import TableIdentifier


class ViewCalls(NamedCalls[ViewAnswer]):
    """The views of one warehouse."""

    kind = "views"
    answer = ViewAnswer

    def create(
        self,
        identifier: TableIdentifier,
        schema: JsonObject,
        view_version: JsonObject,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> ViewAnswer:
        """Create a view."""
        body = {"schema": schema, "view-version": view_version, "properties": dict(properties or {})}
        return self._add("views", identifier, {**body, **given({"location": location})})

    def register(self, identifier: TableIdentifier, metadata_location: str) -> ViewAnswer:
        """Make an existing metadata file a view of the catalog."""
        return self._add("register-view", identifier, {"metadata-location": metadata_location})
