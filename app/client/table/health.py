"""Calls about the health of tables."""

from __future__ import annotations

from collections.abc import Iterator

from app.client.answers import OpenAnswer, TableHealthPage
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import JsonObject, given
from app.engine.model.identifiers import TableIdentifier


class HealthCalls(CatalogCalls):
    """How healthy the tables of one warehouse are."""

    def table(
        self, identifier: TableIdentifier, *, snapshot_id: int | None = None, ref: str | None = None
    ) -> JsonObject:
        """Return the facts and findings of a table: as it is, or at a snapshot, branch or tag."""
        path = self._below_table(identifier, "health")
        return self._calls.read(OpenAnswer, "GET", path, query=_state(snapshot_id, ref)).model_dump()

    def profile(
        self, identifier: TableIdentifier, *, snapshot_id: int | None = None, ref: str | None = None
    ) -> JsonObject:
        """Return the profile of a table's columns: as it is, or at a snapshot, branch or tag."""
        path = self._below_table(identifier, "profile")
        return self._calls.read(OpenAnswer, "GET", path, query=_state(snapshot_id, ref)).model_dump()

    def warehouse(self) -> Iterator[TableHealthPage]:
        """Yield pages of what is found of all tables, and of deletions that wait."""
        return self._calls.read_pages(TableHealthPage, f"{self._root}/health")


def _state(snapshot_id: int | None, ref: str | None) -> dict[str, str]:
    return given({"snapshot-id": None if snapshot_id is None else str(snapshot_id), "ref": ref})
