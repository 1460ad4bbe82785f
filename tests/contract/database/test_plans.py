"""How the databases carry out what is asked often: through an index, in its order, with nothing to sort."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from sqlalchemy import Connection, Dialect, SelectBase, event, select, text
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from app.database import namespaces
from app.database.deletions import foreign_places
from app.database.dropped import DroppedThings
from app.database.outcomes import idempotency_keys
from app.database.past import Past
from app.database.pointers import history, places, pointers, sharing
from app.database.pointers.lookups import PointerLookups
from app.database.pointers.pointer import PointerKind
from app.database.statements.pages import PageOfNames
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, TableUuid
from tests.contract.database.stores import AUTHOR, Stores

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
    INSERT INTO pointer_names (pointer_id, warehouse_id, namespace_key, kind, name, from_ms, until_ms)
        SELECT n, 1, 'n1', 'table', 't' || n, n, n + 1000 FROM numbers;
    INSERT INTO namespace_versions (warehouse_id, parent_key, name, properties, from_ms, until_ms)
        SELECT 1, 'n1', 'c' || n, '{}', n, n + 1000 FROM numbers;
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
    "named by others": foreign_places.named_by_others(["p"], 1),
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


def test_whether_a_folder_is_free_is_found_through_an_index(filled: Stores) -> None:
    for statement in (places._overlapping(4), places._taken(4)):
        found = plan(compiled(statement, filled), filled)
        assert not re.search(r"SCAN table_places\b(?! USING)|Seq Scan on table_places", found)
        assert "ix_table_places_place" in found


def test_what_is_asked_of_the_past_and_of_what_was_dropped_is_found_through_an_index(filled: Stores) -> None:
    then, dropped, at_ms = Past(filled.database), DroppedThings(filled.database), 1500
    t1 = TableIdentifier(Namespace(("n1",)), "t1")

    def ask() -> None:
        then.find(1, t1, 500)
        then.states([1, 2, 3], 1)
        then.list_names(1, t1.namespace, PointerKind.TABLE, at_ms, None, 10)
        then.list_children(1, t1.namespace, at_ms, None, 10)
        then.find_namespace(1, Namespace(("n1", "c1")), at_ms)
        then.history(1, at_ms, None, 10)
        then.replaced(1, at_ms, at_ms + 10)
        then.replaced_since(1, {Location("l")}, at_ms)
        then.moved_between(1, 1990, 1995, 0, 10)
        dropped.list(1, at_ms, name=(t1.namespace, "t"))
        dropped.find(1, 5, at_ms)
        dropped.find_pointer(10_005, at_ms)
        filled.pointers.find_locked(10_005)
        dropped.end(5)

    asked = asked_in(filled, ask)
    plans = [(sql, plan_of(sql, parameters, filled)) for sql, parameters in asked]

    assert len(plans) > 10
    assert [each for each in plans if re.search(r"\bSCAN\b(?! CONSTANT| anon_1)|Seq Scan", each[1])] == []


def test_a_name_is_given_without_a_look_at_all_names_of_its_namespace(filled: Stores) -> None:
    n1 = Namespace(("n1",))
    source, destination = TableIdentifier(n1, "t01"), TableIdentifier(n1, "renamed")

    asked = asked_in(
        filled, lambda: filled.pointers.rename(1, PointerKind.TABLE, source, destination, AUTHOR)
    )

    plans = [plan_of(sql, parameters, filled) for sql, parameters in asked if "earlier" in sql]
    # SQLite's own driver is asked without SQLAlchemy, and it does not make joins of such questions.
    assert len(plans) == (filled.database.dialect_name == "postgresql")
    assert "Anti Join" not in "".join(plans)


def test_a_page_of_the_pointers_of_a_large_warehouse_is_read_without_sorting_all_of_them(
    filled: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pointers, "_LARGE", ROWS)

    asked = asked_in(filled, lambda: filled.pointers.list_pointers(1, PointerKind.TABLE, 0, 10))

    sql, parameters = asked[-1]
    assert not re.search(r"\bSCAN\b|TEMP B-TREE|Sort", plan_of(sql, parameters, filled))


def asked_in(stores: Stores, work: Callable[[], object]) -> list[tuple[str, Any]]:
    """Return the statements that are sent while something is done, with their parameters."""
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, sql: str, parameters: Any, *_rest: Any) -> None:
        asked.append((sql, parameters))

    engines = {stores.database._write_engine, stores.database._read_engine}
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    work()
    for engine in engines:
        event.remove(engine, "before_cursor_execute", note)
    return [each for each in asked if re.match("SELECT|DELETE|UPDATE|INSERT", each[0])]


def plan_of(sql: str, parameters: Any, stores: Stores) -> str:
    explain = "EXPLAIN QUERY PLAN" if stores.database.dialect_name == "sqlite" else "EXPLAIN"
    return "\n".join(str(line[-1]) for line in stores.database.fetch(f"{explain} {sql}", parameters))


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
