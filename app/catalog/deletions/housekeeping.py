"""Housekeeping: the thread that deletes what is over, and exports pointers."""

from __future__ import annotations

import logging
import threading
import time

from app import telemetry
from app.catalog.context.seen.receipt_book import FAILURES_KEPT_MS
from app.catalog.context.server import Server
from app.catalog.deletions.foreign_looks import UnknownReaders
from app.catalog.deletions.queue import work_off_one
from app.catalog.deletions.sweeps import sweep_one
from app.catalog.exports.writing import export_what_is_due
from app.errors import IcetowerError

log = logging.getLogger(__name__)

CLEANING_SECONDS = 60.0
LOOKING_SECONDS = 1.0
PRUNING_SECONDS = 6 * 3_600.0
QUEUE_KEPT_MS = 24 * 3_600_000


def keep_house(server: Server, stop: threading.Event, interval_s: float) -> None:
    """Delete files and rows whose time is over, and export pointers, until stopped.

    Args:
        stop: set before `server.has_deletions` to end this at once.
        interval_s: how long to wait at most; what this process has queued itself is done without waiting.
    """
    clean_at = prune_at = export_at = 0.0
    unknown = UnknownReaders(server)
    while not stop.is_set():
        server.has_deletions.wait(interval_s)
        server.has_deletions.clear()
        try:
            while not stop.is_set() and server.dropped.end(server.now_ms()):
                pass
            while not stop.is_set() and work_off_one(server):
                pass
            if not stop.is_set() and time.monotonic() >= clean_at:
                server.idempotency_keys.delete_expired(server.now_ms())
                server.scan_plans.delete_expired(server.now_ms())
                server.landing_queues.delete_old(QUEUE_KEPT_MS)
                server.receipts.stored.delete_what_did_not_land(server.now_ms() - FAILURES_KEPT_MS)
                telemetry.WAITING_DELETIONS.set(server.file_deletions.count_waiting())
                clean_at = time.monotonic() + CLEANING_SECONDS
            if not stop.is_set() and time.monotonic() >= export_at:
                export_what_is_due(server)
                export_at = time.monotonic() + min(CLEANING_SECONDS, server.rules.pointer_export_ms / 1000)
            if not stop.is_set() and server.rules.history_ms and time.monotonic() >= prune_at:
                prune_at = time.monotonic() + PRUNING_SECONDS
                server.old_rows.delete(server.rules.history_ms)
                server.maintenance_jobs.delete(server.rules.history_ms)
                server.receipts.stored.delete(server.now_ms() - server.rules.history_ms)
            if not stop.is_set():
                unknown.look_for(LOOKING_SECONDS)
            if not stop.is_set():
                sweep_one(server)  # One in each round: the tables have a day for it.
        except IcetowerError as error:
            log.warning("housekeeping has to wait: %s", error)
        except Exception:
            # The thread must survive an error of ours, or purges would stop until the next start.
            log.exception("housekeeping met something unexpected")
