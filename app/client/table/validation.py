"""Dry runs of commits: Icetower's own, beyond the protocol."""

from __future__ import annotations

from app.client.answers import DryRunAnswer, TransactionDryRunAnswer
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import JsonObject
from app.engine.model.identifiers import TableIdentifier


class ValidationCalls(CatalogCalls):
    """Dry runs of commits to one warehouse's tables; nothing is written."""

    def validate_body(self, identifier: TableIdentifier, body: JsonObject) -> DryRunAnswer:
        """Return what a commit with this very body would do."""
        path = self._below_table(identifier, "validate")
        return self._calls.read(DryRunAnswer, "POST", path, body=body)

    def validate_transaction_body(self, body: JsonObject) -> TransactionDryRunAnswer:
        """Return what a transaction with this very body would do."""
        path = f"{self._root}/transactions/validate"
        return self._calls.read(TransactionDryRunAnswer, "POST", path, body=body)
