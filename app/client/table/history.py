"""Calls about the history of a table: Icetower's own, beyond the protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator

from app.client.answers import DiffPage, HistoryPage, SnapshotFilesPage, SnapshotPage
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import JsonObject, given
from app.engine.model.identifiers import TableIdentifier


class HistoryCalls(CatalogCalls):
    """The history of one warehouse's tables."""

    def snapshots(self, identifier: TableIdentifier) -> Iterator[JsonObject]:
        """Yield the snapshots of a table, newest first."""
        for page in self._calls.read_pages(SnapshotPage, self._below_table(identifier, "snapshots")):
            yield from page.snapshots

    def files(
        self, identifier: TableIdentifier, wanted: str = "main", filter_: JsonObject | None = None
    ) -> Iterator[JsonObject]:
        """Yield the files of a snapshot; with a filter only those that may hold rows that match."""
        query = {} if filter_ is None else {"filter": json.dumps(filter_)}
        path = self._below_table(identifier, "snapshots", wanted, "files")
        for page in self._calls.read_pages(SnapshotFilesPage, path, query):
            yield from page.files

    def history(self, identifier: TableIdentifier) -> HistoryPage:
        """Return what was current when, and everything that happened to the table."""
        first, *more = self._calls.read_pages(HistoryPage, self._below_table(identifier, "history"))
        events = [event for page in (first, *more) for event in page.events]
        return first.model_copy(update={"events": events, "next_page_token": None})

    def diff(self, identifier: TableIdentifier, before: str | None, after: str | None) -> JsonObject:
        """Return the difference between two states of a table, with all files."""
        path = self._below_table(identifier, "diff")
        first, *more = self._calls.read_pages(DiffPage, path, given({"from": before, "to": after}))
        answer: JsonObject = first.model_dump(by_alias=True, exclude_none=True)
        answer.pop("next-page-token", None)
        answer["files"] = [file for page in (first, *more) for file in page.files]
        return answer
