"""Housekeeping: the threads that delete what is over, and export pointers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from app import telemetry
from app.catalog.context.seen.receipt_book import FAILURES_KEPT_MS
from app.catalog.context.server import Server
from app.catalog.deletions.foreign_looks import UnknownReaders
from app.catalog.deletions.queue import work_off
from app.catalog.deletions.runner import LEASE_MS
from app.catalog.deletions.sweeps import sweep_one
from app.catalog.exports.writing import export_what_is_due
from app.database.deletions.file_deletions import Deletion
from app.errors import IcetowerError
from app.memory import give_back_freed

log = logging.getLogger(__name__)

CLEANING_SECONDS = 60.0
LOOKING_SECONDS = 1.0
PRUNING_SECONDS = 6 * 3_600.0
QUEUE_KEPT_MS = 24 * 3_600_000
WAREHOUSES_TOGETHER: Final = 8
"""In so many warehouses files are deleted side by side."""


def keep_house(server: Server, stop: threading.Event, interval_s: float) -> None:
    """Delete files and rows whose time is over, and export pointers, until stopped.

    Args:
        stop: set before `server.has_deletions` to end this at once.
        interval_s: how long to wait at most; what this process has queued itself is done without waiting.
    """
    queue = threading.Thread(
        target=_Deleters(server).work_off_queue, args=(stop, interval_s), name="file deletions"
    )
    queue.start()
    clean_at = prune_at = export_at = 0.0
    unknown = UnknownReaders(server)

    def clean() -> None:
        nonlocal clean_at, prune_at, export_at
        # Not the server's: as long as the database has not said its time, that is the machine's.
        now_ms = server.file_deletions.now_ms()
        if time.monotonic() >= clean_at:
            server.idempotency_keys.delete_expired(now_ms)
            server.scan_plans.delete_expired(now_ms)
            server.landing_queues.delete_old(QUEUE_KEPT_MS)
            server.receipts.stored.delete_what_did_not_land(now_ms - FAILURES_KEPT_MS)
            telemetry.WAITING_DELETIONS.set(server.file_deletions.count_waiting())
            clean_at = time.monotonic() + CLEANING_SECONDS
        if not stop.is_set() and time.monotonic() >= export_at:
            export_what_is_due(server)
            export_at = time.monotonic() + min(CLEANING_SECONDS, server.rules.pointer_export_ms / 1000)
        if not stop.is_set() and server.rules.history_ms and time.monotonic() >= prune_at:
            prune_at = time.monotonic() + PRUNING_SECONDS
            server.old_rows.delete(server.rules.history_ms)
            server.maintenance_jobs.delete(server.rules.history_ms)
            server.receipts.stored.delete(now_ms - server.rules.history_ms)
        if not stop.is_set():
            unknown.look_for(LOOKING_SECONDS)
        if not stop.is_set():
            sweep_one(server)  # One in each round: the tables have a day for it.

    while not stop.wait(interval_s):
        give_back_freed()
        _survive(clean)
    queue.join()


class _Deleters:
    """Works off the queue of deletions, in several warehouses side by side, one entry of each.

    So a store that is slow or silent keeps the deletions of its own warehouse waiting, and no others.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._busy: set[int] = set()
        """The warehouses in which files are being deleted, by their ids."""

    def work_off_queue(self, stop: threading.Event, interval_s: float) -> None:
        """Work off what is due until stopped; look again once more was queued, or one is done."""
        with ThreadPoolExecutor(WAREHOUSES_TOGETHER, "deletions") as pool:
            while not stop.is_set():
                self._server.has_deletions.wait(interval_s)
                self._server.has_deletions.clear()
                _survive(lambda: self._begin_what_is_due(stop, pool))

    def _begin_what_is_due(self, stop: threading.Event, pool: ThreadPoolExecutor) -> None:
        while not stop.is_set() and self._server.dropped.end(self._server.file_deletions.now_ms()):
            pass
        while not stop.is_set() and len(self._busy) < WAREHOUSES_TOGETHER:
            deletion = self._server.file_deletions.lease(LEASE_MS, besides=tuple(self._busy))
            if deletion is None:
                return
            self._busy.add(deletion.warehouse_id)
            pool.submit(self._work_off, deletion)

    def _work_off(self, deletion: Deletion) -> None:
        _survive(lambda: work_off(self._server, deletion))
        self._busy.discard(deletion.warehouse_id)
        self._server.has_deletions.set()


def _survive(work: Callable[[], None]) -> None:
    try:
        work()
    except IcetowerError as error:
        log.warning("housekeeping has to wait: %s", error)
    except Exception:
        # The thread must survive an error of ours, or purges would stop until the next start.
        log.exception("housekeeping met something unexpected")
