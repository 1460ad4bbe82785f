"""Calls about tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from app.client.answers import AdoptedTable, ExpiredSnapshots, OpenAnswer, TableAnswer
from app.client.named import NamedCalls
from app.client.request_parts import JsonObject, given, namespace_path
from app.engine.model.identifiers import TableIdentifier


class TableCalls(NamedCalls[TableAnswer]):
    """The tables of one warehouse."""

    kind = "tables"
    answer = TableAnswer

    def create(
        self,
        identifier: TableIdentifier,
        schema: JsonObject,
        *,
        partition_spec: JsonObject | None = None,
        write_order: JsonObject | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        stage: bool = False,
    ) -> TableAnswer:
        """Create a table, or only prepare one that a later commit will create."""
        body = {
            "schema": schema,
            "partition-spec": partition_spec,
            "write-order": write_order,
            "location": location,
            "properties": dict(properties or {}),
            "stage-create": stage,
        }
        return self._add("tables", identifier, given(body))

    def load(self, identifier: TableIdentifier, snapshots: Literal["all", "refs"] = "all") -> TableAnswer:
        """Return a table with all its snapshots, or only those that a branch or tag names."""
        return self._calls.read(TableAnswer, "GET", self._path(identifier), query={"snapshots": snapshots})

    register_endpoint = "register"

    def adopt(self, identifier: TableIdentifier, location: str) -> AdoptedTable:
        """Make the file-system table in a folder a table of the catalog."""
        path = f"{self._root}/{namespace_path(identifier.namespace)}/adopt"
        body = {"name": identifier.name, "location": location}
        return self._calls.read(AdoptedTable, "POST", path, body=body)

    def drop(self, identifier: TableIdentifier, *, purge: bool = False, once: bool = False) -> None:
        """Drop a table; its files stay unless `purge` is asked for. `once` is as for views."""
        query = {"purgeRequested": "true" if purge else "false"}
        self._calls.send("DELETE", self._path(identifier), query=query, once=once)

    def properties(self, identifier: TableIdentifier) -> list[JsonObject]:
        """Return the properties of a table as they are in force, by name."""
        path = self._below_table(identifier, "properties")
        found: list[JsonObject] = self._calls.read(OpenAnswer, "GET", path).model_dump()["properties"]
        return found

    def expire(  # noqa: PLR0913 - one for each field of the request
        self,
        identifier: TableIdentifier,
        *,
        dry_run: bool = False,
        older_than_ms: int | None = None,
        retain_last: int | None = None,
        snapshot_ids: Sequence[int] = (),
        clean_expired_metadata: bool = False,
        cleanup: Literal["all", "metadata-only", "none"] = "all",
        grace_period_ms: int | None = None,
        as_of_ms: int | None = None,
    ) -> ExpiredSnapshots:
        """Expire old snapshots, with the files that only they reached.

        Args:
            identifier: the table.
            dry_run: change nothing, only return what would go.
            older_than_ms: epoch milliseconds, in place of the age in the table's properties.
            retain_last: how many snapshots of each branch stay, in place of the number in the properties.
            snapshot_ids: snapshots that go whatever their age.
            clean_expired_metadata: also remove specs and schemas that nothing uses any more.
            cleanup: which files are deleted.
            grace_period_ms: how long they stay after the commit; the server's setting unless given.
            as_of_ms: epoch milliseconds at which ages are counted, if that is earlier than now; a dry run says it.
        """
        body = {
            "dry-run": dry_run,
            "older-than-ms": older_than_ms,
            "retain-last": retain_last,
            "snapshot-ids": [*snapshot_ids],
            "clean-expired-metadata": clean_expired_metadata,
            "cleanup": cleanup,
            "grace-period-ms": grace_period_ms,
            "as-of-ms": as_of_ms,
        }
        path = self._below_table(identifier, "expire")
        return self._calls.read(ExpiredSnapshots, "POST", path, body=given(body))
