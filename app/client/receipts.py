"""Calls about receipts: what became of requests that change something."""

from __future__ import annotations

from typing import Final

from app.client.answers import OpenAnswer, ReceiptsAnswer
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import JsonObject, given, path_piece

RECEIPTS_ENDPOINT: Final = "GET /v1/{prefix}/commits"


class ReceiptCalls(CatalogCalls):
    """The receipts of one warehouse."""

    def show(self, commit_id: str) -> JsonObject:
        """Return what became of the request whose answer had this commit id."""
        path = f"{self._root}/commits/{path_piece(commit_id)}"
        return self._calls.read(OpenAnswer, "GET", path).model_dump()

    def find(
        self, *, key: str | None = None, request_id: str | None = None, job: str | None = None
    ) -> list[JsonObject]:
        """Return what became of the requests with a key, a request id or a job, newest first."""
        query = given({"idempotency-key": key, "request-id": request_id, "job": job})
        return self._calls.read(ReceiptsAnswer, "GET", f"{self._root}/commits", query=query).commits
