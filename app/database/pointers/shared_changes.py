"""What commits and creations that go in one statement have in common, for Postgres.

Values of many changes are arrays, one for each column.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

from app.database.outcomes.idempotency_keys import IdempotencyClaim, values_of_claim
from app.database.outcomes.receipt import CommitReceipt
from app.database.outcomes.receipts import GivenUpMeanwhile, values_of
from app.errors import IdempotencyKeyTaken

MOST_TOGETHER: Final = 32
LONGEST_WAIT_S: Final = 2 * 60.0
"""As long as a statement may take, and the wait for a connection."""
LONGEST_LOCK_MS: Final = 50
"""So long all wait for a lock that one of them needs; then each waits for its own."""
_ALONE_S: Final = 10.0
"""So long what others had to wait for is not done together with others."""
_RECEIPT: Final = {
    "commit_id": "text",
    "outcome": "text",
    "operation": "text",
    "warehouse": "text",
    "principal": "text",
    "request_id": "text",
    "key": "text",
    "began_ms": "bigint",
    "noted_ms": "bigint",
    "facts": "text",
    "job": "text",
}

_CLAIM: Final = {
    "principal": "text",
    "key": "text",
    "request_hash": "text",
    "status": "integer",
    "result": "text",
    "created_ms": "bigint",
    "expires_ms": "bigint",
    "commit_id": "text",
}


def table_of(name: str, columns: Mapping[str, str]) -> str:
    """Return SQL for a table of what `values_in` gives, with columns and their types."""
    arrays = ", ".join(f"%({name}_{column})s::{kind}[]" for column, kind in columns.items())
    return f"SELECT * FROM unnest({arrays}) AS {name} ({', '.join(columns)})"  # noqa: S608 - names of ours only


def values_in(name: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the parameters of such a table."""
    return {f"{name}_{column}": [row[column] for row in rows] for column in columns}


RECEIPTS: Final = table_of("receipt", {"number": "bigint"} | _RECEIPT)
"""SQL for a table of the receipts that come with changes, each with a number."""
CLAIMS: Final = table_of("claim", {"number": "bigint"} | _CLAIM)
"""SQL for a table of their claims to Idempotency-Keys, with the same numbers; not each change has one."""


def landing_of(changed: str) -> str:
    """Return SQL that writes the receipts of the changes that were made.

    One that a client has heard of as given up is not written, and so does not come back.

    Args:
        changed: SQL for what was made, with a column `number`.
    """
    columns = ", ".join(_RECEIPT)
    return f"""
        INSERT INTO receipts ({columns})
        SELECT {", ".join(f"receipt.{name}" for name in _RECEIPT)}
        FROM receipt JOIN {changed} USING (number)
        ORDER BY receipt.commit_id
        ON CONFLICT (commit_id) DO UPDATE SET
            outcome = excluded.outcome, warehouse = excluded.warehouse, noted_ms = excluded.noted_ms,
            facts = excluded.facts
        WHERE receipts.outcome = 'in-progress'
        RETURNING commit_id
    """  # noqa: S608 - names of columns and tables of ours only


def claiming_of(changed: str) -> str:
    """Return SQL that writes the claims of the changes that were made.

    A claim to a key that was answered before is not written.

    Args:
        changed: as that of `landing_of`.
    """
    columns = ", ".join(_CLAIM)
    changes = ", ".join(f"{name} = excluded.{name}" for name in _CLAIM if name not in {"principal", "key"})
    return f"""
        INSERT INTO idempotency_keys ({columns})
        SELECT {", ".join(f"claim.{name}" for name in _CLAIM)}
        FROM claim JOIN {changed} USING (number)
        ORDER BY claim.principal, claim.key
        ON CONFLICT (principal, key) DO UPDATE SET {changes}
        WHERE idempotency_keys.expires_ms <= excluded.created_ms
        RETURNING key
    """  # noqa: S608 - names of columns and tables of ours only


def receipt_values(receipts: Sequence[tuple[int, CommitReceipt]]) -> dict[str, Any]:
    """Return the parameters of `RECEIPTS`, from receipts with their numbers."""
    found = [(number, values_of(receipt)) for number, receipt in receipts]
    values: dict[str, Any] = {"receipt_number": [number for number, _ in found]}
    for name in _RECEIPT:
        values[f"receipt_{name}"] = [each[f"receipt_{name}"] for _, each in found]
    return values


def claim_values(claims: Mapping[int, IdempotencyClaim]) -> dict[str, Any]:
    """Return the parameters of `CLAIMS`, from claims by their numbers."""
    rows = [{"number": number, **values_of_claim(claim)} for number, claim in claims.items()]
    return values_in("claim", {"number": "bigint"} | _CLAIM, rows)


def are_distinct(claims: Collection[IdempotencyClaim]) -> bool:
    """Say whether each claim is to another key: one statement cannot write a row twice."""
    return len({claim.principal_and_key for claim in claims}) == len(claims)


def check_noted(
    made: Collection[int], claims: Mapping[int, IdempotencyClaim], *, landed: int, claimed: int
) -> None:
    """Check that all that was made has its receipt and its claim.

    Args:
        made: the numbers of the changes that were made.
        claims: of all that were asked for, by number.
        landed: how many receipts were written.
        claimed: how many claims were written.

    Raises:
        GivenUpMeanwhile: a client has heard that one of them will not happen.
        IdempotencyKeyTaken: one of the keys was answered before.
    """
    if landed != len(made):
        raise GivenUpMeanwhile
    if claimed != sum(number in claims for number in made):
        raise IdempotencyKeyTaken("one of the keys of this group was answered before")


class HeldUp:
    """What others had to wait for: for some seconds it is not done together with others."""

    def __init__(self) -> None:
        self._until_s: dict[Hashable, float] = {}

    def has(self, key: Hashable) -> bool:
        """Say whether others had to wait for it a moment ago."""
        return self._until_s.get(key, 0.0) > time.monotonic()

    def note(self, keys: Iterable[Hashable]) -> None:
        """Note those of a group that had to wait for one of them: its client will ask for it again."""
        now_s = time.monotonic()
        kept = {key: until_s for key, until_s in self._until_s.items() if until_s > now_s}
        self._until_s = kept | dict.fromkeys(keys, now_s + _ALONE_S)
