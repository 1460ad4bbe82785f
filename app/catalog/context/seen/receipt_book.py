"""What this process knows of requests: those at work, and those that ended without landing."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from app.database.outcomes.receipt import CommitReceipt, Outcome, ReceiptHead
from app.database.outcomes.receipts import Receipts
from app.errors import IcetowerError

log = logging.getLogger(__name__)

WRITE_SECONDS = 0.5
"""How often what is known here is written to the database, for other servers and for after a restart."""
SLOW_SECONDS, SIGN_OF_LIFE_SECONDS = 0.5, 5.0
LOST_AFTER_MS = 30_000
"""A request at work whose server has given no sign of life for so long is given up if somebody asks for it."""
FAILURES_KEPT_MS = 3_600_000
"""How long it is known why a request did not land; that it did not land is known as long as what landed."""
MOST_KEPT, MOST_UNWRITTEN, MOST_AT_ONCE = 1_000, 1_000, 200


@dataclass(slots=True)
class _AtWork:
    head: ReceiptHead
    since: float
    written: float | None = None


class ReceiptBook:
    """The receipts that are not in the database yet, and what is there.

    Landed requests have their receipt in the database from the moment they land. A refusal must not cost a write of
    its own while many writers compete for a table: it is kept in memory, and written together with others soon after.
    A crash loses what was not written; that is a receipt of something that did not happen.

    Attributes:
        stored: the receipts of all servers.
        now_ms: the time, in epoch milliseconds.
    """

    def __init__(self, stored: Receipts, now_ms: Callable[[], int]) -> None:
        self.stored = stored
        self.now_ms = now_ms
        self._lock = threading.Lock()
        self._at_work: dict[str, _AtWork] = {}
        self._ended: OrderedDict[str, CommitReceipt] = OrderedDict()
        self._unwritten: OrderedDict[str, CommitReceipt] = OrderedDict()

    def begin(self, head: ReceiptHead) -> None:
        """Note that a request is at work."""
        self._at_work[head.commit_id] = _AtWork(head, time.monotonic())

    def correct(self, head: ReceiptHead) -> None:
        """Note that the receipt of a request begins otherwise, if that is at work still."""
        at_work = self._at_work.get(head.commit_id)
        if at_work is not None:
            at_work.head = head

    def end(self, commit_id: str) -> None:
        """Note that a request is at work no longer.

        It has landed, or how it ended was noted before.
        """
        self._at_work.pop(commit_id, None)

    def note(self, *receipts: CommitReceipt) -> None:
        """Keep the receipts of requests that have not landed, or may not have."""
        for receipt in receipts:
            commit_id = receipt.head.commit_id
            with self._lock:
                for kept, most in ((self._ended, MOST_KEPT), (self._unwritten, MOST_UNWRITTEN)):
                    kept[commit_id] = receipt
                    if len(kept) > most:
                        kept.popitem(last=False)
            self.end(commit_id)

    def known(self, is_wanted: Callable[[ReceiptHead], bool]) -> list[CommitReceipt]:
        """Return what this process knows of the requests that are asked for."""
        at_work = [item.head for item in list(self._at_work.values()) if is_wanted(item.head)]
        with self._lock:
            ended = [receipt for receipt in self._ended.values() if is_wanted(receipt.head)]
        now_ms = self.now_ms()
        return [*(CommitReceipt(head, Outcome.IN_PROGRESS, now_ms) for head in at_work), *ended]

    def write(self) -> None:
        """Write what the database does not have yet; if it does not answer, the next time will do."""
        while self._write_some():
            pass

    def _write_some(self) -> bool:
        """Write one batch, and return whether it was a full one."""
        with self._lock:
            ended = [
                self._unwritten.popitem(last=False)[1] for _ in range(min(MOST_AT_ONCE, len(self._unwritten)))
            ]
        slow = self._slow()
        if not ended and not slow:
            return False
        try:
            self.stored.note([*ended, *slow])
        except IcetowerError as error:
            log.warning("could not write %d receipts: %s", len(ended) + len(slow), error)
            with self._lock:
                for receipt in reversed(ended):
                    self._unwritten.setdefault(receipt.head.commit_id, receipt)
                    self._unwritten.move_to_end(receipt.head.commit_id, last=False)
            return False
        written = time.monotonic()
        for receipt in slow:
            if item := self._at_work.get(receipt.head.commit_id):
                item.written = written
        return len(ended) == MOST_AT_ONCE

    def keep_writing(self, stop: threading.Event) -> None:
        """Write what the database does not have yet, again and again, until stopped."""
        while not stop.wait(WRITE_SECONDS):
            try:
                self.write()
            except Exception:
                # The thread must survive an error of ours, or nothing would be written until the next start.
                log.exception("writing receipts met something unexpected")
        self.write()

    def _slow(self) -> list[CommitReceipt]:
        """Return the slow requests that the database has not heard of, or not lately."""
        now, now_ms = time.monotonic(), self.now_ms()
        due = (
            item.head
            for item in list(self._at_work.values())
            if (
                now - item.since > SLOW_SECONDS
                if item.written is None
                else now - item.written > SIGN_OF_LIFE_SECONDS
            )
        )
        return [CommitReceipt(head, Outcome.IN_PROGRESS, now_ms) for head in due]
