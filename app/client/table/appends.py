"""Appending files by reference: Icetower's own, beyond the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.client.answers import AppendAnswer
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import JsonObject, given
from app.engine.model.identifiers import TableIdentifier


class AppendCalls(CatalogCalls):
    """Appends to one warehouse's tables."""

    def append(
        self,
        identifier: TableIdentifier,
        files: Sequence[str | JsonObject],
        *,
        branch: str | None = None,
        summary: Mapping[str, str] | None = None,
        allow_duplicates: bool = False,
        partition_from_path: bool = False,
        requirements: Sequence[JsonObject] = (),
    ) -> AppendAnswer:
        """Append files in storage: locations of Parquet files, or items of the body's `files`."""
        body = given(
            {
                "files": [{"file-path": file} if isinstance(file, str) else file for file in files],
                "branch": branch,
                "summary": dict(summary) if summary else None,
                "allow-duplicates": allow_duplicates or None,
                "partition-from-path": partition_from_path or None,
                "requirements": [*requirements] or None,
            }
        )
        return self._calls.read(AppendAnswer, "POST", self._below_table(identifier, "append"), body=body)
