"""What commits and creations that go in one statement have in common, for Postgres.

Values of many changes are arrays, one for each column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.database.outcomes.receipt import CommitReceipt
from app.database.outcomes.receipts import values_of

MOST_TOGETHER: Final = 32
LONGEST_WAIT_S: Final = 2 * 60.0
"""As long as a statement may take, and the wait for a connection."""
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


def table_of(name: str, columns: Mapping[str, str]) -> str:
    """Return SQL for a table of what `values_in` gives, with columns and their types."""
    arrays = ", ".join(f"%({name}_{column})s::{kind}[]" for column, kind in columns.items())
    return f"SELECT * FROM unnest({arrays}) AS {name} ({', '.join(columns)})"  # noqa: S608 - names of ours only


def values_in(name: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the parameters of such a table."""
    return {f"{name}_{column}": [row[column] for row in rows] for column in columns}


RECEIPTS: Final = table_of("receipt", {"number": "bigint"} | _RECEIPT)
"""SQL for a table of the receipts that come with changes, each with a number."""


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


def receipt_values(receipts: Sequence[tuple[int, CommitReceipt]]) -> dict[str, Any]:
    """Return the parameters of `RECEIPTS`, from receipts with their numbers."""
    found = [(number, values_of(receipt)) for number, receipt in receipts]
    values: dict[str, Any] = {"receipt_number": [number for number, _ in found]}
    for name in _RECEIPT:
        values[f"receipt_{name}"] = [each[f"receipt_{name}"] for _, each in found]
    return values
