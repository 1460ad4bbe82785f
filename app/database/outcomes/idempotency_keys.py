"""Idempotency keys: which requests were answered, and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import BigInteger, Connection, bindparam, select, tuple_, update

from app.database.connections.database import Database
from app.database.connections.shared_lookups import SharedLookups
from app.database.schema.rows import idempotency_keys as rows
from app.database.statements.batches import delete_in_batches, never
from app.database.statements.driver_sql import rows_of
from app.database.statements.inserts import OnEachDatabase
from app.errors import IdempotencyKeyTaken
from app.waits import has_companions


@dataclass(frozen=True, slots=True)
class IdempotencyClaim:
    """A request's claim to its key: no other request is answered under it."""

    principal: str
    key: str
    request_hash: str
    now_ms: int
    expires_ms: int
    result: str = ""
    """What a success stores for a repeated request."""
    commit_id: str = ""
    """The request's own."""

    @property
    def principal_and_key(self) -> tuple[str, str]:
        """What no two answers have in common."""
        return self.principal, self.key


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """How the first request under a key ended."""

    request_hash: str
    status: int
    result: str
    commit_id: str
    """The first request's; empty if an older build answered it."""


_IS_KEY = rows.c.principal == bindparam("of_principal"), rows.c.key == bindparam("of_key")
_FIND = select(rows.c.request_hash, rows.c.status, rows.c.result, rows.c.commit_id).where(
    *_IS_KEY, rows.c.expires_ms > bindparam("now_ms", type_=BigInteger)
)
_FIND_MANY = select(
    rows.c.principal,
    rows.c.key,
    rows.c.request_hash,
    rows.c.status,
    rows.c.result,
    rows.c.commit_id,
    rows.c.expires_ms,
).where(tuple_(rows.c.principal, rows.c.key).in_(bindparam("of_keys", expanding=True)))
_CHANGED = (
    rows.c.request_hash,
    rows.c.status,
    rows.c.result,
    rows.c.created_ms,
    rows.c.expires_ms,
    rows.c.commit_id,
)
# An expired row is replaced; no row comes back if a row that is still valid is there.
_INSERT = OnEachDatabase(
    rows,
    lambda insert: insert.on_conflict_do_update(
        index_elements=[rows.c.principal, rows.c.key],
        set_={column.name: insert.excluded[column.name] for column in _CHANGED},
        where=rows.c.expires_ms <= insert.excluded.created_ms,
    ).returning(rows.c.status),
)
_SET_RESULT = update(rows).where(*_IS_KEY).values(result=bindparam("new_result"))


class IdempotencyKeys:
    """The keys of the requests answered so far."""

    def __init__(self, database: Database) -> None:
        self._database = database
        is_postgres = database.dialect_name == "postgresql"
        self._shared = SharedLookups(self._find_many) if is_postgres else None

    def find(self, principal: str, key: str, now_ms: int) -> RecordedOutcome | None:
        """Return how the first request under this key ended, unless the key is new or has expired."""
        if self._shared is not None and has_companions():
            shared = self._shared.find((principal, key))
            return shared[0] if shared is not None and shared[1] > now_ms else None
        parameters = {"of_principal": principal, "of_key": key, "now_ms": now_ms}
        found = self._database.read(lambda connection: rows_of(connection, _FIND, parameters))
        return RecordedOutcome(*found[0]) if found else None

    def _find_many(
        self, keys: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[RecordedOutcome, int]]:
        """Return outcomes by principal and key, each with the time when it expires."""
        found = self._database.read(
            lambda connection: connection.execute(_FIND_MANY, {"of_keys": keys}).all()
        )
        return {
            (principal, key): (RecordedOutcome(*outcome), expires_ms)
            for principal, key, *outcome, expires_ms in found
        }

    def record(self, claim: IdempotencyClaim, status: int, result: str) -> None:
        """Store a final answer that comes with no change, such as a refusal.

        Raises:
            IdempotencyKeyTaken: another request under this key was answered first.
        """
        self._database.write(lambda connection: insert_claim(connection, claim, status, result))

    def delete_expired(self, now_ms: int, is_stopped: Callable[[], bool] = never) -> int:
        """Delete the keys whose time is over, and return how many they were."""
        is_over = rows.c.expires_ms <= now_ms
        return delete_in_batches(self._database, rows.c.expires_ms, is_over, is_stopped=is_stopped)


def insert_claim(
    connection: Connection, claim: IdempotencyClaim | None, status: int = 200, result: str | None = None
) -> None:
    """Store a request's answer in the transaction of its change; without a claim, do nothing.

    This comes first in every transaction: the second of two equal requests waits here until the first has ended.

    Raises:
        IdempotencyKeyTaken: another request under this key was answered first.
    """
    if claim is None:
        return
    if not rows_of(connection, _INSERT[connection.dialect.name], values_of_claim(claim, status, result)):
        raise IdempotencyKeyTaken(f"Idempotency-Key {claim.key!r} was answered before")


def values_of_claim(
    claim: IdempotencyClaim, status: int = 200, result: str | None = None
) -> dict[str, str | int]:
    """Return the row of a request's answer, by its columns."""
    return {
        "principal": claim.principal,
        "key": claim.key,
        "request_hash": claim.request_hash,
        "status": status,
        "result": claim.result if result is None else result,
        "created_ms": claim.now_ms,
        "expires_ms": claim.expires_ms,
        "commit_id": claim.commit_id,
    }


def check_free(connection: Connection, claim: IdempotencyClaim) -> None:
    """Check that no request was answered under a claim's key, and lock nothing.

    Raises:
        IdempotencyKeyTaken: one was.
    """
    parameters = {"of_principal": claim.principal, "of_key": claim.key, "now_ms": claim.now_ms}
    if connection.execute(_FIND, parameters).one_or_none() is not None:
        raise IdempotencyKeyTaken(f"Idempotency-Key {claim.key!r} was answered before")


def complete_claim(connection: Connection, claim: IdempotencyClaim | None, result: str) -> None:
    """Replace the result of a claim made earlier in this transaction, now that it is known."""
    if claim is None:
        return
    connection.execute(
        _SET_RESULT, {"of_principal": claim.principal, "of_key": claim.key, "new_result": result}
    )
