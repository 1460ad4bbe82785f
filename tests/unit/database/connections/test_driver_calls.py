"""Statements that SQLite's driver sends by itself, and beginning a transaction while others write."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.database.connections import driver_calls
from app.database.connections.database import Database
from app.database.connections.driver_calls import run_on_sqlite
from app.errors import DatabaseUnavailable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "things.db"


@pytest.fixture
def other(path: Path) -> Iterator[sqlite3.Connection]:
    """A writer of another process."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE things (name TEXT)")
    yield connection
    connection.close()


def add(database: Database, name: str) -> int:
    values = {"name": name}
    return database.write_together(
        lambda connection: run_on_sqlite(connection, "INSERT INTO things VALUES (:name)", values)
    )


def test_a_writer_begins_as_soon_as_another_process_has_ended(
    path: Path, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database.open(f"sqlite:///{path}")
    other.execute("BEGIN IMMEDIATE")
    looked = threading.Event()

    def look(_seconds: float) -> None:
        if not looked.is_set():
            looked.set()
            other.execute("COMMIT")

    monkeypatch.setattr(driver_calls, "_pause", look)

    assert add(database, "a") == 1
    assert looked.is_set()
    database.close()
    assert other.execute("SELECT name FROM things").fetchall() == [("a",)]


def test_a_writer_waits_no_longer_than_its_database_url_says(path: Path, other: sqlite3.Connection) -> None:
    database = Database.open(f"sqlite:///{path}?timeout=0.02")
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(DatabaseUnavailable, match="another writer held it for too long"):
        add(database, "a")
    with pytest.raises(DatabaseUnavailable, match="another writer held it for too long"):
        database.write(lambda connection: connection.exec_driver_sql("INSERT INTO things VALUES ('b')"))
    other.execute("ROLLBACK")

    assert add(database, "c") == 1
    database.close()
    assert other.execute("SELECT name FROM things").fetchall() == [("c",)]


def test_errors_of_the_driver_undo_the_transaction(path: Path, other: sqlite3.Connection) -> None:
    database = Database.open(f"sqlite:///{path}")

    with pytest.raises(DatabaseUnavailable):
        database.write_together(
            lambda connection: run_on_sqlite(connection, "INSERT INTO things VALUES (1, 2)")
        )

    assert add(database, "a") == 1
    database.close()
    assert other.execute("SELECT name FROM things").fetchall() == [("a",)]
