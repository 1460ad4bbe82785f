"""Receipts as rows: landed ones are written in the transaction of their change."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    Select,
    Text,
    bindparam,
    case,
    literal_column,
    or_,
    select,
    text,
    update,
)

from app.database.connections.clock import database_now_ms
from app.database.connections.database import Database
from app.database.connections.driver_calls import run_on_sqlite
from app.database.outcomes.receipt import CommitReceipt, Outcome, ReceiptHead, facts_from, id_of_time
from app.database.schema.rows import receipts as rows
from app.database.statements.batches import delete_in_batches, never
from app.database.statements.driver_sql import sqlite_sql
from app.database.statements.inserts import OnEachDatabase, insert_into
from app.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from app.database.statements.inserts import AnyInsert

MOST_FOUND = 100
"""How many receipts one look-up returns; a client may give many requests one id."""
MOST_OF_A_JOB = 1_000
"""The same for a job of upkeep, which may try each of its commits many times."""
AT_WORK_KEPT_MS = 86_400_000
"""How much longer what is in progress is kept than what did not land."""
LONGEST_WAIT_S, PAUSE_S = 5.0, 0.01

_VALUES = {
    column.name: bindparam(
        f"receipt_{column.name}", type_=BigInteger if column.name.endswith("_ms") else Text
    )
    for column in rows.c
}


def upsert(insert: AnyInsert, *replaced: Outcome, **values: Any) -> AnyInsert:
    """Return an insertion that replaces a receipt only if its outcome is one of these."""
    written = insert.values(_VALUES | values)
    return written.on_conflict_do_update(
        index_elements=[rows.c.commit_id],
        set_={name: written.excluded[name] for name in ("outcome", "warehouse", "noted_ms", "facts")},
        # IN would not do: its list cannot be written for many rows at once.
        where=or_(*(rows.c.outcome == literal_column(f"'{outcome}'") for outcome in replaced)),
    )


_LAND = OnEachDatabase(
    rows, lambda insert: upsert(insert, Outcome.IN_PROGRESS).execution_options(preserve_rowcount=True)
)
_LAND_ON_SQLITE = sqlite_sql(upsert(insert_into(rows, "sqlite"), Outcome.IN_PROGRESS))
# How old a request at work is will be asked by other servers: only the database's clock can say.
_NOTED_MS = case(
    (_VALUES["outcome"] == Outcome.IN_PROGRESS, database_now_ms()),
    else_=_VALUES["noted_ms"],
)
_NOTE = OnEachDatabase(
    rows, lambda insert: upsert(insert, Outcome.IN_PROGRESS, Outcome.UNKNOWN, noted_ms=_NOTED_MS)
)


def landing_receipt() -> CTE:
    """Return the writing of one landed receipt as a part of another statement, for Postgres."""
    written = upsert(insert_into(rows, "postgresql"), Outcome.IN_PROGRESS)
    return written.returning(rows.c.commit_id).cte("receipt")


_OF_PRINCIPAL = rows.c.principal == bindparam("of_principal")


def _newest(*conditions: ColumnElement[bool], most: int = MOST_FOUND) -> Select[Any]:
    found = select(rows, (database_now_ms() - rows.c.noted_ms).label("age_ms")).where(*conditions)
    return found.order_by(rows.c.commit_id.desc()).limit(most)


_FIND = _newest(rows.c.commit_id == bindparam("of_commit_id"))
_FIND_BY_KEY = _newest(_OF_PRINCIPAL, rows.c.key == bindparam("of_key"))
_FIND_BY_JOB = _newest(rows.c.job == bindparam("of_job"), most=MOST_OF_A_JOB)
_FIND_BY_REQUEST = _newest(_OF_PRINCIPAL, rows.c.request_id == bindparam("of_request_id"))
_GIVE_UP = (
    update(rows)
    .where(rows.c.commit_id == bindparam("of_commit_id"), rows.c.outcome == Outcome.IN_PROGRESS)
    .values(outcome=Outcome.FAILED, facts=bindparam("new_facts"))
)
# Every transaction that has written a receipt holds this lock until it ends.
_OPEN_TRANSACTIONS = text(
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND mode = 'RowExclusiveLock'"
    " AND relation = 'receipts'::regclass"
)


_GIVEN_UP = "given-up"
"""Stands in the facts of what was given up; quotes of an error's own text are escaped there."""


class GivenUpMeanwhile(DatabaseUnavailable):
    """The request counted as lost, since its server had not been heard of; so it must not land."""

    def __init__(self) -> None:
        super().__init__("The server did not get round to this request for so long that it was given up")


def insert_landed(connection: Connection, receipts: Iterable[CommitReceipt]) -> None:
    """Write receipts in the transaction of what they are about.

    Raises:
        GivenUpMeanwhile: a client has heard that one of the requests will not land.
    """
    # In one order, as all locks are taken.
    values = [values_of(receipt) for receipt in sorted(receipts, key=lambda item: item.head.commit_id)]
    if not values:
        return
    if len(values) == 1 and connection.dialect.name == "sqlite":
        written = run_on_sqlite(connection, _LAND_ON_SQLITE, values[0])
    else:
        written = connection.execute(_LAND[connection.dialect.name], values).rowcount
    if written != len(values):
        raise GivenUpMeanwhile


