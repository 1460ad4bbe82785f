"""Which database URLs are accepted, and what is said of the others."""

from __future__ import annotations

import pytest

from app.database.connections.database import Database
from app.errors import InvalidSetting


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("sqlite:///x.db", "sqlite"),
        ("sqlite+pysqlite:////var/x.db", "sqlite"),
        ("postgresql://user:pass@host:5433/name?sslmode=require", "postgresql"),
        ("postgresql+psycopg://user@/name?host=a:5432&host=b:5432", "postgresql"),
        ("postgres://user@host/name", "postgresql"),
    ],
)
def test_urls_of_both_databases_are_opened(url: str, dialect: str) -> None:
    database = Database.open(url)

    assert database.dialect_name == dialect
    database.close()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file::memory:?cache=shared&uri=true",
        "sqlite:///file:x?mode=memory&uri=true",
    ],
)
def test_a_database_that_forgets_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting, match="would lose every table: name a file"):
        Database.open(url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://user:secret@host/name", "begins with 'mysql', expected 'sqlite' or 'postgresql'"),
        ("postgresql+asyncpg://user:secret@host/name", "begins with 'postgresql\\+asyncpg'"),
        ("secret", "is not a URL"),
        ("", "is not a URL"),
        ("postgresql://user:secret@host:port/name", "is not a URL"),
        ("postgresql://user:p@secret@host/name", "it has two @; write %40 for the one in the password"),
        ("postgresql://user:secret@one:5432,two/name", "written postgresql://.*host=one:5432&host=two:5432"),
        ("postgresql://user:secret@one:1,two:2", "several hosts with ports are written"),
        ("postgresql://user:secret,1@host:port/name", "is not a URL"),
        ("sqlite://data/secret.db", "SQLite has no host; write sqlite:/// before a path"),
    ],
)
def test_other_urls_are_refused_without_their_secrets(url: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words) as refusal:
        Database.open(url)

    assert "secret" not in str(refusal.value)
