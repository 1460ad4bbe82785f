"""Plans of scans that are made in the background: what became of each, for every server on the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, delete, insert, select, update

from app.database.connections.database import Database
from app.database.rows import scan_plans as rows

State = Literal["submitted", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """One plan. A submitted one whose lease ran out has lost the server that was making it."""

    id: str
    pointer_id: int
    state: State
    result: str | None
    """Of a completed plan what was found, of a failed one why, as JSON."""
    leased_until_ms: int
    expires_ms: int


_COLUMNS = (
    rows.c.id,
    rows.c.pointer_id,
    rows.c.state,
    rows.c.result,
    rows.c.leased_until_ms,
    rows.c.expires_ms,
)


class ScanPlans:
    """All plans of a database; a plan that is no longer submitted stays what it became."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, plan: ScanPlan, now_ms: int) -> None:
        """Remember a new plan."""
        values = {
            "id": plan.id,
            "pointer_id": plan.pointer_id,
            "state": plan.state,
            "result": plan.result,
            "created_ms": now_ms,
            "leased_until_ms": plan.leased_until_ms,
            "expires_ms": plan.expires_ms,
        }
        self._database.write(lambda connection: connection.execute(insert(rows).values(values)))

    def find(self, plan_id: str, pointer_id: int, now_ms: int) -> ScanPlan | None:
        """Return a table's plan, unless it has expired."""
        query = select(*_COLUMNS).where(
            rows.c.id == plan_id, rows.c.pointer_id == pointer_id, rows.c.expires_ms > now_ms
        )
        row = self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else ScanPlan(*row)

    def renew(self, plan_id: str, leased_until_ms: int) -> bool:
        """Tell the others that a plan is still being made; False if nobody wants it any more."""
        return self._update(plan_id, leased_until_ms=leased_until_ms)

    def finish(
        self, plan_id: str, state: Literal["completed", "failed", "cancelled"], result: str | None = None
    ) -> bool:
        """Say what became of a submitted plan; False if that was said before, or if it was never submitted."""
        return self._update(plan_id, state=state, result=result)

    def cancel(self, plan_id: str, pointer_id: int) -> bool:
        """Give up a table's plan if it is still being made; False if it is not."""
        return self._update(plan_id, rows.c.pointer_id == pointer_id, state="cancelled")

    def delete_expired(self, now_ms: int) -> int:
        """Forget plans that nobody may ask for any more; return how many."""
        old = select(rows.c.id).where(rows.c.expires_ms <= now_ms).limit(1)
        if self._database.read(lambda connection: connection.execute(old).one_or_none()) is None:
            return 0
        statement = delete(rows).where(rows.c.expires_ms <= now_ms)
        return self._database.write(lambda connection: int(connection.execute(statement).rowcount))

    def _update(self, plan_id: str, *conditions: ColumnElement[bool], **values: Any) -> bool:
        is_submitted = rows.c.id == plan_id, rows.c.state == "submitted"
        statement = update(rows).where(*is_submitted, *conditions).values(values)
        return self._database.write(lambda connection: connection.execute(statement).rowcount == 1)
