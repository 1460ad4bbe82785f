"""Calls about branches and tags: Icetower's own, beyond the protocol."""

from __future__ import annotations

from app.client.answers import RefAnswer, RefList, RefReceipt
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import JsonObject
from app.engine.model.identifiers import TableIdentifier


class RefCalls(CatalogCalls):
    """The branches and tags of one warehouse's tables."""

    def list(self, identifier: TableIdentifier) -> list[RefAnswer]:
        """Return the branches and tags of a table, main first."""
        return self._calls.read(RefList, "GET", self._below_table(identifier, "refs")).refs

    def change(self, identifier: TableIdentifier, name: str, body: JsonObject) -> RefReceipt:
        """Make or move a branch or tag, or change its retention, as `{"rollback-to": 5}`."""
        return self._calls.read(RefReceipt, "PUT", self._below_table(identifier, "refs", name), body=body)

    def remove(self, identifier: TableIdentifier, name: str, *, expected: int | None = None) -> RefReceipt:
        """Remove a branch or tag; if `expected` is given, only if that is its snapshot."""
        query = {} if expected is None else {"expected-snapshot-id": str(expected)}
        return self._calls.read(
            RefReceipt, "DELETE", self._below_table(identifier, "refs", name), query=query
        )
