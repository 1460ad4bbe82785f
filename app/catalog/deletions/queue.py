"""Working off the queue of file deletions: one entry at a time, with retries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from app import telemetry
from app.catalog.context.catalog import Catalog, own_catalog
from app.catalog.context.server import Server
from app.catalog.deletions.expired_files import delete_expired_files
from app.catalog.deletions.marked_orphans import delete_marked_orphans
from app.catalog.deletions.purge import purge_files
from app.catalog.deletions.runner import PlanOutdated
from app.database.deletions.file_deletions import Deletion, FinalState, Kind
from app.errors import CommitStateUnknown, DatabaseBehind, IcetowerError, Unavailable

log = logging.getLogger(__name__)

FIRST_RETRY_MS = 30_000
LONGEST_RETRY_MS = 3_600_000
MANY_FAILURES = 50
"""After so many an entry is tried four times a day only. It is not given up: nothing else looks for its files."""
LAST_RETRY_MS = 6 * LONGEST_RETRY_MS
_PASSES = Unavailable, CommitStateUnknown, DatabaseBehind
"""What says nothing of the files: another attempt may do, or another server, which has what a setting names."""

_WORK: Mapping[Kind, Callable[[Catalog, Deletion], FinalState | None]] = {
    "purge": purge_files,
    "expire": delete_expired_files,
    "orphans": delete_marked_orphans,
}


def work_off(server: Server, deletion: Deletion) -> None:
    """Delete the files of an entry of the queue that is leased.

    Files deleted before a crash are absent the next time. See `app.catalog.context.deletable` for what is never
    touched.

    Raises:
        DatabaseUnavailable: what became of it cannot be noted; it is worked off again when its lease is over.
    """
    try:
        state = _WORK[deletion.kind](own_catalog(server, deletion.warehouse_id), deletion)
    except PlanOutdated:
        log.info(
            "%s of %s: its files are looked for anew, or that is done", deletion.kind, deletion.identifier
        )
        # It may have begun: until it has ended, its table cannot be registered.
        server.file_deletions.release(deletion)
        return
    except _PASSES as error:
        _try_later(server, deletion, str(error))
        return
    except IcetowerError as error:
        log.warning(
            "%s of %s stopped: %s; what it had not deleted stays", deletion.kind, deletion.identifier, error
        )
        _finish(server, deletion, "failed", str(error))
        return
    except Exception as error:
        # An error of ours, or no thread can be started: people are to see that it waits.
        log.exception("%s of %s met something unexpected", deletion.kind, deletion.identifier)
        _try_later(server, deletion, f"{type(error).__name__}: {error}"[:500])
        return
    if state is None:
        log.info("%s of %s: looks again later", deletion.kind, deletion.identifier)
        return
    _finish(server, deletion, state)
    log.info("%s of %s: %s", deletion.kind, deletion.identifier, state)


def _try_later(server: Server, deletion: Deletion, reason: str) -> None:
    failures = deletion.attempts + 1
    if deletion.kind == "orphans" and failures >= MANY_FAILURES:
        log.error("orphans of %s given up after %d failures: %s", deletion.identifier, failures, reason)
        _finish(server, deletion, "failed", reason)  # The next search finds them again.
        return
    longest_ms = LONGEST_RETRY_MS if failures < MANY_FAILURES else LAST_RETRY_MS
    wait_ms = min(longest_ms, FIRST_RETRY_MS * 2 ** min(failures, 10))
    log.warning(
        "%s of %s waits, and is tried again in %d s: %s",
        deletion.kind,
        deletion.identifier,
        wait_ms // 1000,
        reason,
    )
    if server.file_deletions.postpone(deletion, wait_ms, reason):
        telemetry.FILE_DELETIONS.labels(outcome="postponed").inc()


def _finish(server: Server, deletion: Deletion, state: FinalState, error: str | None = None) -> None:
    if server.file_deletions.finish(deletion, state, error):
        telemetry.FILE_DELETIONS.labels(outcome=state).inc()
