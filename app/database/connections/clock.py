"""The clock of the database, which all servers on it share; their own may differ by hours."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class database_now_ms(FunctionElement[int]):  # noqa: N801 - an SQL function
    """The time of the database when the statement runs, in epoch milliseconds."""

    type = BigInteger()
    inherit_cache = True


@compiles(database_now_ms, "postgresql")
def _on_postgres(_element: database_now_ms, _compiler: SQLCompiler, **_options: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"


@compiles(database_now_ms, "sqlite")
def _on_sqlite(_element: database_now_ms, _compiler: SQLCompiler, **_options: Any) -> str:
    return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
