"""Calls that ask whether an operation would collide with what has happened since: Icetower's own."""

from __future__ import annotations

from pydantic import Field

from app.client.answers import Answer, JsonObject
from app.client.http_calls import HttpCalls
from app.client.names_in_urls import table_path
from app.engine.model.identifiers import TableIdentifier


class ConflictReport(Answer):
    """What an operation collides with; conflicts and snapshots as the server told them."""

    ref: str
    base_snapshot_id: int | None = Field(None, alias="base-snapshot-id")
    head_snapshot_id: int | None = Field(None, alias="head-snapshot-id")
    would_conflict: bool = Field(alias="would-conflict")
    safe_to_reapply: bool = Field(alias="safe-to-reapply")
    reason: str
    snapshots_since: list[JsonObject] = Field(alias="snapshots-since")
    conflicts: list[JsonObject]
    is_complete: bool = Field(alias="is-complete")


class ConflictCalls:
    """Conflict checks of one warehouse's tables."""

    def __init__(self, calls: HttpCalls, root: str) -> None:
        self._calls = calls
        self._root = root

    def check(
        self,
        identifier: TableIdentifier,
        base_snapshot_id: int | None,
        operation: JsonObject,
        *,
        ref: str = "main",
    ) -> ConflictReport:
        """Return what an operation would collide with on a branch; nothing is changed.

        Args:
            base_snapshot_id: what the operation has read; None if the branch had no snapshot then.
            operation: its kind and what it is about, in the words of openapi.yaml:
                `{"kind": "overwrite", "removed-data-files": ["s3://…"]}`, for instance.
        """
        body: JsonObject = {"ref": ref, "operation": operation}
        if base_snapshot_id is not None:
            body["base-snapshot-id"] = base_snapshot_id
        path = f"{self._root}/{table_path(identifier)}/conflicts"
        return self._calls.read(ConflictReport, "POST", path, body=body)
