"""Commits to many tables in one statement, for Postgres.

Each row moves, or is left for a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from app.database.connections.database import Database
from app.database.connections.driver_errors import LockNotFree
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.database.outcomes.receipt import CommitReceipt
from app.database.outcomes.receipts import GivenUpMeanwhile
from app.database.pointers.history import Author, event_values
from app.database.pointers.moves import Advance
from app.database.pointers.shared_changes import (
    CLAIMS,
    LONGEST_LOCK_MS,
    LONGEST_WAIT_S,
    MOST_TOGETHER,
    RECEIPTS,
    HeldUp,
    are_distinct,
    check_noted,
    claim_values,
    claiming_of,
    landing_of,
    receipt_values,
    table_of,
    values_in,
)
from app.errors import IdempotencyKeyTaken, InvalidRequest
from app.lines import Lines

_ADVANCED = {
    "id": "bigint",
    "seen": "text",
    "seen_registration": "bigint",
    "location": "text",
    "uuid": "text",
    "registration": "bigint",
    "event": "text",
    "at_ms": "bigint",
    "author": "text",
    "request_id": "text",
    "job": "text",
}
# A row that another transaction holds is passed over: to wait for it would hold up all others.
_STATEMENT = f"""
    WITH wanted AS ({table_of("wanted", _ADVANCED)}),
    receipt AS ({RECEIPTS}),
    claim AS ({CLAIMS}),
    free AS (
        SELECT pointers.id FROM pointers JOIN wanted
        ON wanted.id = pointers.id AND wanted.seen = pointers.metadata_location
            AND wanted.seen_registration = pointers.registration
        ORDER BY pointers.id FOR NO KEY UPDATE OF pointers SKIP LOCKED
    ), changed AS (
        UPDATE pointers SET
            metadata_location = wanted.location, uuid = wanted.uuid, registration = wanted.registration,
            updated_ms = greatest(pointers.updated_ms, wanted.at_ms)
        FROM wanted JOIN free ON free.id = wanted.id
        WHERE pointers.id = wanted.id
        RETURNING pointers.*, pointers.id AS number
    ), noted AS (
        INSERT INTO pointer_history (
            pointer_id, warehouse_id, namespace_key, name, kind, event, previous_location, location, uuid, at_ms,
            author, request_id, job
        )
        SELECT changed.id, namespaces.warehouse_id, namespaces.key, changed.name, changed.kind, wanted.event,
            wanted.seen, changed.metadata_location, changed.uuid, changed.updated_ms, wanted.author,
            wanted.request_id, wanted.job
        FROM changed
        JOIN namespaces ON namespaces.id = changed.namespace_id
        JOIN wanted ON wanted.id = changed.id
        RETURNING pointer_id
    ), landed AS ({landing_of("changed")}
    ), claimed AS ({claiming_of("changed")})
    SELECT (SELECT array_agg(pointer_id) FROM noted), (SELECT count(*) FROM landed), (SELECT count(*) FROM claimed)
"""  # noqa: S608 - only names of columns and types are put in


@dataclass(slots=True)
class PlainAdvance:
    """A commit to one table that only moves its pointer, notes that, and has one receipt."""

    move: Advance
    author: Author
    receipt: CommitReceipt
    claim: IdempotencyClaim | None = None
    has_moved: bool = False


class SharedAdvances:
    """Moves pointers of commits that go side by side, in one transaction and by one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lines = Lines[PlainAdvance](MOST_TOGETHER, LONGEST_WAIT_S)
        self._held_up = HeldUp()

    def put(self, plain: PlainAdvance) -> bool:
        """Move a pointer together with those of others; False if it has to be tried by itself.

        Raises:
            DatabaseUnavailable: nothing was changed.
            CommitStateUnknown: the reply to COMMIT was lost.
        """
        if plain.claim is not None and self._held_up.has(plain.claim.principal_and_key):
            return False
        return self._lines.join_companions(plain, self._put_all) and plain.has_moved

    def _put_all(self, group: Sequence[PlainAdvance]) -> None:
        if len({plain.move.seen.id for plain in group}) < len(group):
            return  # Two of one table: the second one has to see what the first one did.
        claims = {plain.move.seen.id: plain.claim for plain in group if plain.claim is not None}
        if not are_distinct(claims.values()):
            return  # Of two equal requests, likewise.
        ordered = sorted(group, key=lambda plain: plain.move.seen.id)
        try:
            moved = self._database.write_without_waiting(
                lambda connection: _advance_all(connection, ordered, claims)
            )
        except (GivenUpMeanwhile, IdempotencyKeyTaken, InvalidRequest):
            return  # Nothing was changed: by itself each learns whether it is the one.
        except LockNotFree:
            if not claims:
                raise
            self._held_up.note(claim.principal_and_key for claim in claims.values())
            return
        for plain in group:
            plain.has_moved = plain.move.seen.id in moved


def is_plain(move: Advance, receipts: Sequence[CommitReceipt]) -> bool:
    """Say whether a move is one that `SharedAdvances` can make with its receipts."""
    return (
        len(receipts) == 1
        and not move.registration
        and move.expiry is None
        and move.taken_in is None
        and not (move.places or move.foreign or move.others)
    )


def _advance_all(
    connection: Connection, group: Sequence[PlainAdvance], claims: Mapping[int, IdempotencyClaim]
) -> frozenset[int]:
    """Move those that can be moved, and return the ids of their pointers.

    Raises:
        GivenUpMeanwhile: a client has heard that one of them will not happen.
        IdempotencyKeyTaken: the key of one was answered before.
    """
    receipts = [(plain.move.seen.id, plain.receipt) for plain in group]
    values = (
        values_in("wanted", _ADVANCED, list(map(_moved, group)))
        | receipt_values(receipts)
        | claim_values(claims)
    )
    if claims:
        # An equal request may be under way elsewhere, and hold its key until it ends.
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LONGEST_LOCK_MS}")
    found, landed, claimed = connection.exec_driver_sql(_STATEMENT, values).one()
    moved = frozenset(found or ())
    check_noted(moved, claims, landed=landed, claimed=claimed)
    return moved


def _moved(plain: PlainAdvance) -> dict[str, Any]:
    """Return what the statement needs of a move and its event."""
    move, seen = plain.move, plain.move.seen
    event = event_values(seen.id, move.event, plain.author, seen.metadata_location)
    return event | {
        "id": seen.id,
        "seen": seen.metadata_location,
        "seen_registration": seen.registration,
        "location": move.location,
        "uuid": move.uuid,
        "registration": move.registration_after,
        "at_ms": event["event_at_ms"],
    }
