"""Housekeeping: the threads that delete what is over, and export pointers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from app import telemetry
from app.catalog.context.deletable import LEASE_MS
from app.catalog.context.seen.receipt_book import FAILURES_KEPT_MS
from app.catalog.context.server import Server
from app.catalog.context.threads.side_work import start_in
from app.catalog.deletions.foreign_looks import UnknownReaders
from app.catalog.deletions.queue import work_off
from app.catalog.deletions.sweeps import sweep_one, take_back_left
from app.catalog.exports.set_back import look_for_lost_commits
from app.catalog.exports.writing import export_what_is_due
from app.database.connections.clock import steady_ns
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
LEAP_MS: Final = 60_000
BELIEVED_AFTER_MS: Final = 3_600_000
"""How long after a leap of the database's clock its time ends nothing: somebody may set it right again."""


class BelievedTime:
    """The database's time, as far as it may end what waits for its time.

    A clock that is set wrong for a moment would end every undrop period and every grace period in that moment.
    """

    def __init__(self, ask_ms: Callable[[], int], steady_ms: Callable[[], int]) -> None:
        self._ask_ms = ask_ms
        self._steady_ms = steady_ms
        self._began_ms: int | None = None
        """The believed time when the steady clock was at 0."""
        self._leapt_ms: int | None = None
        """When a leap was first seen, by the steady clock."""

    def find_ms(self) -> int | None:
        """Return the time; None for a while after it has leapt ahead.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        steady_ms = self._steady_ms()
        now_ms = self._ask_ms()
        ahead_ms = 0 if self._began_ms is None else now_ms - steady_ms - self._began_ms
        if ahead_ms > LEAP_MS and self._leapt_ms is None:
            self._leapt_ms = steady_ms
            log.warning(
                "the database's clock has leapt %d s ahead: nothing is ended or deleted by it for an hour",
                ahead_ms // 1000,
            )
        if (
            ahead_ms > LEAP_MS
            and self._leapt_ms is not None
            and steady_ms < self._leapt_ms + BELIEVED_AFTER_MS
        ):
            return None
        self._began_ms, self._leapt_ms = now_ms - steady_ms, None
        return now_ms


def _believed_time(server: Server) -> BelievedTime:
    # Not the server's time: as long as the database has not said its own, that is the machine's.
    return BelievedTime(server.file_deletions.now_ms, lambda: steady_ns() // 1_000_000)


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
    stopped = stop.is_set
    unknown, believed = UnknownReaders(server), _believed_time(server)

    def attempt(*steps: Callable[[], object]) -> None:
        """Do each step by itself: the others do not wait for one that fails."""
        for step in steps:
            if not stop.is_set():
                _survive(step)

    def clean() -> None:
        nonlocal clean_at, prune_at, export_at
        now_ms = believed.find_ms()
        attempt(partial(look_for_lost_commits, server), partial(take_back_left, server))
        if now_ms is not None and time.monotonic() >= clean_at:
            clean_at = time.monotonic() + CLEANING_SECONDS
            receipts = server.receipts.stored
            attempt(
                partial(server.idempotency_keys.delete_expired, now_ms, stopped),
                partial(server.scan_plans.delete_expired, now_ms, stopped),
                partial(server.landing_queues.delete_old, QUEUE_KEPT_MS, stopped),
                partial(receipts.delete_what_did_not_land, now_ms - FAILURES_KEPT_MS, stopped),
                lambda: telemetry.WAITING_DELETIONS.set(server.file_deletions.count_waiting()),
            )
        if time.monotonic() >= export_at:
            export_at = time.monotonic() + min(CLEANING_SECONDS, server.rules.pointer_export_ms / 1000)
            attempt(partial(export_what_is_due, server, stopped))
        if now_ms is None:
            return
        if server.rules.history_ms and time.monotonic() >= prune_at:
            prune_at = time.monotonic() + PRUNING_SECONDS
            kept_ms = server.rules.history_ms
            attempt(
                partial(server.old_rows.delete, kept_ms, stopped),
                partial(server.maintenance_jobs.delete, kept_ms, stopped),
                partial(server.receipts.stored.delete, now_ms - kept_ms, stopped),
            )
        attempt(
            partial(unknown.look_for, LOOKING_SECONDS),
            partial(sweep_one, server),  # One in each round: the tables have a day for it.
        )

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
        self._believed = _believed_time(server)
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
        now_ms = self._believed.find_ms()
        if now_ms is None:
            return
        _survive(lambda: self._end_what_is_over(stop, now_ms))
        while not stop.is_set() and len(self._busy) < WAREHOUSES_TOGETHER:
            deletion = self._server.file_deletions.lease(LEASE_MS, besides=tuple(self._busy))
            if deletion is None:
                return
            self._busy.add(deletion.warehouse_id)
            if start_in(pool, partial(self._work_off, deletion)) is None:
                log.warning("no thread can be started to delete files of %s now", deletion.identifier)
                self._busy.discard(deletion.warehouse_id)
                self._server.file_deletions.release(deletion)
                return

    def _end_what_is_over(self, stop: threading.Event, now_ms: int) -> None:
        while not stop.is_set() and self._server.dropped.end(now_ms):
            pass

    def _work_off(self, deletion: Deletion) -> None:
        _survive(lambda: work_off(self._server, deletion))
        self._busy.discard(deletion.warehouse_id)
        self._server.has_deletions.set()


def _survive(work: Callable[[], object]) -> None:
    try:
        work()
    except IcetowerError as error:
        log.warning("housekeeping has to wait: %s", error)
    except Exception:
        # The thread must survive an error of ours, or purges would stop until the next start.
        log.exception("housekeeping met something unexpected")
