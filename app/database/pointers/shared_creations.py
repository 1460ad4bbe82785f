"""New tables and views in one statement, for Postgres.

Each is made, or left for a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from app.database.connections.database import Database
from app.database.connections.driver_errors import LockNotFree
from app.database.namespace_keys import key_of
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.database.outcomes.receipt import CommitReceipt
from app.database.outcomes.receipts import GivenUpMeanwhile
from app.database.pointers.history import Author, event_values
from app.database.pointers.moves import Creation
from app.database.pointers.names_over_time import check_begun
from app.database.pointers.places import PlaceTaken, check_alone
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
from app.engine.model.identifiers import TableIdentifier
from app.errors import CommitStateUnknown, IdempotencyKeyTaken, InvalidRequest
from app.lines import Lines

_CREATED = {
    "number": "bigint",
    "warehouse_id": "bigint",
    "key": "text",
    "kind": "text",
    "name": "text",
    "uuid": "text",
    "location": "text",
    "event": "text",
    "at_ms": "bigint",
    "author": "text",
    "request_id": "text",
    "job": "text",
}
Name = tuple[int, TableIdentifier]
"""The id of a warehouse, and a name in it."""
_PLACE = {"number": "bigint", "place": "text"}
# A namespace that another transaction holds is passed over, and so is a name that is taken.
_STATEMENT = f"""
    WITH wanted AS ({table_of("wanted", _CREATED)}),
    receipt AS ({RECEIPTS}),
    claim AS ({CLAIMS}),
    folder AS ({table_of("folder", _PLACE)}),
    home AS (
        SELECT namespaces.id, namespaces.warehouse_id, namespaces.key, namespaces.created_ms
        FROM (SELECT DISTINCT warehouse_id, key FROM wanted) AS named
        CROSS JOIN LATERAL (
            SELECT * FROM namespaces
            WHERE namespaces.warehouse_id = named.warehouse_id AND namespaces.key = named.key
            FOR KEY SHARE SKIP LOCKED
        ) AS namespaces
    ), free AS (
        SELECT wanted.*, home.id AS namespace_id, greatest(wanted.at_ms, home.created_ms, (
            SELECT max(until_ms) FROM pointer_names AS earlier
            WHERE earlier.warehouse_id = wanted.warehouse_id AND earlier.namespace_key = wanted.key
                AND earlier.kind IN ('table', 'view') AND earlier.name = wanted.name
        )) AS from_ms
        FROM wanted JOIN home USING (warehouse_id, key)
    ), made AS (
        INSERT INTO pointers (
            namespace_id, kind, name, uuid, metadata_location, created_ms, updated_ms, registration
        )
        SELECT namespace_id, kind, name, uuid, location, from_ms, from_ms, 0 FROM free ORDER BY namespace_id, name
        ON CONFLICT (namespace_id, name) DO NOTHING
        RETURNING id, namespace_id, name
    ), created AS (
        SELECT free.*, made.id FROM free JOIN made USING (namespace_id, name)
    ), placed AS (
        INSERT INTO table_places (pointer_id, place)
        SELECT created.id, folder.place FROM folder JOIN created USING (number)
        ON CONFLICT DO NOTHING
    ), noted AS (
        INSERT INTO pointer_history (
            pointer_id, warehouse_id, namespace_key, name, kind, event, location, uuid, at_ms, author, request_id, job
        )
        SELECT id, warehouse_id, key, name, kind, event, location, uuid, from_ms, author, request_id, job
        FROM created
    ), named AS (
        INSERT INTO pointer_names (pointer_id, warehouse_id, namespace_key, kind, name, from_ms)
        SELECT id, warehouse_id, key, kind, name, from_ms FROM created
    ), landed AS ({landing_of("created")}
    ), claimed AS ({claiming_of("created")})
    SELECT number, id, (SELECT count(*) FROM landed), (SELECT count(*) FROM claimed) FROM created
