"""DuckDB attaches the catalog as it was, beside the catalog as it is."""

from __future__ import annotations

import time

import pytest

from tests.e2e.duckdb.attached import Duck

pytestmark = pytest.mark.slow


def test_past_is_attached_beside_the_present(duck: Duck, sqlite_server: str) -> None:
    duck("CREATE TABLE our.t (id BIGINT)")
    duck("INSERT INTO our.t VALUES (1), (2)")
    then_ms = time.time_ns() // 1_000_000 + 1
    while time.time_ns() // 1_000_000 <= then_ms:
        pass
    duck("INSERT INTO our.t VALUES (3)")
    duck(
        f"ATTACH 'default@{then_ms}' AS was (TYPE iceberg, ENDPOINT '{sqlite_server}', AUTHORIZATION_TYPE 'none')"
    )

    joined = f"SELECT now.id FROM our.t now ANTI JOIN was.{duck.schema}.t USING (id)"

    assert duck(f"SELECT id FROM was.{duck.schema}.t ORDER BY id") == [(1,), (2,)]
    assert duck(joined) == [(3,)]
    said = duck.fails(f"INSERT INTO was.{duck.schema}.t VALUES (4)")
    assert "read-only" in said or "endpoint" in said, said
