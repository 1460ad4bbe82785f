"""The guard finds nothing wrong with what DuckDB writes."""

from __future__ import annotations

from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from tests.e2e.duckdb.attached import Duck
from tests.e2e.guarding import watched

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "kind", StringType()))


def test_what_duckdb_writes_is_sound(duck: Duck, sqlite_server: str) -> None:
    with watched(sqlite_server) as seen:
        table = duck.pyiceberg.create_table(
            (duck.schema, "t"), SCHEMA, properties={"icetower.guard": "reject"}
        )
        for number in range(5):
            duck(f"INSERT INTO our.t VALUES ({number}, 'a'), ({number + 10}, 'b')")
        duck("DELETE FROM our.t WHERE id = 3")
        duck("UPDATE our.t SET kind = 'c' WHERE id > 11")
        duck("BEGIN")
        duck("INSERT INTO our.t VALUES (50, 'x')")
        duck("INSERT INTO our.t VALUES (51, 'x')")
        duck("DELETE FROM our.t WHERE id = 1")
        duck("COMMIT")
        duck("INSERT INTO our.t SELECT i, 'many' FROM range(100, 200) r(i)")
        duck("DELETE FROM our.t")
        duck("INSERT INTO our.t VALUES (1, 'again')")
        made = len(duck.pyiceberg.load_table(table.name()).metadata.snapshots)

    assert seen.findings == {}
    assert seen.snapshots == {"clean": made}
    assert made >= 11
