"""The landing queues: one row for each table on which writers have lost races lately."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import BigInteger, Connection, bindparam, select, update

from app.database.connections.clock import database_now_ms
from app.database.connections.database import Database
from app.database.schema.rows import landing_queues as rows
from app.database.schema.rows import pointers
from app.database.statements.batches import delete_in_batches, never
from app.database.statements.inserts import OnEachDatabase


@dataclass(frozen=True, slots=True)
class StoredQueue:
    """A queue as it was read."""

    version: int
    """0 if the table has none yet."""
    content: str | None
    now_ms: int
    """The time of the database, which all servers share."""
    changed_ms: int = 0
    """When it was put there; later than now if the database's clock was set back since."""


_FIND = select(rows.c.version, rows.c.content, database_now_ms().label("now_ms"), rows.c.changed_ms).where(
    rows.c.pointer_id == bindparam("of_id")
)
_NOW = select(database_now_ms())
_INSERT = OnEachDatabase(rows, lambda insert: insert.on_conflict_do_nothing().returning(rows.c.version))
_UPDATE = (
    update(rows)
    .where(rows.c.pointer_id == bindparam("of_id"), rows.c.version == bindparam("seen_version"))
    .values(
        version=bindparam("new_version"),
        content=bindparam("new_content"),
        changed_ms=bindparam("at_ms", type_=BigInteger),
    )
)
_RESERVE = (
    update(pointers)
    .where(pointers.c.id == bindparam("of_id"), pointers.c.reserved != bindparam("is_reserved"))
    .values(reserved=bindparam("is_reserved"))
)


class LandingQueues:
    """The queues of all tables; every server on the database sees the same ones."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, pointer_id: int) -> StoredQueue:
        """Return a table's queue.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """

        def load(connection: Connection) -> StoredQueue:
            row = connection.execute(_FIND, {"of_id": pointer_id}).one_or_none()
            if row is None:
                return StoredQueue(0, None, int(connection.execute(_NOW).scalar_one()))
            return StoredQueue(*row)

        return self._database.read(load)

    def put(self, pointer_id: int, seen: StoredQueue, content: str, *, is_reserved: bool) -> bool:
        """Replace a queue if it is as it was seen; False if another server was faster.

        Args:
            pointer_id: the table.
            seen: what the new queue was made of.
            content: the new queue.
            is_reserved: whether commits to the table have to ask before they land.

        Raises:
            DatabaseUnavailable: nothing was changed.
            CommitStateUnknown: it is not known whether the queue was replaced.
        """
        values = {
            "of_id": pointer_id,
            "seen_version": seen.version,
            "new_version": seen.version + 1,
            "new_content": content,
            "at_ms": seen.now_ms,
        }
        new_row = {
            "pointer_id": pointer_id,
            "version": 1,
            "content": content,
            "changed_ms": seen.now_ms,
        }

        def put(connection: Connection) -> bool:
            if seen.version:
                is_put = connection.execute(_UPDATE, values).rowcount == 1
            else:
                inserted = connection.execute(_INSERT[connection.dialect.name], new_row)
                is_put = inserted.one_or_none() is not None
            if not is_put:
                return False
            connection.execute(_RESERVE, {"of_id": pointer_id, "is_reserved": int(is_reserved)})
            return True

        return self._database.write_lightly(put)

    def delete_old(self, age_ms: int, is_stopped: Callable[[], bool] = never) -> int:
        """Delete the queues in which nothing has happened for so long, and return how many."""
        is_old = rows.c.changed_ms < database_now_ms() - age_ms
        return delete_in_batches(self._database, rows.c.changed_ms, is_old, is_stopped=is_stopped)
