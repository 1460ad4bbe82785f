"""Calls that check an operation for conflicts with concurrent commits: Icetower's own."""

from __future__ import annotations

from app.client.answers import ServerAnswer
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import JsonObject, given
from app.engine.model.identifiers import TableIdentifier


class ConflictAnswer(ServerAnswer):
    """The conflicts of an operation; conflicts and snapshots are as the server sent them."""

    ref: str
    base_snapshot_id: int | None = None
    head_snapshot_id: int | None = None
    would_conflict: bool
    safe_to_reapply: bool
    reason: str
    snapshots_since: list[JsonObject]
    conflicts: list[JsonObject]
    is_complete: bool


class ConflictCalls(CatalogCalls):
    """Conflict checks of one warehouse's tables."""

    def check(
        self,
        identifier: TableIdentifier,
        base_snapshot_id: int | None,
        operation: JsonObject,
        *,
        ref: str = "main",
    ) -> ConflictAnswer:
        """Return the conflicts that an operation would have on a branch; nothing is changed.

        Args:
            base_snapshot_id: the snapshot that the operation has read; None if the branch had none then.
            operation: its kind and what it is about, in the words of openapi.yaml:
                `{"kind": "overwrite", "removed-data-files": ["s3://…"]}`, for instance.
        """
        body = given({"ref": ref, "operation": operation, "base-snapshot-id": base_snapshot_id})
        path = self._below_table(identifier, "conflicts")
        return self._calls.read(ConflictAnswer, "POST", path, body=body)
