"""Orphans of tables: Icetower's own, beyond the protocol."""

from __future__ import annotations

from app.client.answers import OrphanAnswer, OrphanRunAnswer, OrphanRunsAnswer
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import given
from app.engine.model.identifiers import TableIdentifier


class OrphanCalls(CatalogCalls):
    """Files of one warehouse's tables that nothing reaches."""

    def mark(
        self,
        identifier: TableIdentifier,
        *,
        dry_run: bool = True,
        older_than_ms: int | None = None,
        location: str | None = None,
        file_list: str | None = None,
        grace_period_ms: int | None = None,
    ) -> OrphanAnswer:
        """Find the orphans of a table, and mark them to be deleted unless it is a dry run.

        Args:
            identifier: the table.
            dry_run: change nothing, only return what was found.
            older_than_ms: epoch milliseconds; three days ago unless given.
            location: a folder in the table's own places, in place of all of them.
            file_list: a listing made by somebody else; unless given, the server lists.
            grace_period_ms: how long marked files stay; the server's setting unless given.
        """
        body = {
            "dry-run": dry_run,
            "older-than-ms": older_than_ms,
            "location": location,
            "file-list": file_list,
            "grace-period-ms": grace_period_ms,
        }
        path = self._below_table(identifier, "orphans")
        return self._calls.read(OrphanAnswer, "POST", path, body=given(body))

    def runs(self, identifier: TableIdentifier) -> list[OrphanRunAnswer]:
        """Return what has become of orphans that were marked, newest first."""
        return self._calls.read(OrphanRunsAnswer, "GET", self._below_table(identifier, "orphans")).runs
