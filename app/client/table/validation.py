"""Dry runs of commits: Icetower's own, beyond the protocol."""

from __future__ import annotations

from collections.abc import Sequence

from app.client.answers import DryRunAnswer, TransactionDryRunAnswer
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import Changes, JsonObject, change_body
from app.engine.model.identifiers import TableIdentifier


class ValidationCalls(CatalogCalls):
    """Dry runs of commits to one warehouse's tables; nothing is written."""

    def validate(
        self,
        identifier: TableIdentifier,
        updates: Sequence[JsonObject],
        requirements: Sequence[JsonObject] = (),
    ) -> DryRunAnswer:
        """Return what a commit to a table would do."""
        return self.validate_body(identifier, change_body(identifier, updates, requirements))

    def validate_body(self, identifier: TableIdentifier, body: JsonObject) -> DryRunAnswer:
        """Return what a commit with this very body would do."""
        path = self._below_table(identifier, "validate")
        return self._calls.read(DryRunAnswer, "POST", path, body=body)

    def validate_together(self, changes: Changes) -> TransactionDryRunAnswer:
        """Return what a commit to several tables would do."""
        return self.validate_transaction_body({"table-changes": [change_body(*change) for change in changes]})

    def validate_transaction_body(self, body: JsonObject) -> TransactionDryRunAnswer:
        """Return what a transaction with this very body would do."""
        path = f"{self._root}/transactions/validate"
        return self._calls.read(TransactionDryRunAnswer, "POST", path, body=body)
