"""DuckDB's transactions begin before another writer's commit, and land after it."""

from __future__ import annotations

import pytest

from tests.e2e.duckdb.attached import Duck


@pytest.mark.parametrize("version", [2, 3])
def test_insert_of_a_transaction_lands_on_what_came_meanwhile(duck: Duck, version: int) -> None:
    duck(
        "CREATE TABLE our.numbers (number INTEGER) "
        f"WITH ('format-version' = '{version}', 'icetower.rebase' = 'appends', 'icetower.guard' = 'reject')"
    )
    duck("INSERT INTO our.numbers VALUES (1)")
    duck("BEGIN")
    duck("INSERT INTO our.numbers VALUES (2)")
    rival(duck, 3)

    duck("COMMIT")

    assert sorted(duck("SELECT number FROM our.numbers")) == [(1,), (2,), (3,)]
    duck("INSERT INTO our.numbers VALUES (4)")
    assert sorted(duck("SELECT number FROM our.numbers")) == [(1,), (2,), (3,), (4,)]
    found = duck.pyiceberg.load_table(f"{duck.schema}.numbers")
    assert sorted(found.scan().to_arrow()["number"].to_pylist()) == [1, 2, 3, 4]
    assert [snapshot.parent_snapshot_id for snapshot in found.snapshots()][1:] == [
        snapshot.snapshot_id for snapshot in found.snapshots()
    ][:-1]


def rival(duck: Duck, number: int) -> None:
    """Append a number from another connection."""
    with duck.connection.cursor() as other:
        other.execute(f"INSERT INTO tower.{duck.schema}.numbers VALUES ({number})")
