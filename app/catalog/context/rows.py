"""Rows that use cases return, for rooms that may not see the database."""

from __future__ import annotations

from app.database.deletions.file_deletions import WaitingDeletion
from app.database.deletions.orphan_runs import OrphanRun
from app.database.dropped import Dropped
from app.database.maintenance_jobs import MaintenanceJob
from app.database.outcomes.idempotency_keys import IdempotencyClaim, RecordedOutcome
from app.database.outcomes.receipt import CommitReceipt, LandedChange, Outcome, ReceiptHead, id_of_time
from app.database.pointers.history import PointerEvent
from app.database.pointers.pointer import Pointer
from app.database.warehouses import Layout, Warehouse

__all__ = [
    "CommitReceipt",
    "Dropped",
    "IdempotencyClaim",
    "LandedChange",
    "Layout",
    "MaintenanceJob",
    "OrphanRun",
    "Outcome",
    "Pointer",
    "PointerEvent",
    "ReceiptHead",
    "RecordedOutcome",
    "WaitingDeletion",
    "Warehouse",
    "id_of_time",
]
