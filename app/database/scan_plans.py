"""Scan plans made in the background, and their results, for every server on the database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from sqlalchemy import ColumnElement, insert, select, update

from app.database.connections.database import Database
from app.database.schema.rows import scan_plans as rows
from app.database.statements.batches import delete_in_batches, never

State = Literal["submitted", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """One plan. If a submitted plan's lease has run out, the server that was making it is gone."""

    id: str
    pointer_id: int
    state: State
    result: str | None
    """As JSON: the result of a completed plan, the error of a failed one."""
    leased_until_ms: int
    expires_ms: int


_COLUMNS = [rows.c[field.name] for field in fields(ScanPlan)]


class ScanPlans:
    """All plans of a database; only a submitted plan changes its state."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, plan: ScanPlan, now_ms: int) -> None:
        """Store a new plan."""
        statement = insert(rows).values(**asdict(plan), created_ms=now_ms)
        self._database.write(lambda connection: connection.execute(statement))

    def find(self, plan_id: str, pointer_id: int, now_ms: int) -> ScanPlan | None:
        """Return a table's plan, unless it has expired."""
        query = select(*_COLUMNS).where(
            rows.c.id == plan_id, rows.c.pointer_id == pointer_id, rows.c.expires_ms > now_ms
        )
        row = self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else ScanPlan(*row)

    def renew(self, plan_id: str, leased_until_ms: int) -> bool:
        """Keep a plan that is still being made; False if it is no longer wanted."""
        return self._update(plan_id, leased_until_ms=leased_until_ms)

    def finish(
        self, plan_id: str, state: Literal["completed", "failed", "cancelled"], result: str | None = None
    ) -> bool:
        """Store what became of a submitted plan; False if the plan is not submitted."""
        return self._update(plan_id, state=state, result=result)

    def cancel(self, plan_id: str, pointer_id: int) -> bool:
        """Cancel a table's plan if it is still being made; False if it is not."""
        return self._update(plan_id, rows.c.pointer_id == pointer_id, state="cancelled")

    def delete_expired(self, now_ms: int, is_stopped: Callable[[], bool] = never) -> int:
        """Delete plans whose time is over, and return how many."""
        is_over = rows.c.expires_ms <= now_ms
        return delete_in_batches(self._database, rows.c.expires_ms, is_over, is_stopped=is_stopped)

    def _update(self, plan_id: str, *conditions: ColumnElement[bool], **values: Any) -> bool:
        is_submitted = rows.c.id == plan_id, rows.c.state == "submitted"
        statement = update(rows).where(*is_submitted, *conditions).values(values)
        return self._database.write(lambda connection: connection.execute(statement).rowcount == 1)
