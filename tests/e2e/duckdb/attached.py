"""DuckDB attached to a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import pytest
from pyiceberg.catalog.rest import RestCatalog


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
