"""The queue of file deletions, whose clock is the database's."""

from __future__ import annotations

from sqlalchemy import update

from app.catalog.context.server import Server
from app.catalog.deletions.queue import work_off
from app.catalog.deletions.runner import LEASE_MS
from app.database.deletions.file_deletions import FileDeletions
from app.database.schema.rows import file_deletions as rows


def let_queue_age(queue: FileDeletions, by_ms: int) -> None:
    """Make all that is queued or leased older, as if time had passed."""
    statement = update(rows).values(
        not_before_ms=rows.c.not_before_ms - by_ms, leased_until_ms=rows.c.leased_until_ms - by_ms
    )
    queue._database.write(lambda connection: connection.execute(statement))


def work_off_one(server: Server) -> bool:
    """Delete the files of the oldest entry that is due; return whether there was one."""
    deletion = server.file_deletions.lease(LEASE_MS)
    if deletion is not None:
        work_off(server, deletion)
    return deletion is not None