"""  # noqa: S608 - only names of columns and types are put in


@dataclass(slots=True)
class PlainCreation:
    """A new table or view whose metadata is not from elsewhere, and that has one receipt."""

    creation: Creation
    author: Author
    receipt: CommitReceipt
    claim: IdempotencyClaim | None = None
    is_made: bool = False
    unknown: CommitStateUnknown | None = None
    """The reply to the COMMIT that made it was lost."""

    @property
    def name(self) -> Name:
        """Its name, with its warehouse."""
        return self.creation.warehouse_id, self.creation.identifier


class SharedCreations:
    """Makes pointers of creations that go side by side, in one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lines = Lines[PlainCreation](MOST_TOGETHER, LONGEST_WAIT_S)
        self._held_up = HeldUp()

    def put(self, plain: PlainCreation) -> bool:
        """Make a pointer together with those of others; False if it has to be tried by itself.

        Raises:
            DatabaseUnavailable: nothing was changed.
            CommitStateUnknown: the reply to COMMIT was lost.
        """
        if self._held_up.has(plain.name):
            return False
        if not self._lines.join_companions(plain, self._put_all):
            return False
        if plain.unknown is not None:
            raise plain.unknown
        return plain.is_made

    def _put_all(self, group: Sequence[PlainCreation]) -> None:
        # Of two with one name the second one has to see what the first one did.
        first_of_name = {plain.name: plain for plain in reversed(group)}.values()
        ordered = sorted(first_of_name, key=lambda plain: plain.name)
        if not are_distinct([plain.claim for plain in ordered if plain.claim is not None]):
            return  # Of two equal requests the second one has to see what the first one did.
        try:
            made = self._database.write_without_waiting(lambda connection: _create_all(connection, ordered))
        except (PlaceTaken, GivenUpMeanwhile, IdempotencyKeyTaken, InvalidRequest):
            return  # Nothing was changed: by itself each learns whether it is the one.
        except LockNotFree:
            self._held_up.note(plain.name for plain in ordered)
            return
        except CommitStateUnknown as error:
            for plain in ordered:
                plain.unknown = error
            return
        for number, plain in enumerate(ordered):
            plain.is_made = number in made


def is_plain_creation(creation: Creation, receipts: Sequence[CommitReceipt]) -> bool:
    """Say whether a creation is one that `SharedCreations` can make with its receipts."""
    return len(receipts) == 1 and not creation.registration and not creation.foreign


def _create_all(connection: Connection, group: Sequence[PlainCreation]) -> frozenset[int]:
    """Make those that can be made, and return their numbers.

    Raises:
        PlaceTaken: something has come to lie in one of their folders.
        GivenUpMeanwhile: a client has heard that one of them will not happen.
        IdempotencyKeyTaken: the key of one was answered before.
    """
    claims = {number: plain.claim for number, plain in enumerate(group) if plain.claim is not None}
    places = [
        {"number": number, "place": place}
        for number, plain in enumerate(group)
        for place in sorted(plain.creation.places)
    ]
    values = (
        values_in("wanted", _CREATED, [_created(number, plain) for number, plain in enumerate(group)])
        | values_in("folder", _PLACE, places)
        | receipt_values([(number, plain.receipt) for number, plain in enumerate(group)])
        | claim_values(claims)
    )
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LONGEST_LOCK_MS}")
    rows = connection.exec_driver_sql(_STATEMENT, values).all()
    # The lock of the folders is one that all wait for in turn, however many they are.
    connection.exec_driver_sql("SET LOCAL lock_timeout TO DEFAULT")
    ids = {number: pointer_id for number, pointer_id, *_ in rows}
    for *_, landed, claimed in rows[:1]:
        check_noted(ids, claims, landed=landed, claimed=claimed)
    check_begun(connection, ids.values())
    alone = [(pointer_id, group[number].creation.alone) for number, pointer_id in ids.items()]
    check_alone(connection, [(pointer_id, place) for pointer_id, place in alone if place is not None])
    return frozenset(ids)


def _created(number: int, plain: PlainCreation) -> dict[str, Any]:
    """Return what the statement needs of a creation and its event."""
    creation = plain.creation
    event = event_values(0, creation.event, plain.author, None)
    return event | {
        "number": number,
        "warehouse_id": creation.warehouse_id,
        "key": key_of(creation.identifier.namespace),
        "kind": creation.kind.value,
        "name": creation.identifier.name,
        "uuid": creation.uuid,
        "location": creation.location,
        "at_ms": event["event_at_ms"],
    }
