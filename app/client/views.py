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
    register_endpoint = "register-view"

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
