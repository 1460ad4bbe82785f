"""Calls about the upkeep of tables."""

from __future__ import annotations

from app.client.answers import OpenAnswer
from app.client.http_calls import CatalogCalls
from app.client.request_parts import JsonObject
from app.engine.model.identifiers import TableIdentifier


class UpkeepCalls(CatalogCalls):
    """Properties, plans and jobs of one warehouse's tables."""

    def properties(self, identifier: TableIdentifier) -> list[JsonObject]:
        """Return the properties of a table as they are in force, by name."""
        path = self._below_table(identifier, "properties")
        found: list[JsonObject] = self._calls.read(OpenAnswer, "GET", path).model_dump()["properties"]
        return found
