"""Races for a pointer: attempts, and why a commit failed that lost them all."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import nullcontext
from typing import Final, TypeVar

from app import telemetry
from app.catalog.commits.intentions import Base
from app.catalog.context.kinds import M
from app.catalog.context.server import Server
from app.database.connections.process_turns import LONGEST_WAIT_S
from app.database.pointers.pointer import Pointer, PointerKind
from app.engine.change.landed_since import LandedSince, landed_between, landed_since
from app.engine.change.updates import Update
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import CommitFailed, PointerMoved
from app.standings import LandedSnapshot, Standing

FIRST_PAUSE_S: Final = 0.002
LONGEST_PAUSE_S: Final = 0.05
Loser = TypeVar("Loser")


def explain(error: CommitFailed, base: Base[M], updates: Sequence[Update]) -> None:
    """Add to an error how the table was and who came first. Views have no snapshots.

    Args:
        error: why the commit failed.
        base: the table.
        updates: what the commit wanted to change.
    """
    if error.standing is None and base.kind.of_pointer is PointerKind.TABLE:
        current = base.metadata
        landed = landed_since(current, updates, error) if isinstance(current, TableMetadata) else None
        error.standing = _standing(base.identifier, base.found, landed)


def outrun(first: Sequence[Base[M]], last: Sequence[Base[M]], attempts: int) -> PointerMoved:
    """Return the error of a commit that lost every race, with what is known of who won.

    Args:
        first: the names as the first attempt saw them.
        last: the same names as the last attempt saw them.
        attempts: how many attempts there were.
    """
    error = PointerMoved(last[0].identifier, attempts)
    for before, now in zip(first, last, strict=True):
        if now.seen != before.seen or len(last) == 1:
            landed = None
            if isinstance(now.metadata, TableMetadata) and isinstance(before.metadata, TableMetadata):
                landed = landed_between(before.metadata, now.metadata)
            error.standing = _standing(now.identifier, now.seen, landed)
            break
    return error


def _standing(identifier: TableIdentifier, seen: Pointer | None, landed: LandedSince | None) -> Standing:
    return Standing(
        namespace=identifier.namespace.levels,
        name=identifier.name,
        metadata_location=seen.metadata_location if seen else None,
        landed=None if landed is None else tuple(map(_landed, landed.snapshots)),
        landed_count=landed.count if landed else 0,
    )


def _landed(snapshot: Snapshot) -> LandedSnapshot:
    return LandedSnapshot(
        snapshot_id=snapshot.snapshot_id,
        operation=snapshot.operation,
        sequence_number=snapshot.sequence,
        timestamp_ms=snapshot.timestamp_ms,
    )


def attempt_in_turn(
    server: Server,
    names: Collection[str],
    most: int,
    attempt: Callable[[], Sequence[Loser]],
    lines: Collection[Hashable],
) -> Sequence[Loser]:
    """Attempt until nothing has lost a race; return what has lost the last one.

    After each race that was lost, others are let go on for milliseconds, and other processes are asked for a turn.
    Then those of this process wait, too, if there are lines to hold.

    Args:
        names: what the attempts are for.
        most: how many attempts there are, at least 1.
        attempt: returns what has lost a race.
        lines: those of the names; empty if the caller leads one of them.
    """
    lost: Sequence[Loser] = ()
    for number in range(most):
        if number:
            telemetry.COMMIT_RETRIES.inc()
            server.turns.ask(names)
            longest_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**number)
            server.pause(random.uniform(0.2, 1.0) * longest_s)  # noqa: S311 - back-off, not a secret
        held = server.commit_lines.hold(lines, LONGEST_WAIT_S) if number and lines else nullcontext()
        with held, server.turns.hold(names):
            lost = attempt()
        if not lost:
            break
    return lost
