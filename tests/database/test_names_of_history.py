"""Revision 0010 on a database with a history: which names and namespaces there were, as far as it is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from app.database.connections.database import Database
from app.database.dropped import DroppedThings
from app.database.past import Past
from app.database.pointers.pointer import PointerKind
from app.database.pointers.recoverable import Recovery
from app.database.schema.migrations import downgrade, migrate
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.contract.database.stores import AUTHOR, Stores
from tests.servers.postgres import PostgresServer

SEPARATOR = chr(31)
EU = f"sales{SEPARATOR}eu"
SCHEMA = """
    INSERT INTO warehouses (name, root_location, default_properties, override_properties, storage, created_ms)
        VALUES ('main', 'file:///lake', '{}', '{}', '{}', 1);
    INSERT INTO namespaces (warehouse_id, parent_id, key, name, properties, created_ms)
        VALUES (1, NULL, 'sales', 'sales', '{"k": "1"}', 10), (1, 1, :eu, 'eu', '{}', 20)
"""
POINTERS = [
    # id, namespace, kind, name, created
    (1, 1, "table", "kept", 100),
    (2, 2, "table", "renamed_twice", 110),
    (4, 1, "view", "again", 400),
    (5, 1, "table", "pruned", 50),
    (6, 1, "table", "pruned_and_renamed", 50),
    (7, 1, "table", "eventless", 60),
]
EVENTS = [
    # pointer, namespace key, name, kind, event, location, time: in the order in which they landed
    (1, "sales", "kept", "table", "created", "1a", 100),
    (2, "sales", "first", "table", "created", "2a", 110),
    (1, "sales", "kept", "table", "committed", "1b", 200),
    (2, EU, "second", "table", "renamed", "2a", 210),
    (3, "sales", "again", "table", "created", "3a", 220),
    (2, EU, "second", "table", "committed", "2b", 230),
    (3, "sales", "again", "table", "dropped", None, 300),
    (2, EU, "renamed_twice", "table", "renamed", "2b", 310),
    (4, "sales", "again", "view", "created", "4a", 400),
    (5, "sales", "pruned", "table", "committed", "5z", 500),
    (6, "sales", "pruned_and_renamed", "table", "renamed", "6z", 510),
    # Of one that is gone, only the end is known.
    (8, "sales", "only_its_end", "table", "unregistered", None, 520),
]


def insert_all(connection: Connection) -> None:
    for statement in SCHEMA.split(";"):
        connection.execute(text(statement), {"eu": EU} if ":eu" in statement else {})
    for pointer in POINTERS:
        connection.execute(
            text(
                "INSERT INTO pointers (id, namespace_id, kind, name, uuid, metadata_location, created_ms, updated_ms) "
                "VALUES (:id, :namespace_id, :kind, :name, 'u' || :name, 'l', :created_ms, 500)"
            ),
            dict(zip(("id", "namespace_id", "kind", "name", "created_ms"), pointer, strict=True)),
        )
    for event in EVENTS:
        values = ("pointer_id", "namespace_key", "name", "kind", "event", "location", "at_ms")
        connection.execute(
            text(
                "INSERT INTO pointer_history (pointer_id, warehouse_id, namespace_key, name, kind, event, location, "
                "uuid, at_ms, author, request_id) VALUES (:pointer_id, 1, :namespace_key, :name, :kind, :event, "
                ":location, 'u', :at_ms, 'a', 'r')"
            ),
            dict(zip(values, event, strict=True)),
        )


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database of revision 0009 with a history."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/icetower.db"
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.url(server.create_database())
    opened = Database.open(url)
    migrate(opened, "0009")
    opened.write(insert_all)
    yield opened
    opened.close()


def names(database: Database, at_ms: int, *levels: str) -> list[str]:
    past, namespace = Past(database), Namespace(levels)
    return [name for kind in PointerKind for name in past.list_names(1, namespace, kind, at_ms)]


def place(database: Database, at_ms: int, *levels: str) -> tuple[int, str | None] | None:
    *outer, name = levels
    found = Past(database).find(1, TableIdentifier(Namespace(tuple(outer)), name), at_ms)
    return None if found is None else (found.pointer_id, found.location)


def check(database: Database) -> None:
    assert names(database, 99, "sales") == ["eventless", "pruned"]
    assert names(database, 205, "sales") == ["eventless", "first", "kept", "pruned"]
    assert names(database, 220, "sales") == ["again", "eventless", "kept", "pruned"]
    assert names(database, 300, "sales") == ["eventless", "kept", "pruned"]
    assert names(database, 999, "sales") == ["eventless", "kept", "pruned", "pruned_and_renamed", "again"]
    assert [names(database, at_ms, "sales", "eu") for at_ms in (209, 210, 309, 310)] == [
        [],
        ["second"],
        ["second"],
        ["renamed_twice"],
    ]

    assert [place(database, at_ms, "sales", "kept") for at_ms in (99, 100, 199, 200)] == [
        None,
        (1, "1a"),
        (1, "1a"),
        (1, "1b"),
    ]
    assert place(database, 299, "sales", "again") == (3, "3a")
    assert place(database, 300, "sales", "again") is None
    assert place(database, 400, "sales", "again") == (4, "4a")
    # It was there, and nothing says any more where.
    assert place(database, 499, "sales", "pruned") == (5, None)
    assert place(database, 500, "sales", "pruned") == (5, "5z")
    assert place(database, 509, "sales", "pruned_and_renamed") is None

    past = Past(database)
    assert past.list_children(1, None, 9) == ()
    assert past.list_children(1, Namespace(("sales",)), 19) == ()
    assert past.list_children(1, Namespace(("sales",)), 20) == ("eu",)
    assert past.find_namespace(1, Namespace(("sales",)), 10) == {"k": "1"}


def test_names_come_from_the_history(database: Database) -> None:
    migrate(database, "0010")

    check(database)


def test_names_are_the_same_after_going_down_and_up_again(database: Database) -> None:
    migrate(database)
    downgrade(database, "0009")
    migrate(database)

    check(database)


def test_what_came_back_was_away_meanwhile_also_after_going_down_and_up_again(database: Database) -> None:
    migrate(database)
    stores, kept = Stores.on(database), TableIdentifier(Namespace(("sales",)), "kept")
    away, back = replace(AUTHOR, at_ms=1_000), replace(AUTHOR, at_ms=2_000)
    stores.pointers.drop(1, kept, PointerKind.TABLE, away, recovery=Recovery(9_000))
    (entry,) = DroppedThings(database).list(1, 1_500)
    DroppedThings(database).undrop(entry, kept, back)
    before = [place(database, at_ms, "sales", "kept") for at_ms in (999, 1_000, 1_999, 2_000)]
    assert before == [(1, "1b"), None, None, (1, "l")]

    downgrade(database, "0009")
    migrate(database)

    assert [place(database, at_ms, "sales", "kept") for at_ms in (999, 1_000, 1_999, 2_000)] == before
    check(database)
