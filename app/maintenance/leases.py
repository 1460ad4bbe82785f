"""Holding a table while a job runs: the lease is renewed until the job ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.client.http.failures import CallFailed, CatalogRefused
from app.client.table.maintenance import MaintenanceCalls
from app.engine.model.identifiers import TableIdentifier

LEASE_MS = 120_000
RENEWALS = 4
"""How often a lease is renewed before it would run out."""


class Lease:
    """Says whether a table is still held for a job."""

    def __init__(self) -> None:
        self.lost: str | None = None
        """Why the table is held no longer; None while it is."""


@contextmanager
def held(
    calls: MaintenanceCalls, table: TableIdentifier, job_id: str, lease_ms: int = LEASE_MS
) -> Iterator[Lease]:
    """Hold a table for a job that has begun, until the block ends.

    If the server does not answer, it is asked again: the lease may outlast that.
    """
    lease, stop = Lease(), threading.Event()

    def renew() -> None:
        while not stop.wait(lease_ms / 1000 / RENEWALS):
            try:
                calls.hold_job(table, job_id, lease_ms)
            except CatalogRefused as refused:
                if refused.status in (404, 409):
                    lease.lost = str(refused)
                    return
            except CallFailed:
                continue

    renewing = threading.Thread(target=renew, name="lease", daemon=True)
    renewing.start()
    try:
        yield lease
    finally:
        stop.set()
        renewing.join()
