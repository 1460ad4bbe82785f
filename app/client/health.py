"""Calls about the health of tables."""

from __future__ import annotations

from app.client.answers import OpenAnswer
from app.client.http_calls import CatalogCalls
from app.client.request_parts import JsonObject, given
from app.engine.model.identifiers import TableIdentifier


class HealthCalls(CatalogCalls):
    """How healthy the tables of one warehouse are."""

    def table(
        self, identifier: TableIdentifier, *, snapshot_id: int | None = None, ref: str | None = None
    ) -> JsonObject:
        """Return the facts and findings of a table, at a snapshot or a branch or tag; else as it is."""
        query = given({"snapshot-id": None if snapshot_id is None else str(snapshot_id), "ref": ref})
        path = self._below_table(identifier, "health")
        return self._calls.read(OpenAnswer, "GET", path, query=query).model_dump()