def values_of(receipt: CommitReceipt) -> dict[str, Any]:
    """Return the values of a receipt for its statement."""
    head = receipt.head
    return {
        "receipt_commit_id": head.commit_id,
        "receipt_outcome": receipt.outcome,
        "receipt_operation": head.operation,
        "receipt_warehouse": head.warehouse,
        "receipt_principal": head.principal,
        "receipt_request_id": head.request_id,
        "receipt_key": head.key,
        "receipt_began_ms": head.began_ms,
        "receipt_noted_ms": receipt.noted_ms,
        "receipt_facts": receipt.facts(),
        "receipt_job": head.job,
    }


class Receipts:
    """The receipts of all servers on one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, commit_id: str) -> list[CommitReceipt]:
        """Return the receipt of this commit id, if there is one."""
        return self._find(_FIND, of_commit_id=commit_id)

    def find_by_key(self, principal: str, key: str) -> list[CommitReceipt]:
        """Return the receipts of requests with this Idempotency-Key, newest first."""
        return self._find(_FIND_BY_KEY, of_principal=principal, of_key=key)

    def find_by_request(self, principal: str, request_id: str) -> list[CommitReceipt]:
        """Return the receipts of requests with this id, newest first."""
        return self._find(_FIND_BY_REQUEST, of_principal=principal, of_request_id=request_id)

    def find_by_job(self, job: str) -> list[CommitReceipt]:
        """Return the receipts of what a job of upkeep has sent, newest first."""
        return self._find(_FIND_BY_JOB, of_job=job)

    def _find(self, query: Select[Any], **parameters: str) -> list[CommitReceipt]:
        return self._database.read(
            lambda connection: [_receipt(row) for row in connection.execute(query, parameters)]
        )

    def wait_for_open_transactions(self) -> None:
        """Return once each transaction has ended that has written a receipt so far.

        A receipt that is not there afterwards is of a request whose transaction had not come so far, or was undone.

        Raises:
            DatabaseUnavailable: the database does not answer, or a transaction stays open.
        """
        if self._database.dialect_name == "sqlite":
            self._database.read_locked(lambda _connection: None)
            return
        deadline = time.monotonic() + LONGEST_WAIT_S
        waited_for = self._open_transactions()
        while waited_for:
            if time.monotonic() > deadline:
                raise DatabaseUnavailable("The database does not say yet what became of an earlier change")
            time.sleep(PAUSE_S)
            waited_for &= self._open_transactions()

    def _open_transactions(self) -> set[str]:
        return self._database.read(lambda connection: set(connection.scalars(_OPEN_TRANSACTIONS)))

    def note(self, receipts: Sequence[CommitReceipt]) -> None:
        """Write what became of requests, unless something final is known of them already."""
        values = [values_of(receipt) for receipt in sorted(receipts, key=lambda item: item.head.commit_id)]
        self._database.write(lambda connection: connection.execute(_NOTE[connection.dialect.name], values))

    def give_up(self, receipt: CommitReceipt) -> None:
        """Note a request at work as failed, so that it cannot land, unless it has ended meanwhile."""
        facts = json.dumps({**json.loads(receipt.facts()), _GIVEN_UP: True})
        values = {"of_commit_id": receipt.head.commit_id, "new_facts": facts}
        self._database.write(lambda connection: connection.execute(_GIVE_UP, values))

    def delete(self, before_ms: int, is_stopped: Callable[[], bool] = never) -> int:
        """Delete the receipts of requests that began earlier, and return how many they were."""
        is_old = rows.c.commit_id < id_of_time(before_ms)
        return delete_in_batches(self._database, rows.c.commit_id, is_old, is_stopped=is_stopped)

    def delete_what_did_not_land(self, before_ms: int, is_stopped: Callable[[], bool] = never) -> int:
        """Do the same, but keep what has landed, or might if nothing kept it from that.

        A server that works on a request may have stood still for longer, and go on. What was given up must not land
        then: its client has heard so. What is in progress is kept for a day more: it can be given up so long.
        """
        # Requests that are answered as an equal one was, or whose client has gone, leave theirs so if they were slow.
        is_late = rows.c.commit_id >= id_of_time(before_ms - AT_WORK_KEPT_MS)
        may_come = (rows.c.outcome == "in-progress") & is_late
        may_come |= rows.c.facts.like(f'%"{_GIVEN_UP}": true%')
        is_old = rows.c.outcome != "landed", rows.c.commit_id < id_of_time(before_ms), ~may_come
        return delete_in_batches(self._database, rows.c.commit_id, *is_old, is_stopped=is_stopped)


def _receipt(row: Row[Any]) -> CommitReceipt:
    head = ReceiptHead(
        commit_id=row.commit_id,
        operation=row.operation,
        warehouse=row.warehouse,
        principal=row.principal,
        request_id=row.request_id,
        key=row.key,
        began_ms=row.began_ms,
        job=row.job,
    )
    return CommitReceipt(head, Outcome(row.outcome), row.noted_ms, age_ms=row.age_ms, **facts_from(row.facts))
