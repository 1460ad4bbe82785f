"""What is done again and again, whatever there is: it reads what is due, and not all that waits or has been."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from sqlalchemy import Connection, text

from app.database.deletions import metadata_sweeps
from app.database.deletions.metadata_sweeps import MetadataSweeps
from app.database.deletions.old_rows import OldRows
from app.database.dropped import DroppedThings
from app.database.landing_queues import LandingQueues
from app.database.maintenance_jobs import MaintenanceJobs
from app.database.outcomes.receipts import Receipts
from app.database.past import Past
from app.database.pointer_exports import PointerExports
from app.database.statements.batches import BATCH
from tests.contract.database.stores import Stores
from tests.contract.database.test_plans import asked_in

FILL = """
    INSERT INTO file_deletions (warehouse_id, kind, uuid, metadata_location, identifier, state, attempts,
         not_before_ms, leased_until_ms, created_ms, pointer_id)
        SELECT 1, 'purge', 'u' || n, 'l' || n, 'a.t' || n, 'queued', 0, 9000000000000 + n, 0, 0, n FROM numbers;
    INSERT INTO table_places (pointer_id, place) SELECT n, 'p' || n FROM numbers;
    INSERT INTO idempotency_keys (principal, key, request_hash, status, result, created_ms, expires_ms)
        SELECT 'a', 'k' || n, 'h', 200, '', 0, n FROM numbers;
    INSERT INTO scan_plans (id, pointer_id, state, created_ms, leased_until_ms, expires_ms)
        SELECT 'p' || n, 1, 'completed', 0, 0, n FROM numbers;
    INSERT INTO landing_queues (pointer_id, version, content, changed_ms) SELECT n, 1, '{}', n FROM numbers;
    INSERT INTO pointer_history
        (pointer_id, warehouse_id, namespace_key, name, kind, event, location, uuid, at_ms, author, request_id)
        SELECT n % 2, 1, 'a', 't', 'table', 'committed', 'l' || n, 'u' || n, n, 'a', 'r' FROM numbers;
    DROP TABLE numbers
"""
NUMBER = 2 * BATCH + 1
# A whole table of the database; what is found once for a statement is not one.
SCAN = re.compile(r"SCAN (?!CONSTANT|anon|\(subquery|warehouses|others)(\w+)|Seq Scan on (?!warehouses)(\w+)")


@pytest.fixture
def filled(stores: Stores) -> Stores:
    def fill(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE numbers (n INTEGER)"))
        connection.execute(text("INSERT INTO numbers VALUES (:n)"), [{"n": n + 1} for n in range(NUMBER)])
        for statement in FILL.split(";"):
            connection.execute(text(statement))

    stores.database.write(fill)
    return stores


def scanned_in(stores: Stores, work: Callable[[], object]) -> set[str]:
    """Return the tables that are read from end to end while something is done, as there is no other way."""
    return {name for match in SCAN.finditer(plans_of(stores, work)) for name in match.groups() if name}


def plans_of(stores: Stores, work: Callable[[], object]) -> str:
    asked = asked_in(stores, work)

    def explained(connection: Connection) -> list[str]:
        if stores.database.dialect_name == "sqlite":
            explain = "EXPLAIN QUERY PLAN"
        else:
            explain = "EXPLAIN"
            # Small tables are read as a whole for being small.
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        return [
            row[-1] for sql, values in asked for row in connection.exec_driver_sql(f"{explain} {sql}", values)
        ]

    return "\n".join(stores.database.write(explained))


def test_places_that_nobody_needs_are_found_by_one_walk_through_them(filled: Stores) -> None:
    scanned = scanned_in(filled, lambda: OldRows(filled.database).delete(0))

    assert scanned <= {"table_places", "foreign_places", "metadata_sweeps", "orphan_batches"}
    # Postgres may read all that is queued once for all places; SQLite would do it for each.
    if filled.database.dialect_name == "sqlite":
        assert "ix_file_deletions_state" not in plans_of(filled, lambda: OldRows(filled.database).delete(0))


def test_what_is_over_is_found_by_its_time(filled: Stores) -> None:
    database = filled.database

    def clean() -> None:
        filled.idempotency_keys.delete_expired(0)
        filled.scan_plans.delete_expired(0)
        LandingQueues(database).delete_old(9_000_000_000_000)
        MaintenanceJobs(database).delete(9_000_000_000_000)
        Receipts(database).delete(1)
        Receipts(database).delete_what_did_not_land(1)

    assert scanned_in(filled, clean) == set()


def test_what_is_over_goes_in_small_transactions(filled: Stores) -> None:
    cleanings: list[Callable[[], int]] = [
        lambda: filled.idempotency_keys.delete_expired(NUMBER),
        lambda: filled.scan_plans.delete_expired(NUMBER),
        lambda: LandingQueues(filled.database).delete_old(0),
    ]

    for clean in cleanings:
        asked = asked_in(filled, clean)
        assert sum(sql.startswith("DELETE") for sql, _ in asked) == 3
        assert clean() == 0


def test_a_clean_up_that_is_stopped_ends_after_the_batch_at_which_it_is(filled: Stores) -> None:
    database = filled.database
    of_nobody = text("UPDATE pointer_history SET pointer_id = 3, at_ms = sequence")
    database.write(lambda connection: connection.execute(of_nobody))
    cleanings: list[Callable[[Callable[[], bool]], int]] = [
        lambda is_stopped: filled.idempotency_keys.delete_expired(NUMBER, is_stopped),
        lambda is_stopped: filled.scan_plans.delete_expired(NUMBER, is_stopped),
        lambda is_stopped: LandingQueues(database).delete_old(0, is_stopped),
        lambda is_stopped: OldRows(database).delete(0, is_stopped),
    ]

    for clean in cleanings:
        answers = iter([False])
        assert clean(lambda answers=answers: next(answers, True)) == BATCH  # type: ignore[misc]  # bound now


def test_what_is_deleted_next_and_just_now_is_found_among_what_is_due_and_has_begun(filled: Stores) -> None:
    queue = filled.file_deletions

    def ask() -> None:
        assert queue.lease(60_000, besides=[5]) is None, "nothing is due"
        assert not queue.are_at_work(None)

    assert scanned_in(filled, ask) == set()
    plans = plans_of(filled, ask)
    assert "ix_file_deletions_state_warehouse_id_not_before_ms" in plans
    assert "ix_file_deletions_begun" in plans


def test_what_is_listed_of_one_warehouse_is_found_through_an_index(filled: Stores) -> None:
    def ask() -> None:
        DroppedThings(filled.database).list(filled.id, 0, limit=10)
        PointerExports(filled.database).unregistered_uuids(filled.id)
        PointerExports(filled.database).drop_times(filled.id)
        Past(filled.database).history(1, 500, limit=10)

    assert scanned_in(filled, ask) == set()
    assert "TEMP B-TREE FOR ORDER" not in plans_of(filled, ask)


def test_pointers_that_went_back_are_found_without_reading_their_commits(filled: Stores) -> None:
    plans = plans_of(filled, lambda: PointerExports(filled.database).places_left(range(2)))

    assert "ix_pointer_history_beside_commits" in plans


def test_turns_of_tables_are_found_stretch_by_stretch(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_sweeps, "STRETCH", 2)
    stores.add_namespace("a")
    ids = [stores.add(f"a.t{number}").id for number in range(5)]
    sweeps = MetadataSweeps(stores.database)
    assert [sweeps.take(0) for _ in ids] == ids
    assert [sweeps.take(0) for _ in range(3)] == [None] * 3

    new = stores.add("a.new").id

    assert new in [sweeps.take(0) for _ in range(4)]
