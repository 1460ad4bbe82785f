"""Calls that check an operation for conflicts with concurrent commits: Icetower's own."""

from __future__ import annotations

from pydantic import Field

from app.client.answers import ServerAnswer
from app.client.bodies import JsonObject, given
from app.client.http_calls import CatalogCalls
from app.client.names_in_urls import table_path
from app.engine.model.identifiers import TableIdentifier


class ConflictAnswer(ServerAnswer):
    """The conflicts of an operation; conflicts and snapshots are as the server sent them."""

    ref: str
    base_snapshot_id: int | None = Field(None, alias="base-snapshot-id")
    head_snapshot_id: int | None = Field(None, alias="head-snapshot-id")
    would_conflict: bool = Field(alias="would-conflict")
    safe_to_reapply: bool = Field(alias="safe-to-reapply")
    reason: str
    snapshots_since: list[JsonObject] = Field(alias="snapshots-since")
    conflicts: list[JsonObject]
    is_complete: bool = Field(alias="is-complete")


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
        path = f"{self._root}/{table_path(identifier)}/conflicts"
        return self._calls.read(ConflictAnswer, "POST", path, body=body)
