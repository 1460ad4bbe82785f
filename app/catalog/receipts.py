"""Receipts: what became of a request, for a client that lost its answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from app.catalog.context.catalog import Catalog
from app.catalog.context.seen.receipt_book import LOST_AFTER_MS
from app.database.outcomes.receipt import (
    ID_LENGTH,
    CommitReceipt,
    LandedChange,
    Outcome,
    ReceiptHead,
    time_of_id,
)
from app.errors import InvalidRequest, NoSuchCommit
from app.formats.metadata.names import number_of

_ID = re.compile(f"[0-9a-f]{{{ID_LENGTH}}}")
_LONGEST_NAME = 255
_LOST = {
    "message": "The server that worked on this request has not been heard of since: it was given up and cannot land",
    "type": "ServiceUnavailableException",
    "code": 503,
}


def load_receipt(catalog: Catalog, commit_id: str) -> CommitReceipt:
    """Return what became of the request with a commit id.

    Raises:
        InvalidRequest: it is not a commit id.
        NoSuchCommit: it has not landed.
        DatabaseUnavailable: the database does not answer, or does not say yet.
    """
    catalog.permit("load_receipt")
    if not _ID.fullmatch(commit_id):
        raise InvalidRequest(
            f"Invalid commit id {commit_id[:100]!r}: it must be {ID_LENGTH} lower-case hexadecimal digits"
        )
    find = catalog.server.receipts.stored.find
    found = _settled(
        catalog,
        lambda: find(commit_id),
        lambda head: head.commit_id == commit_id,
        lambda receipt: receipt.outcome.is_final,
    )
    if found:
        return found[0]
    history_ms = catalog.rules.history_ms
    if history_ms and time_of_id(commit_id) < catalog.now_ms() - history_ms:
        raise NoSuchCommit(
            f"Commit {commit_id} is not known: receipts are deleted after {history_ms // 86_400_000} days"
        )
    if not catalog.has_rows:
        raise _unknown(f"commit {commit_id}")
    raise NoSuchCommit(f"Commit {commit_id} has not landed, and no server is known to be at work on it")


def list_receipts(
    catalog: Catalog, *, key: str | None, request_id: str | None, job: str | None = None
) -> list[CommitReceipt]:
    """Return what became of requests with a key, a request id or a job of upkeep, newest first.

    Those with a key or a request id are the caller's own. A job's requests come from its maintainer and from Spark.

    Raises:
        InvalidRequest: not exactly one of the three is given, or it is empty or too long.
        NoSuchCommit: no such request has landed.
        DatabaseUnavailable: the database does not answer, or does not say yet.
    """
    catalog.permit("list_receipts")
    asked = {"idempotency-key": key, "request-id": request_id, "job": job}
    given = [(name, value) for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise InvalidRequest("Ask for commits by idempotency-key, request-id or job: exactly one of them")
    ((name, value),) = given
    if not (value.isascii() and value.isprintable() and 0 < len(value) <= _LONGEST_NAME):
        raise InvalidRequest(f"Invalid {name}: it must be 1 to {_LONGEST_NAME} printable ASCII characters")
    principal, stored = catalog.caller.principal, catalog.server.receipts.stored

    def read() -> list[CommitReceipt]:
        if job is not None:
            return stored.find_by_job(job)
        if key is not None:
            return stored.find_by_key(principal, value)
        return stored.find_by_request(principal, value)

    def is_wanted(head: ReceiptHead) -> bool:
        if job is not None:
            return head.job == job
        return head.principal == principal and value == (head.key if key is not None else head.request_id)

    # Of several requests one may still land, whatever became of the others; of a job's, each may.
    found = _settled(
        catalog, read, is_wanted, lambda receipt: job is None and receipt.outcome is Outcome.LANDED
    )
    if not found:
        word = {"idempotency-key": "Idempotency-Key", "request-id": "X-Request-Id", "job": "job"}[name]
        if not catalog.has_rows:
            raise _unknown(f"commit with {word} {value!r}")
        raise NoSuchCommit(
            f"No commit with {word} {value!r} has landed, and no server is known to be at work on one"
        )
    return found


def _unknown(what: str) -> NoSuchCommit:
    return NoSuchCommit(
        f"No {what} is known. A commit to a file-system table has its receipt after it: if the server was killed in "
        "between, only the files of the table say whether it landed. Send it again: if it adds a snapshot that is "
        "there, it is answered as landed, and nothing is changed"
    )


def metadata_version(change: LandedChange) -> int | None:
    """Return the number of the metadata version that a request landed as, if its file has one."""
    location = change.location_after
    return None if location is None else number_of(location)


def _settled(
    catalog: Catalog,
    read: Callable[[], list[CommitReceipt]],
    is_wanted: Callable[[ReceiptHead], bool],
    says_all: Callable[[CommitReceipt], bool],
) -> list[CommitReceipt]:
    """Return the receipts that are asked for, as final as they can be known, newest first."""

    def is_here(head: ReceiptHead) -> bool:
        return head.warehouse in ("", catalog.warehouse.name) and is_wanted(head)

    found = _found(catalog, read, is_here)
    if any(says_all(receipt) or _is_at_work(receipt) for receipt in found):
        return found
    # A transaction whose reply was lost, or another server's, may still be about to land one.
    catalog.server.receipts.stored.wait_for_open_transactions()
    return [_as_settled(catalog, receipt) for receipt in _found(catalog, read, is_here)]


def _found(
    catalog: Catalog, read: Callable[[], list[CommitReceipt]], is_here: Callable[[ReceiptHead], bool]
) -> list[CommitReceipt]:
    # This order: what ends between the two has its receipt in the database before it is at work no longer.
    here = catalog.server.receipts.known(is_here)
    found = {receipt.head.commit_id: receipt for receipt in here}
    for receipt in read():
        commit_id = receipt.head.commit_id
        if is_here(receipt.head) and (receipt.outcome.is_final or commit_id not in found):
            found[commit_id] = receipt
    return [found[commit_id] for commit_id in sorted(found, reverse=True)]


def _is_at_work(receipt: CommitReceipt) -> bool:
    # A sign of life from further ahead was given before the database's clock was set back.
    return receipt.outcome is Outcome.IN_PROGRESS and abs(receipt.age_ms) < LOST_AFTER_MS


def _as_settled(catalog: Catalog, receipt: CommitReceipt) -> CommitReceipt:
    """Return a receipt once no transaction is open that could change it."""
    if not catalog.has_rows:
        # No transaction decides it, and a server that is gone may have created the file.
        is_over = receipt.outcome.is_final or _is_at_work(receipt)
        return receipt if is_over else replace(receipt, outcome=Outcome.UNKNOWN)
    book = catalog.server.receipts
    if receipt.outcome is Outcome.UNKNOWN:
        # Its transaction is over and has left no receipt: it was undone.
        undone = replace(receipt, outcome=Outcome.FAILED)
        book.note(undone)
        return undone
    if receipt.outcome is Outcome.IN_PROGRESS and not _is_at_work(receipt):
        book.stored.give_up(replace(receipt, outcome=Outcome.FAILED, error=_LOST))
        return next(iter(book.stored.find(receipt.head.commit_id)), receipt)
    return receipt
