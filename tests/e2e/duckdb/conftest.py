"""DuckDB with its Iceberg extension, attached to a real server, and a fresh schema for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyiceberg.catalog.rest import RestCatalog

from examples.flights.comparison import duckdb_with_iceberg

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Duck:
    """DuckDB whose catalog `tower` is a server; `our.` in a statement stands for the test's own schema."""

    connection: duckdb.DuckDBPyConnection
    schema: str
    pyiceberg: RestCatalog

    def __call__(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement; answer its rows."""
        rows: list[tuple[Any, ...]] = self.connection.execute(
            statement.replace("our.", f"tower.{self.schema}.")
        ).fetchall()
        return rows

    def fails(self, statement: str) -> str:
        """Run a statement that must fail; answer what DuckDB says."""
        with pytest.raises(duckdb.Error) as caught:
            self(statement)
        return str(caught.value)


@pytest.fixture(scope="session")
def extensions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("duckdb-extensions")


@pytest.fixture
def duck(extensions: Path, sqlite_server: str) -> Iterator[Duck]:
    catalog = RestCatalog("tower", uri=sqlite_server)
    schema = f"duckdb_{next(_numbers)}"
    catalog.create_namespace(schema)
    with duckdb_with_iceberg(extensions) as connection:
        connection.execute(
            f"ATTACH '' AS tower (TYPE iceberg, ENDPOINT '{sqlite_server}', AUTHORIZATION_TYPE 'none')"
        )
        yield Duck(connection, schema, catalog)
