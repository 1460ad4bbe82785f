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


def test_a_replaced_deletion_vector_stays_in_duckdbs_totals_and_the_guard_says_so(
    duck: Duck, sqlite_server: str
) -> None:
    properties = {"format-version": "3", "icetower.guard": "reject"}
    table = duck.pyiceberg.create_table((duck.schema, "t"), SCHEMA, properties=properties)
    duck("INSERT INTO our.t SELECT i, 'a' FROM range(10) r(i)")
    duck("DELETE FROM our.t WHERE id = 3")  # the file's first deletion vector

    refusal = duck.fails("DELETE FROM our.t WHERE id = 4")  # the second one replaces it
    kept = duck("SELECT count(*) FROM our.t")
    with duck.pyiceberg.load_table(table.name()).transaction() as change:
        change.set_properties({"icetower.guard.ignore": "summary-totals"})
    duck("DELETE FROM our.t WHERE id = 4")

    assert "says total-delete-files 2 after 1, but its manifests change that by 0, to 1" in refusal
    assert "add summary-totals to icetower.guard.ignore" in refusal
    assert kept == [(9,)]
    assert duck("SELECT count(*) FROM our.t") == [(8,)]
