"""Rows that use cases return, for rooms that may not see the database."""

from __future__ import annotations

from app.database.idempotency_keys import IdempotencyClaim, RecordedOutcome
from app.database.pointers.history import PointerEvent
from app.database.pointers.pointer import Pointer
from app.database.warehouses import Warehouse

__all__ = ["IdempotencyClaim", "Pointer", "PointerEvent", "RecordedOutcome", "Warehouse"]
