"""Rows as Java's JdbcCatalog and the SQL catalogs of PyIceberg and iceberg-rust leave them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.moving.sources import Entry, SourceFailed, SourceMoved
from app.moving.sql_source import SqlSource

V0 = """
CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,
    table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),
    PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
    property_key VARCHAR(255), property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key));
"""
V1 = V0 + "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5);"
SALES, INNER = Namespace(("sales",)), Namespace(("eu", "sales"))
ORDERS = Entry(TableIdentifier(SALES, "orders"))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)) as connection:
        yield connection


def source(tmp_path: Path, catalog: str | None = None) -> SqlSource:
    return SqlSource(f"sqlite:///{tmp_path / 'catalog.db'}", catalog)


def fill(database: sqlite3.Connection, schema: str, *rows: tuple[str | None, ...]) -> None:
    database.executescript(schema)
    for row in rows:
        database.execute(f"INSERT INTO iceberg_tables VALUES ({', '.join('?' * len(row))})", row)


def test_tables_of_the_first_version_have_no_kind(database: sqlite3.Connection, tmp_path: Path) -> None:
    fill(
        database, V0, ("prod", "sales", "orders", "s3://b/1.json", None), ("prod", "eu.sales", "t", "x", None)
    )
    found = source(tmp_path)

    # Both exist only by their tables.
    assert list(found.namespaces()) == [INNER, SALES]
    assert list(found.entries(SALES)) == [ORDERS]
    assert found.find_location(ORDERS) == "s3://b/1.json"
    assert dict(found.properties(SALES)) == {}
    assert found.mark(ORDERS, {"a": "b"}) is False


def test_kinds_and_properties_of_later_versions_are_read(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    fill(
        database,
        V1,
        ("prod", "sales", "orders", "o", None, None),
        ("prod", "sales", "paid", "p", None, "TABLE"),
        ("prod", "sales", "big", "v", None, "VIEW"),
        ("other", "sales", "theirs", "t", None, "TABLE"),
    )
    for row in (("sales", "exists", "true"), ("sales", "owner", "anna"), ("empty", "exists", "true")):
        database.execute("INSERT INTO iceberg_namespace_properties VALUES ('prod', ?, ?, ?)", row)
    found = source(tmp_path, "prod")

    assert {(entry.identifier.name, entry.kind) for entry in found.entries(SALES)} == {
        ("orders", "table"),
        ("paid", "table"),
        ("big", "view"),
    }
    assert list(found.namespaces()) == [Namespace(("empty",)), SALES]
    assert dict(found.properties(SALES)) == {"owner": "anna"}


def test_folded_names_are_found(database: sqlite3.Connection, tmp_path: Path) -> None:
    fill(database, V1.upper(), ("prod", "sales", "orders", "o", None, "TABLE"))

    assert list(source(tmp_path).entries(SALES)) == [ORDERS]
    assert source(tmp_path).find_location(ORDERS) == "o"


def test_several_catalogs_are_listed_until_one_is_chosen(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    fill(database, V0, ("prod", "sales", "orders", "o", None), ("dev", "sales", "orders", "d", None))

    with pytest.raises(SourceFailed, match=r"these catalogs: dev, prod\. Name one"):
        source(tmp_path)
    with pytest.raises(SourceFailed, match="No catalog is called test in the database: there are dev, prod"):
        source(tmp_path, "test")
    assert source(tmp_path, "dev").find_location(ORDERS) == "d"


def test_entry_goes_only_from_where_it_was_seen(database: sqlite3.Connection, tmp_path: Path) -> None:
    fill(database, V0, ("prod", "sales", "orders", "new", "old"), ("prod", "sales", "paid", None, None))
    found = source(tmp_path)

    with pytest.raises(SourceMoved):
        found.drop(ORDERS, "old")
    assert found.find_location(ORDERS) == "new"
    assert found.drop(ORDERS, "new") == "new"
    assert found.drop(ORDERS, "new") is None
    assert found.find_location(ORDERS) is None
    with pytest.raises(SourceFailed, match="names no metadata file"):
        found.find_location(Entry(TableIdentifier(SALES, "paid")))


def test_what_is_no_catalog_is_refused(database: sqlite3.Connection, tmp_path: Path) -> None:
    database.execute("CREATE TABLE iceberg_tables_of_others (a)")
    with pytest.raises(SourceFailed, match="has no table iceberg_tables"):
        source(tmp_path)
    with pytest.raises(SourceFailed, match="There is no SQLite database"):
        SqlSource(f"sqlite:///{tmp_path}/absent.db")
    assert not (tmp_path / "absent.db").exists()
    with pytest.raises(SourceFailed, match="is not the URL of a database"):
        SqlSource("nonsense")
    with pytest.raises(SourceFailed, match="A database of mysql cannot be read"):
        SqlSource("jdbc:mysql://host/db")
    with pytest.raises(SourceFailed, match="The database of the SQL catalog failed"):
        SqlSource("postgresql://nobody:secret@127.0.0.1:1/db?connect_timeout=2")


@pytest.mark.filterwarnings("ignore:Query string argument")  # SQLite knows no password
def test_addresses_of_java_are_read_and_no_password_is_shown(
    database: sqlite3.Connection, tmp_path: Path
) -> None:
    fill(database, V0, ("prod", "sales", "orders", "o", None))
    path = tmp_path / "catalog.db"

    assert SqlSource(f"jdbc:sqlite:{path}").name == f"sqlite:///{path}#prod"
    shown = SqlSource(f"jdbc:sqlite:{path}?user=u&password=hunter2").name
    assert shown == f"sqlite:///{path}?user=u#prod"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://u:hun@ter2@127.0.0.1:1/db", "write %40 for the one in the password"),
        ("postgresql://u:hunter2@h:port/db", "is not the URL of a database"),
        ("postgresql+asyncpg://u:hunter2@127.0.0.1:1/db", "The database of the SQL catalog failed"),
    ],
)
def test_url_that_cannot_be_used_is_refused_without_its_password(url: str, reason: str) -> None:
    with pytest.raises(SourceFailed, match=reason) as refused:
        SqlSource(url)

    assert "ter2" not in str(refused.value)


@pytest.mark.parametrize(
    "row", [("prod", None, "t"), ("prod", "a", None), ("prod", 5, "t"), ("prod", "a", b"t")]
)
def test_row_without_a_name_is_refused(
    database: sqlite3.Connection, tmp_path: Path, row: tuple[object, ...]
) -> None:
    database.execute(
        "CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)"
    )
    database.execute("INSERT INTO iceberg_tables VALUES (NULL, NULL, NULL, NULL)")
    database.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, 'x')", row)
    source = SqlSource(f"sqlite:///{tmp_path / 'catalog.db'}")

    with pytest.raises(SourceFailed, match="no text"):
        [list(source.entries(namespace)) for namespace in source.namespaces()]
