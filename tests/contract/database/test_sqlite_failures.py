"""What only SQLite does: one writer, files that are not what they should be, and disks that are full or broken."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from app.database.backups import back_up
from app.database.connections.database import Database
from app.database.connections.driver_errors import ConstraintBroken
from app.database.pointers.moves import Advance
from app.database.pointers.pointers import PutOutcome
from app.engine.model.ids import Location
from app.errors import CommitStateUnknown, DatabaseUnavailable
from tests.builders.databases import migrated
from tests.contract.database.every_call import EVERY_CALL, LOCKED_READS, READS, WRITES, error_of, fill
from tests.contract.database.stores import AUTHOR, Stores, levels, name

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    migrated(f"sqlite:///{tmp_path / 'catalog.db'}")
    return tmp_path / "catalog.db"


@pytest.fixture
def stores(path: Path) -> Iterator[Stores]:
    database = Database.open(f"sqlite:///{path}")
    stores = Stores.on(database)
    fill(stores)
    yield stores
    database.close()


def test_each_write_says_that_another_process_held_the_file(stores: Stores, path: Path) -> None:
    calls = LOCKED_READS | WRITES
    hasty = Stores.of(Database.open(f"sqlite:///{path}?timeout=0.01"), stores.warehouse)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    said = {which: str(error_of(call, hasty)) for which, call in calls.items()}
    read = {which: error_of(call, hasty) for which, call in READS.items()}
    other.execute("ROLLBACK")
    other.close()

    assert {which for which, words in said.items() if "another writer held it" in words} == set(calls)
    assert read == dict.fromkeys(READS)
    assert {which: error_of(call, hasty) for which, call in calls.items()} == dict.fromkeys(calls)
    hasty.database.close()


def test_each_write_says_that_the_file_is_read_only(stores: Stores, path: Path) -> None:
    reading = Stores.on(Database.open(f"sqlite:///file:{path}?mode=ro&uri=true"))

    said = {which: str(error_of(call, reading)) for which, call in WRITES.items()}

    assert {which for which, words in said.items() if "the file is read-only" in words} == set(WRITES)
    assert {which: error_of(call, reading) for which, call in READS.items()} == dict.fromkeys(READS)
    reading.database.close()


def test_each_call_says_that_the_file_is_no_database(stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "not.db").write_text("something else entirely, and longer than a header " * 10)
    database = Database.open(f"sqlite:///{tmp_path / 'not.db'}")

    said = {
        which: str(error_of(call, Stores.of(database, stores.warehouse)))
        for which, call in EVERY_CALL.items()
    }

    assert {which for which, words in said.items() if "not a SQLite database" in words} == set(EVERY_CALL)
    database.close()


def test_a_full_disk_changes_nothing_and_is_forgiven(stores: Stores) -> None:
    pages = stores.database.fetch("PRAGMA page_count", ())[0][0]
    stores.database.write(lambda connection: connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}"))

    with pytest.raises(DatabaseUnavailable, match="the disk is full"):
        stores.namespaces.create(stores.id, levels("big"), {"big": "x" * 100_000}, AUTHOR)

    assert stores.namespaces.find(stores.id, levels("big")) is None
    stores.database.write(lambda connection: connection.exec_driver_sql("PRAGMA max_page_count = 100000"))
    stores.namespaces.create(stores.id, levels("big"), {"big": "x" * 100_000}, AUTHOR)


@contextmanager
def broken_disk(path: Path) -> Iterator[None]:
    """Let every write fail that would make the log longer."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(f"{path}-wal").stat().st_size + 100, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def test_a_disk_that_takes_nothing_more_is_seen_without_a_change(stores: Stores, path: Path) -> None:
    with broken_disk(path), pytest.raises((DatabaseUnavailable, CommitStateUnknown)):
        stores.database.check_writes()

    stores.database.check_writes()


def test_a_disk_that_fails_at_commit_leaves_the_outcome_unknown_until_it_works(
    stores: Stores, path: Path
) -> None:
    seen = stores.there("a.t")
    lost = Advance(seen, Location("1.json"), seen.uuid)

    with broken_disk(path):
        assert stores.pointers.check_and_put([lost], AUTHOR) is PutOutcome.UNKNOWN
        with pytest.raises(DatabaseUnavailable, match="what became of an earlier change"):
            stores.pointers.has_landed(lost, AUTHOR)

    assert not stores.pointers.has_landed(lost, AUTHOR)
    assert stores.there("a.t") == seen
    assert stores.advance(seen, "2.json") is PutOutcome.ADVANCED


