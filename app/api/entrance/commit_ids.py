"""Commit ids: every request that changes something has one, and its receipt begins here."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Final

import orjson
from starlette.types import Scope

from app.api.error_responses import body_of, is_retry_safe, status_and_type
from app.api.scope_keys import COMMIT_ID, HEADERS, PREFIX, PRINCIPAL, RECEIPT_HEAD, REQUEST_ID
from app.catalog.context.rows import CommitReceipt, Outcome, ReceiptHead, id_of_time
from app.catalog.context.seen.receipt_book import ReceiptBook
from app.engine.model.jobs import JOB_ID

COMMIT_ID_HEADER: Final = b"x-icetower-commit-id"
KEY = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?")
"""An Idempotency-Key that can be used."""
JOB_HEADER: Final = b"x-icetower-job"
"""Names the job of upkeep that sends a request: Spark sends it where a catalog is mounted for the job."""
_RANDOM_BYTES = 10

Mutations = Mapping[tuple[str, object], str]
"""The names of the operations that change something, by method and endpoint."""


class CommitIds:
    """Gives commit ids to requests, and keeps the receipts of those that fail."""

    def __init__(self, mutations: Mutations, book: ReceiptBook, default_warehouse: str) -> None:
        self._mutations = mutations
        self._book = book
        self._default_warehouse = default_warehouse

    def begin(self, scope: Scope) -> None:
        """Give a request its commit id, once it is known that it would change something."""
        operation = self._mutations.get((scope["method"], scope.get("endpoint")))
        if operation is None or RECEIPT_HEAD in scope:
            return
        now_ms = self._book.now_ms()
        commit_id = id_of_time(now_ms) + secrets.token_hex(_RANDOM_BYTES)
        headers, request_id = scope[HEADERS], scope[REQUEST_ID]
        key = headers.get(b"idempotency-key", b"").decode("latin-1")
        job = headers.get(JOB_HEADER, b"").decode("latin-1")
        is_management = not scope["path"].startswith("/v1/")
        prefix = scope.get(PREFIX)
        head = ReceiptHead(
            commit_id=commit_id,
            operation=operation,
            warehouse="" if is_management else self._default_warehouse if prefix is None else prefix,
            principal=scope[PRINCIPAL],
            request_id=request_id if headers.get(b"x-request-id") == request_id.encode() else None,
            key=key if KEY.fullmatch(key) else None,
            began_ms=now_ms,
            job=job if JOB_ID.fullmatch(job) else None,
        )
        scope[RECEIPT_HEAD], scope[COMMIT_ID] = head, commit_id
        self._book.begin(head)

    def correct(self, head: ReceiptHead) -> None:
        """Note that a request's receipt begins otherwise than was thought."""
        self._book.correct(head)

    def fail(self, scope: Scope, error: Exception) -> None:
        """Keep what a request is answered with that has failed, before it is answered."""
        if PRINCIPAL in scope:
            self.begin(scope)  # It may have been refused before its route saw it.
        head: ReceiptHead | None = scope.get(RECEIPT_HEAD)
        if head is None:
            return
        status, _ = status_and_type(error)
        outcome = Outcome.FAILED if status < 500 or is_retry_safe(error) else Outcome.UNKNOWN
        answer = orjson.loads(body_of(error, scope[REQUEST_ID], scope.get(PREFIX)))
        self._book.note(CommitReceipt(head, outcome, self._book.now_ms(), error=answer["error"]))

    def end(self, scope: Scope) -> None:
        """Note that a request is at work no longer."""
        head: ReceiptHead | None = scope.get(RECEIPT_HEAD)
        if head is not None:
            self._book.end(head.commit_id)
