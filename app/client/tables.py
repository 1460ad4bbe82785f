"""Calls about tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from app.client.answers import ExpiredSnapshots, IdentifierPage, JsonObject, LoadedTable
from app.client.http_calls import HttpCalls
from app.client.names_in_urls import namespace_path, table_path
from app.engine.model.identifiers import Namespace, TableIdentifier


class TableCalls:
    """The tables of one warehouse."""

    def __init__(self, calls: HttpCalls, root: str) -> None:
        self._calls = calls
        self._root = root

    def list(self, namespace: Namespace) -> Iterator[TableIdentifier]:
        """Yield the tables of a namespace."""
        path = f"{self._root}/{namespace_path(namespace)}/tables"
        for page in self._calls.read_pages(IdentifierPage, path):
            yield from page.items()

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
    ) -> LoadedTable:
        """Create a table, or only prepare one that a later commit will create."""
        optional = {"location": location, "partition-spec": partition_spec, "write-order": write_order}
        body: JsonObject = {
            "name": identifier.name,
            "schema": schema,
            "stage-create": stage,
            "properties": dict(properties or {}),
            **{key: value for key, value in optional.items() if value is not None},
        }
        path = f"{self._root}/{namespace_path(identifier.namespace)}/tables"
        return self._calls.read(LoadedTable, "POST", path, body=body)

    def load(self, identifier: TableIdentifier, snapshots: Literal["all", "refs"] = "all") -> LoadedTable:
        """Return a table with all its snapshots, or only those that a branch or tag names."""
        return self._calls.read(LoadedTable, "GET", self._path(identifier), query={"snapshots": snapshots})

    def exists(self, identifier: TableIdentifier) -> bool:
        """Return whether there is such a table."""
        return self._calls.exists(self._path(identifier))

    def commit(
        self,
        identifier: TableIdentifier,
        updates: Sequence[JsonObject],
        requirements: Sequence[JsonObject] = (),
    ) -> LoadedTable:
        """Advance a table by one commit."""
        body = change_body(identifier, updates, requirements)
        return self._calls.read(LoadedTable, "POST", self._path(identifier), body=body)

    def commit_together(
        self, changes: Sequence[tuple[TableIdentifier, Sequence[JsonObject], Sequence[JsonObject]]]
    ) -> None:
        """Advance several tables by one commit: all of them or none.

        Args:
            changes: for each table its name, the updates and the requirements.
        """
        body = {"table-changes": [change_body(*change) for change in changes]}
        self._calls.send("POST", f"{self._root}/transactions/commit", body=body)

    def register(
        self, identifier: TableIdentifier, metadata_location: str, *, overwrite: bool = False
    ) -> LoadedTable:
        """Make a metadata file that is already there a table of the catalog."""
        body = {"name": identifier.name, "metadata-location": metadata_location, "overwrite": overwrite}
        path = f"{self._root}/{namespace_path(identifier.namespace)}/register"
        return self._calls.read(LoadedTable, "POST", path, body=body)

    def unregister(self, identifier: TableIdentifier) -> LoadedTable:
        """Take a table out of the catalog, touch no file, and return where its metadata is."""
        return self._calls.read(LoadedTable, "POST", f"{self._path(identifier)}/unregister")

    def rename(self, source: TableIdentifier, destination: TableIdentifier) -> None:
        """Give a table another name, in the same namespace or another."""
        body = {"source": identifier_body(source), "destination": identifier_body(destination)}
        self._calls.send("POST", f"{self._root}/tables/rename", body=body)

    def drop(self, identifier: TableIdentifier, *, purge: bool = False) -> None:
        """Drop a table; its files stay unless `purge` is asked for."""
        query = {"purgeRequested": "true" if purge else "false"}
        self._calls.send("DELETE", self._path(identifier), query=query)

    def expire(
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
    ) -> ExpiredSnapshots:
        """Let old snapshots go, with the files that only they reached, or only tell what would go.

        Args:
            identifier: the table.
            dry_run: change nothing.
            older_than_ms: epoch milliseconds, in place of the age in the table's properties.
            retain_last: how many snapshots of each branch stay, in place of the number in the properties.
            snapshot_ids: snapshots that go whatever their age.
            clean_expired_metadata: let specs and schemas go too that nothing uses any more.
            cleanup: which files are deleted.
            grace_period_ms: how long they stay after the commit; the server's setting unless given.
        """
        optional = {
            "older-than-ms": older_than_ms,
            "retain-last": retain_last,
            "grace-period-ms": grace_period_ms,
        }
        body: JsonObject = {
            "dry-run": dry_run,
            "snapshot-ids": [*snapshot_ids],
            "clean-expired-metadata": clean_expired_metadata,
            "cleanup": cleanup,
            **{key: value for key, value in optional.items() if value is not None},
        }
        return self._calls.read(ExpiredSnapshots, "POST", f"{self._path(identifier)}/expire", body=body)

    def _path(self, identifier: TableIdentifier) -> str:
        return f"{self._root}/{table_path(identifier)}"


def identifier_body(identifier: TableIdentifier) -> JsonObject:
    """Return a name as the protocol writes it in bodies."""
    return {"namespace": [*identifier.namespace.levels], "name": identifier.name}


def change_body(
    identifier: TableIdentifier, updates: Sequence[JsonObject], requirements: Sequence[JsonObject]
) -> JsonObject:
    """Return what is wanted of one table as the protocol writes it in bodies."""
    return {
        "identifier": identifier_body(identifier),
        "requirements": [*requirements],
        "updates": [*updates],
    }
