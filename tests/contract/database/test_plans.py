"""How the databases carry out what is asked often: through an index, in its order, with nothing to sort."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

import pytest
from sqlalchemy import Connection, Dialect, SelectBase, select, text
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from app.database import foreign_places, idempotency_keys, namespaces
from app.database.pages import PageOfNames
from app.database.pointers import history, pointers, sharing
from app.database.pointers.lookups import PointerLookups
from app.engine.model.ids import TableUuid
from tests.contract.database.stores import Stores

ROWS = 2000
FILL = """
    INSERT INTO namespaces (warehouse_id, parent_id, key, name, properties, created_ms)
        SELECT 1, NULL, 'n' || n, 'n' || n, '{}', 0 FROM numbers;
    INSERT INTO namespaces (warehouse_id, parent_id, key, name, properties, created_ms)
        SELECT 1, 1, 'n1' || n, 'c' || n, '{}', 0 FROM numbers;
    INSERT INTO pointers (namespace_id, kind, name, uuid, metadata_location, created_ms, updated_ms)
        SELECT n, 'table', 't' || n, 'u' || n, 'l' || n, 0, 0 FROM numbers;
    INSERT INTO pointers (namespace_id, kind, name, uuid, metadata_location, created_ms, updated_ms)
        SELECT 1, 'table', 't0' || n, 'u0' || n, 'l0' || n, 0, 0 FROM numbers;
    INSERT INTO pointer_history
        (pointer_id, warehouse_id, namespace_key, name, kind, event, uuid, at_ms, author, request_id)
        SELECT n % 2, 1, 'n1', 't', 'table', 'committed', 'u' || n, n, 'a', 'r' FROM numbers;
    INSERT INTO table_places (pointer_id, place) SELECT n, 'p' || n FROM numbers;
    INSERT INTO foreign_places (pointer_id, place, noted) SELECT n, 'p' || n, n FROM numbers;
    INSERT INTO dropped
        (warehouse_id, kind, namespace_key, name, pointer_id, uuid, metadata_location, registration, created_ms,
         dropped_ms, until_ms, principal, request_id, purge)
        SELECT 1, 'table', 'n1', 'd' || n, 1000000 + n, 'ud' || n, 'ld' || n, 0, 0, 0, n, 'a', 'r', 0 FROM numbers;
    INSERT INTO idempotency_keys (principal, key, request_hash, status, result, created_ms, expires_ms)
        SELECT 'a', 'k' || n, 'h', 200, '', 0, n FROM numbers;
    DROP TABLE numbers;
    ANALYZE
"""
STATEMENTS: dict[str, SelectBase | PageOfNames] = {
    "names": pointers._NAMES,
    "children": namespaces._CHILDREN,
    "outermost": namespaces._OUTERMOST,
    "properties": namespaces._PROPERTIES,
    "history": history._SELECT,
    "idempotency key": idempotency_keys._FIND,
    "may share files": select(sharing.may_share_files(TableUuid("u"), 1)),
    "named": sharing.named_by_pointers(["l"]),
    "named by others": foreign_places.named_by_others(["p"], 1)[0],
    "named by dropped ones": foreign_places.named_by_others(["p"], 1)[1],
    "claimed": sharing.claimed_by_others(["p"], 1),
}


@pytest.fixture
def filled(stores: Stores) -> Stores:
    def fill(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE numbers (n INTEGER)"))
        connection.execute(text("INSERT INTO numbers VALUES (:n)"), [{"n": n + 1} for n in range(ROWS)])
        for statement in FILL.split(";"):
            connection.execute(text(statement))

    stores.database.write(fill)
    return stores


def test_every_statement_is_carried_out_through_an_index(filled: Stores) -> None:
    lookups = PointerLookups(filled.database)
    written_out = {"find": lookups._find_one, "find_many": lookups._find_many[16]}
    statements = {which: compiled(statement, filled) for which, statement in STATEMENTS.items()}

    plans = {which: plan(sql, filled) for which, sql in (statements | written_out).items()}

    # What is scanned as "anon_1" is a page of names that was just found.
    slow = re.compile(r"\bSCAN\b(?! CONSTANT| anon_1)|TEMP B-TREE|Seq Scan|Sort|Hash")
    assert {which: each for which, each in plans.items() if slow.search(each)} == {}
    assert all(re.search("INDEX|PRIMARY KEY|Index", each) for each in plans.values())


def compiled(statement: SelectBase | PageOfNames, stores: Stores) -> str:
    if isinstance(statement, Mapping):
        statement = statement[stores.database.dialect_name]
    numbered = PGDialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]  # SQLAlchemy's is not
    dialects: dict[str, Dialect] = {"sqlite": SQLiteDialect(), "postgresql": numbered}
    return str(
        statement.compile(
            dialect=dialects[stores.database.dialect_name], compile_kwargs={"render_postcompile": True}
        )
    )


def plan(sql: str, stores: Stores) -> str:
    """Return the plan that is right for any parameters, as that of a prepared statement is."""
    if stores.database.dialect_name == "sqlite":
        explained = stores.database.fetch(f"EXPLAIN QUERY PLAN {sql}", [None] * sql.count("?"))
    else:
        numbers = itertools.count(1)
        numbered = re.sub("%s", lambda _: f"${next(numbers)}", sql)
        explained = stores.database.fetch(f"EXPLAIN (GENERIC_PLAN) {numbered}", ())
    return "\n".join(str(line[-1]) for line in explained)
