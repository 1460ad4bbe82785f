"""A database that was set back under a running server, by a failover or a backup."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from app.catalog.context.callers import SERVER_ITSELF
from app.catalog.context.seen.landed_commits import LandedCommit
from app.catalog.context.server import Server
from app.errors import DatabaseUnavailable
from app.formats.metadata.chain_facts import place_text

log = logging.getLogger(__name__)

_MOST_SAID: Final = 100
_KEPT_MS: Final = 12 * 3_600_000
"""Events are kept for a day at least."""


def look_for_lost_commits(server: Server) -> None:
    """Say which commits of this process the database has lost: the last one to each table.

    Raises:
        DatabaseUnavailable: nothing is known; the next look asks again.
    """
    server.permit(SERVER_ITSELF, "look_for_lost_commits")
    landed = server.landed_commits
    noted = landed.take()
    since_ms = min((commit.at_ms for commit in noted), default=0)
    try:
        events = server.pointer_states.events_at([commit.location for commit in noted], since_ms)
        lost = {commit.table: commit for commit in noted if commit.location not in events}
        lost = _lost_before(server, everything=bool(lost)) | lost
    except DatabaseUnavailable:
        landed.put_back(noted)
        raise
    for table in lost:
        landed.found.pop(table, None)
    for commit in noted:
        if commit.location in events:
            landed.keep(commit, events[commit.location])
    landed.lost.update(place_text(commit.location) for commit in lost.values())
    _say(list(lost.values()))


def _lost_before(server: Server, *, everything: bool) -> dict[str, LandedCommit]:
    """Return the commits that the database had at earlier looks, and has no more, by table.

    Args:
        everything: whether to ask for all of them; else only if the newest one is not there.
    """
    found, since_ms = server.landed_commits.found, server.now_ms() - _KEPT_MS
    kept = [each for each in found.values() if each[1].at_ms >= since_ms]
    newest = max(kept, key=lambda each: each[0], default=None)
    if newest is None or not (everything or _missing(server, [newest])):
        return {}
    return {commit.table: commit for commit in _missing(server, kept)}


def _missing(server: Server, kept: Sequence[tuple[int, LandedCommit]]) -> list[LandedCommit]:
    there = server.pointer_states.locations_at([sequence for sequence, _ in kept])
    return [commit for sequence, commit in kept if there.get(sequence) != commit.location]


def _say(lost: Sequence[LandedCommit]) -> None:
    for commit in lost[:_MOST_SAID]:
        log.error(
            "the database was set back, by a failover to a standby that was behind or by a backup: it has no more that "
            "%s landed as %s. Stop all servers on it, and let icetower rebuild bring it forward before more is "
            "committed",
            commit.identifier,
            commit.location,
        )
    if len(lost) > _MOST_SAID:
        log.error("the database has lost commits to %d more tables or views", len(lost) - _MOST_SAID)