def test_what_was_looked_up_after_a_failed_commit_is_true_after_a_crash(stores: Stores, path: Path) -> None:
    """The lost transaction's log may be on the disk; the look-up has written over it."""
    seen = stores.there("a.t")
    lost = Advance(seen, Location("1.json"), seen.uuid)
    with broken_disk(path):
        stores.pointers.check_and_put([lost], AUTHOR)

    log_before = Path(f"{path}-wal").read_bytes()
    landed = stores.pointers.has_landed(lost, AUTHOR)

    assert not landed
    assert Path(f"{path}-wal").read_bytes() != log_before
    crashed = path.with_name("crashed.db")
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{path}{suffix}", f"{crashed}{suffix}")
    recovered = Database.open(f"sqlite:///{crashed}")
    assert Stores.on(recovered).there("a.t") == seen
    recovered.close()


def test_a_commit_that_a_constraint_refuses_changes_nothing(stores: Stores) -> None:
    def orphan(connection: Connection) -> None:
        connection.execute(text("PRAGMA defer_foreign_keys = ON"))
        connection.execute(text("UPDATE pointers SET namespace_id = 999"))

    with pytest.raises(ConstraintBroken, match="SQLITE_CONSTRAINT"):
        stores.database.write(orphan)

    assert stores.pointers.find(stores.id, name("a.t")) is not None
    stores.advance(stores.there("a.t"), "1.json")


def test_connections_for_writes_are_durable_and_check_foreign_keys(stores: Stores) -> None:
    def pragmas(connection: Connection) -> dict[str, Any]:
        names = ("journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync", "foreign_keys")
        return {each: connection.exec_driver_sql(f"PRAGMA {each}").scalar_one() for each in names}

    assert stores.database.write(pragmas) == {
        "journal_mode": "wal",
        "synchronous": 2,
        "fullfsync": 1,
        "checkpoint_fullfsync": 1,
        "foreign_keys": 1,
    }


def test_processes_that_open_a_new_file_together_all_get_it(tmp_path: Path) -> None:
    """The switch to a write-ahead log wants the file for itself, for a moment."""
    script = (
        "import sys; from app.database.connections.database import Database; sys.stdin.read();"
        "Database.open(sys.argv[1]).write(lambda c: c.exec_driver_sql('CREATE TABLE IF NOT EXISTS t (x)'))"
    )
    starting = [
        subprocess.Popen(
            [sys.executable, "-c", script, f"sqlite:///{tmp_path / 'new.db'}"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for _ in range(3)
    ]

    said = [process.communicate()[1] for process in starting]

    assert [process.returncode for process in starting] == [0] * 3, said


def test_no_change_goes_into_a_file_that_was_moved_away(stores: Stores, path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))

    said = {which: str(error_of(call, stores)) for which, call in WRITES.items()}
    read = {which: error_of(call, stores) for which, call in READS.items()}

    assert {
        which for which, words in said.items() if f"{path} was deleted, moved or replaced" in words
    } == set(WRITES)
    assert read == dict.fromkeys(READS)
    assert not path.exists()
    path.with_name("elsewhere.db").rename(path)
    assert {which: error_of(call, stores) for which, call in WRITES.items()} == dict.fromkeys(WRITES)


def test_a_process_that_has_only_read_knows_its_file_too(stores: Stores, path: Path) -> None:
    with closing(Database.open(f"sqlite:///{path}")) as database:
        assert database.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar_one()) == 1
        path.rename(path.with_name("elsewhere.db"))

        with pytest.raises(DatabaseUnavailable, match="was deleted, moved or replaced"):
            database.check_writes()
    assert not path.exists()


def test_no_reader_is_opened_on_what_lies_in_the_place_of_the_file(stores: Stores, path: Path) -> None:
    database = stores.database

    def read_meanwhile(_connection: Connection) -> object:
        return database.fetch("SELECT name FROM namespaces LIMIT 0", ())

    path.rename(path.with_name("elsewhere.db"))
    with pytest.raises(DatabaseUnavailable, match="was deleted, moved or replaced"):
        database.read(read_meanwhile)
    assert not path.exists()

    path.with_name("elsewhere.db").rename(path)
    assert database.read(read_meanwhile) == []


def test_no_change_goes_into_a_database_whose_file_another_one_has_replaced(
    stores: Stores, path: Path
) -> None:
    copy = path.with_name("copy.db")
    back_up(f"sqlite:///{path}", copy)
    copy.replace(path)

    with pytest.raises(DatabaseUnavailable, match="was deleted, moved or replaced"):
        stores.database.check_writes()
    with pytest.raises(DatabaseUnavailable, match="was deleted, moved or replaced"):
        stores.namespaces.create(stores.id, levels("lost"), {}, AUTHOR)
