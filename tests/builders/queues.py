"""The queue of file deletions, whose clock is the database's."""

from __future__ import annotations

from sqlalchemy import update

from app.database.deletions.file_deletions import FileDeletions
from app.database.schema.rows import file_deletions as rows


def let_queue_age(queue: FileDeletions, by_ms: int) -> None:
    """Make all that is queued or leased older, as if time had passed."""
    statement = update(rows).values(
        not_before_ms=rows.c.not_before_ms - by_ms, leased_until_ms=rows.c.leased_until_ms - by_ms
    )
    queue._database.write(lambda connection: connection.execute(statement))
