"""A database that was set back under a running server, by a failover or a backup."""

from __future__ import annotations

import logging
from typing import Final

from app.catalog.context.callers import SERVER_ITSELF
from app.catalog.context.seen.landed_commits import LandedCommit
from app.catalog.context.server import Server
from app.errors import DatabaseUnavailable
from app.formats.metadata.chain_facts import place_text

log = logging.getLogger(__name__)

_MOST_SAID: Final = 20
_KEPT_MS: Final = 12 * 3_600_000
"""Events are kept for a day at least."""


def look_for_lost_commits(server: Server) -> None:
    """Say which commits of this process the database had, and has no more.

    Raises:
        DatabaseUnavailable: nothing is known; the next look asks again.
    """
    server.permit(SERVER_ITSELF, "look_for_lost_commits")
    landed = server.landed_commits
    if landed.found is not None and landed.found[1].at_ms < server.now_ms() - _KEPT_MS:
        landed.found = None
    noted, before = landed.take(), landed.found
    try:
        has_before = before is None or server.pointer_states.has_event(before[0], before[1].location)
        events = server.pointer_states.events_at(
            [commit.location for commit in noted], min((commit.at_ms for commit in noted), default=0)
        )
    except DatabaseUnavailable:
        landed.put_back(noted)
        raise
    lost = [commit for commit in noted if commit.location not in events]
    if before is not None and not has_before:
        lost.insert(0, before[1])
        landed.found = None
    there = [(events[commit.location], commit) for commit in noted if commit.location in events]
    landed.found = max(there, key=lambda each: each[0], default=landed.found)
    landed.lost.update(place_text(commit.location) for commit in lost)
    _say(lost)


def _say(lost: list[LandedCommit]) -> None:
    for commit in lost[:_MOST_SAID]:
        log.error(
            "the database was set back, by a failover to a standby that was behind or by a backup: it has no more that "
            "%s landed as %s. Stop all servers on it, and let icetower rebuild bring it forward before more is "
            "committed",
            commit.identifier,
            commit.location,
        )
    if len(lost) > _MOST_SAID:
        log.error("… and %d more commits", len(lost) - _MOST_SAID)
