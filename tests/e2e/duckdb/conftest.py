"""DuckDB with its Iceberg extension, attached to a real server, and a fresh schema for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog

from examples.flights.comparison import duckdb_with_iceberg
from tests.e2e.duckdb.attached import Duck

_numbers = itertools.count(1)


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
