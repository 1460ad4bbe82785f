"""Calls about the tower: the traffic on tables."""

from __future__ import annotations

from app.client.answers import OpenAnswer
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import JsonObject
from app.engine.model.identifiers import TableIdentifier


class TowerCalls(CatalogCalls):
    """The traffic on one warehouse's tables, as the server process that answers has seen it."""

    def busiest(self, most: int = 20) -> JsonObject:
        """Return the busiest tables, the busiest first."""
        query = {"limit": str(most)}
        return self._calls.read(OpenAnswer, "GET", f"{self._root}/tower", query=query).model_dump()

    def table(self, identifier: TableIdentifier) -> JsonObject:
        """Return the traffic on one table."""
        return self._calls.read(OpenAnswer, "GET", self._below_table(identifier, "tower")).model_dump()
