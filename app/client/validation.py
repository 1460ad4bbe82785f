"""Calls that ask what a commit would do: Icetower's own, beyond the protocol."""

from __future__ import annotations

from collections.abc import Sequence

from app.client.answers import CommitVerdict, JsonObject, TransactionVerdict
from app.client.http_calls import HttpCalls
from app.client.names_in_urls import table_path
from app.client.tables import change_body
from app.engine.model.identifiers import TableIdentifier


class ValidationCalls:
    """Dry runs of commits to one warehouse's tables; nothing is written."""

    def __init__(self, calls: HttpCalls, root: str) -> None:
        self._calls = calls
        self._root = root

    def validate(
        self,
        identifier: TableIdentifier,
        updates: Sequence[JsonObject],
        requirements: Sequence[JsonObject] = (),
    ) -> CommitVerdict:
        """Return what a commit to a table would do."""
        return self.validate_body(identifier, change_body(identifier, updates, requirements))

    def validate_body(self, identifier: TableIdentifier, body: JsonObject) -> CommitVerdict:
        """Return what a commit with this very body would do."""
        path = f"{self._root}/{table_path(identifier)}/validate"
        return self._calls.read(CommitVerdict, "POST", path, body=body)

    def validate_together(
        self, changes: Sequence[tuple[TableIdentifier, Sequence[JsonObject], Sequence[JsonObject]]]
    ) -> TransactionVerdict:
        """Return what a commit to several tables would do.

        Args:
            changes: for each table its name, the updates and the requirements.
        """
        return self.validate_transaction_body({"table-changes": [change_body(*change) for change in changes]})

    def validate_transaction_body(self, body: JsonObject) -> TransactionVerdict:
        """Return what a transaction with this very body would do."""
        return self._calls.read(TransactionVerdict, "POST", f"{self._root}/transactions/validate", body=body)
