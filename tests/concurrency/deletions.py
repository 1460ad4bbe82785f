"""Waiting for what the servers' deleters have to do."""

from __future__ import annotations

import time

from sqlalchemy import func, select

from app.database.connections.database import Database
from app.database.deletions.file_deletions import FileDeletions
from app.database.schema.rows import file_deletions

LONGEST_WAIT_S = 120


def wait_for_deletions(database: Database) -> None:
    """Wait until nothing is being deleted, and nothing is due.

    A purge that saw a file too young to be judged, of a creation that was at work beside it, looks again in a day:
    it is not waited for.
    """
    until_s = time.monotonic() + LONGEST_WAIT_S
    while left := _count_near(database):
        assert time.monotonic() < until_s, f"{left} deletions are not done"
        time.sleep(0.05)


def _count_near(database: Database) -> int:
    rows = file_deletions
    is_near = (rows.c.attempts > 0) | (rows.c.not_before_ms <= FileDeletions(database).now_ms())
    query = select(func.count()).where(rows.c.state == "queued", is_near)
    return database.read(lambda connection: connection.scalars(query).one())
