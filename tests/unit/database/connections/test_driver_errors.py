"""What exceptions of the drivers are taken to mean."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError, OperationalError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.database.connections.driver_errors import (
    ConstraintBroken,
    LockNotFree,
    commit_was_refused,
    lost_connection,
    only_reads,
    our_error,
    undid_transaction,
)
from app.errors import DatabaseBehind, DatabaseUnavailable, InvalidRequest


def wrapped(error: BaseException, *, invalidated: bool = False) -> DBAPIError:
    return OperationalError("SELECT secret", {"name": "secret"}, error, connection_invalidated=invalidated)


def postgres_error(code: str) -> psycopg.Error:
    return psycopg.errors.lookup(code)("at secret-host: secret words")


def sqlite_error(sql: str, *preparations: str) -> sqlite3.Error:
    """Return the exception that a statement raises, as only SQLite itself can make one with a code."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for each in preparations:
            connection.execute(each)
        connection.execute(sql)
    except sqlite3.Error as error:
        return error
    finally:
        connection.close()
    raise AssertionError("no error")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("53100", "its disk is full (53100)"),
        ("53300", "it has no connection left (53300)"),
        ("55P03", "another transaction held the row for too long (55P03)"),
        ("57P01", "it is shutting down, or an administrator ended the session (57P01)"),
        ("22P05", "it failed (22P05)"),
    ],
)
def test_postgres_says_why_in_our_words(code: str, words: str) -> None:
    error = our_error(wrapped(postgres_error(code)))

    assert type(error) is (LockNotFree if code == "55P03" else DatabaseUnavailable)
    assert str(error).endswith(words)


def test_no_word_of_the_driver_is_passed_on() -> None:
    errors = [postgres_error("53100"), psycopg.OperationalError("secret"), sqlite3.OperationalError("secret")]

    for error in (*errors, *map(wrapped, errors)):
        assert "secret" not in str(our_error(error))


def test_a_connection_without_a_code_failed_or_was_lost() -> None:
    assert "failed or was lost" in str(our_error(psycopg.OperationalError("server closed the connection")))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("FATAL:  sorry, too many clients already", "it has no connection left"),
        ("FATAL:  remaining connection slots are reserved for roles", "it has no connection left"),
        ('FATAL:  password authentication failed for user "secret"', "it refuses the role, its password"),
        ('FATAL:  no pg_hba.conf entry for host "secret"', "its pg_hba.conf refuses the role from here"),
        ("SSL error: certificate verify failed", "its certificate, or that of this server, was refused"),
        ("FATAL:  the database system is starting up", "it is starting up or shutting down"),
    ],
)
def test_what_postgres_says_to_those_that_are_not_connected_is_told_in_our_words(
    said: str, words: str
) -> None:
    message = str(our_error(psycopg.OperationalError(f'connection to server at "secret" failed: {said}')))

    assert words in message
    assert "secret" not in message


def test_text_that_postgres_cannot_hold_is_the_requests_fault() -> None:
    error = psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")

    for each in (error, wrapped(error)):
        assert type(our_error(each)) is InvalidRequest
    assert type(our_error(wrapped(psycopg.DataError("another")))) is DatabaseUnavailable


def test_a_limit_of_the_whole_database_is_no_fault_of_the_request() -> None:
    """Postgres has one code for an index and for transactions that have no number left."""
    assert type(our_error(wrapped(postgres_error("54000")))) is DatabaseUnavailable


@pytest.mark.parametrize(
    "error",
    [
        postgres_error("42P01"),
        postgres_error("42703"),
        sqlite_error("SELECT * FROM missing"),
        sqlite_error("SELECT missing FROM t", "CREATE TABLE t (x)"),
        sqlite_error("INSERT INTO t (missing) VALUES (1)", "CREATE TABLE t (x)"),
    ],
)
def test_missing_tables_and_columns_mean_that_the_database_is_behind(error: Exception) -> None:
    assert type(our_error(error)) is DatabaseBehind
    assert type(our_error(wrapped(error))) is DatabaseBehind


def test_a_search_path_that_leads_nowhere_is_named_and_no_migration_is_asked_for() -> None:
    """Tables that could not be made are no older revision: a migration would fail in the same way."""
    said = str(our_error(wrapped(postgres_error("3F000"))))

    assert "search_path" in said
    assert "migrate" not in said


@pytest.mark.parametrize(
    "error",
    [
        postgres_error("23505"),
        postgres_error("23503"),
        sqlite_error("INSERT INTO t VALUES (1)", "CREATE TABLE t (x UNIQUE)", "INSERT INTO t VALUES (1)"),
    ],
)
def test_broken_constraints_are_told_apart(error: Exception) -> None:
    assert type(our_error(wrapped(error))) is ConstraintBroken


def test_what_is_not_the_drivers_is_named_only() -> None:
    assert str(our_error(StatementError("secret", "SELECT", {}, ValueError("secret")))).endswith(
        "StatementError"
    )
    assert "does not keep up" in str(our_error(PoolTimeout("secret")))


def test_only_deadlocks_and_serialization_failures_undo_a_transaction_by_chance() -> None:
    assert [undid_transaction(wrapped(postgres_error(code))) for code in ("40P01", "40001", "23505")] == [
        True,
        True,
        False,
    ]
    assert not undid_transaction(sqlite_error("SELECT"))


def test_a_connection_is_lost_when_the_driver_says_so() -> None:
    assert lost_connection(wrapped(psycopg.OperationalError("closed"), invalidated=True))
    assert not lost_connection(wrapped(postgres_error("55P03")))
    assert not lost_connection(sqlite_error("SELECT"))


def test_a_server_that_only_reads_is_recognised() -> None:
    assert only_reads(wrapped(postgres_error("25006")))
    assert not only_reads(wrapped(postgres_error("55P03")))
    assert not only_reads(sqlite_error("SELECT"))


def test_a_commit_refused_by_sqlite_is_known_unless_the_disk_fails() -> None:
    connection = sqlite3.connect(":memory:")
    with_code = sqlite_error(
        "INSERT INTO t VALUES (1)", "CREATE TABLE t (x UNIQUE)", "INSERT INTO t VALUES (1)"
    )

    assert commit_was_refused(with_code, connection)
    assert not commit_was_refused(sqlite3.OperationalError("without a code, nothing is known"), connection)
    assert not commit_was_refused(RuntimeError("not SQLite's"), connection)
    connection.close()
