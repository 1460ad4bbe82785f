"""What only Postgres does: deadlocks, failed transactions, constraints that speak up at COMMIT."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from app.database.connections.database import Database
from app.database.connections.driver_errors import ConstraintBroken
from app.database.landing_queues import LandingQueues
from app.database.outcomes.receipt import landed
from app.database.pointers.history import Author
from app.database.pointers.moves import Advance
from app.database.pointers.pointer import Pointer
from app.database.pointers.pointers import PutOutcome
from app.engine.model.ids import Location
from app.errors import DatabaseUnavailable, InvalidRequest
from app.shares import group_at_work
from tests.builders.databases import migrated_database_of
from tests.contract.database.companions import head
from tests.contract.database.every_call import fill
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, name
from tests.contract.database.test_lost_connections import wait_until_somebody_waits_for_a_lock
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture
def stores(postgres_server: PostgresServer) -> Iterator[Stores]:
    database_name = migrated_database_of(postgres_server)
    database = Database.open(postgres_server.url(database_name))
    stores = Stores.on(database)
    fill(stores)
    yield stores
    database.close()
    postgres_server.drop_database(database_name)


def test_text_with_nul_is_refused_and_the_connection_goes_on(stores: Stores) -> None:
    count = text("SELECT count(*) FROM pointers WHERE name = :name")

    def counted(of: str) -> Callable[[Connection], int]:
        return lambda connection: connection.execute(count, {"name": of}).scalar_one()

    for call in (stores.database.read, stores.database.write):
        with pytest.raises(InvalidRequest, match="NUL"):
            call(counted("a\0b"))
        assert call(counted("no such table")) == 0


def test_of_transactions_that_wait_for_each_other_one_runs_again(stores: Stores) -> None:
    stores.add("a.t1")
    stores.add("a.t2")
    each_holds_one = threading.Barrier(2)
    runs = {"t1": 0, "t2": 0}
    append = text("UPDATE pointers SET metadata_location = metadata_location || :mark WHERE name = :name")

    def mark_both(first: str, second: str) -> None:
        def mark(connection: Connection) -> None:
            runs[first] += 1
            connection.execute(append, {"mark": f" {first}", "name": first})
            if runs[first] == 1:
                each_holds_one.wait()
            connection.execute(append, {"mark": f" {first}", "name": second})

        stores.database.write(mark)

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(mark_both, "t1", "t2"), threads.submit(mark_both, "t2", "t1")]:
            done.result()

    assert sum(runs.values()) > 2
    for table in ("a.t1", "a.t2"):
        assert sorted(stores.there(table).metadata_location.split(" ")[1:]) == ["t1", "t2"]


def test_a_swallowed_error_does_not_pass_for_a_commit(stores: Stores) -> None:
    """Postgres answers the COMMIT of a failed transaction with ROLLBACK, and without an error."""

    def swallow(connection: Connection) -> None:
        connection.execute(text("UPDATE pointers SET metadata_location = 'half'"))
        with pytest.raises(DBAPIError):
            connection.execute(text("SELECT 1 / 0"))

    with pytest.raises(DatabaseUnavailable, match="undid the transaction"):
        stores.database.write(swallow)

    assert stores.there("a.t").metadata_location == "a.t/0.json"


def test_a_commit_that_a_constraint_refuses_changes_nothing(stores: Stores) -> None:
    statements = (
        "ALTER TABLE pointers DROP CONSTRAINT fk_pointers_namespace_id",
        (
            "ALTER TABLE pointers ADD CONSTRAINT fk_pointers_namespace_id FOREIGN KEY (namespace_id)"
            " REFERENCES namespaces (id) DEFERRABLE INITIALLY DEFERRED"
        ),
    )
    stores.database.write(lambda connection: [connection.execute(text(each)) for each in statements])

    with pytest.raises(ConstraintBroken, match="23503"):
        stores.database.write(
            lambda connection: connection.execute(text("UPDATE pointers SET namespace_id = 999"))
        )

    assert stores.there("a.t").metadata_location == "a.t/0.json"


def test_a_commit_that_is_interrupted_leaves_no_transaction_open(stores: Stores) -> None:
    """A constraint that takes its time at COMMIT, and a person who does not."""
    slow_constraint = """
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON warehouses
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()
    """
    stores.database.write(lambda connection: connection.exec_driver_sql(slow_constraint))
    main = threading.main_thread().ident
    assert main is not None

    def interrupt_when_it_sleeps() -> None:
        sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
        while stores.database.fetch(sleeping, ()) == [(0,)]:
            pass
        signal.pthread_kill(main, signal.SIGINT)

    # A process that was started in the background ignores interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with ThreadPoolExecutor(1) as thread:
            interrupting = thread.submit(interrupt_when_it_sleeps)
            with pytest.raises(KeyboardInterrupt):
                stores.warehouses.update("main", lambda there: replace(there, storage={"changed": "yes"}))
            interrupting.result()
    finally:
        signal.signal(signal.SIGINT, before)

    found = stores.warehouses.find("main")
    assert found is not None
    assert found.storage == {}
    stores.add("a.after")


def test_connections_keep_what_was_committed_and_do_not_wait_for_ever(stores: Stores) -> None:
    expected = {
        "statement_timeout": "30s",
        "lock_timeout": "10s",
        "idle_in_transaction_session_timeout": "5s",
    }

    def shown(connection: Connection) -> dict[str, str]:
        return {each: connection.execute(text(f"SHOW {each}")).scalar_one() for each in expected}

    assert stores.database.read(shown) == expected
    expected |= {"transaction_isolation": "read committed", "synchronous_commit": "on"}
    assert stores.database.write(shown) == expected


@pytest.mark.parametrize("ends", ["before a statement", "before COMMIT", "before COMMIT, and has heard it"])
def test_a_server_that_stood_still_lets_others_go_on_and_begins_again(stores: Stores, ends: str) -> None:
    """Its locks are free before others give up, and its own change is made once, by a second transaction."""
    url = str(stores.database._write_engine.url.render_as_string(hide_password=False))
    frozen = Database.open(f"{url}&options=-c%20idle_in_transaction_session_timeout%3D100ms")
    append = text("UPDATE pointers SET metadata_location = metadata_location || :mark WHERE name = 't'")
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
    runs = 0

    def mark(connection: Connection) -> None:
        nonlocal runs
        runs += 1
        connection.execute(append, {"mark": " frozen"})
        if runs == 1:
            pid = connection.scalar(text("SELECT pg_backend_pid()"))
            stores.database.write(lambda other: other.execute(append, {"mark": " other"}))
            while stores.database.fetch(sessions, (pid,)) != [(0,)]:
                pass
            if ends == "before a statement":
                connection.execute(text("SELECT 1"))
            if ends == "before COMMIT, and has heard it":
                # As the reply to the statement before does, if it is read only now.
                driver: Any = connection.connection.driver_connection
                driver.pgconn.consume_input()
                driver.pgconn.notifies()

    frozen.write(mark)
    frozen.close()

    assert runs == 2
    assert stores.there("a.t").metadata_location == "a.t/0.json other frozen"


def test_a_light_write_that_waits_for_a_row_holds_up_no_other(
    stores: Stores, postgres_server: PostgresServer
) -> None:
    """The queues of other tables go on beside one whose row somebody holds."""
    first, second = stores.add("a.t1").id, stores.add("a.t2").id
    url = str(stores.database._write_engine.url.render_as_string(hide_password=False))
    patient = Database.open(f"{url}&options=-c%20lock_timeout%3D60s")
    queues, seen = LandingQueues(patient), LandingQueues(stores.database).load(first)
    is_locked, may_end = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        connection.execute(text("SELECT id FROM pointers WHERE id = :id FOR UPDATE"), {"id": first})
        is_locked.set()
        may_end.wait(60)

    with ThreadPoolExecutor(2) as threads:
        holding = threads.submit(stores.database.write, hold)
        is_locked.wait(30)
        waiting = threads.submit(queues.put, first, seen, "[]", is_reserved=True)
        wait_until_somebody_waits_for_a_lock(postgres_server)
        assert queues.put(second, seen, "[]", is_reserved=True)
        assert not waiting.done()
        may_end.set()
        holding.result()
        assert waiting.result()
    patient.close()


def test_a_light_write_waits_for_no_row_for_long(stores: Stores) -> None:
    assert stores.database.write_lightly(lambda found: found.scalar(text("SHOW lock_timeout"))) == "1s"
    assert stores.database.write(lambda found: found.scalar(text("SHOW lock_timeout"))) == "10s"


def test_what_makes_a_write_light_stays_with_its_session(stores: Stores) -> None:
    """A pooler of transactions hands on what SET has changed, and a commit would not be durable."""

    def shown_after_reset(connection: Connection) -> object:
        connection.exec_driver_sql("RESET synchronous_commit")
        return connection.scalar(text("SHOW synchronous_commit"))

    assert stores.database.write_lightly(shown_after_reset) == "off"


def test_a_database_that_confirms_before_it_stores_is_overruled(postgres_server: PostgresServer) -> None:
    name = migrated_database_of(postgres_server)
    postgres_server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    postgres_server.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    database = Database.open(postgres_server.url(name))

    shown = database.write(
        lambda connection: [
            connection.execute(text(f"SHOW {setting}")).scalar_one()
            for setting in ("synchronous_commit", "transaction_isolation")
        ]
    )

    assert shown == ["on", "read committed"]
    database.close()
    postgres_server.drop_database(name)


def test_tables_whose_rows_are_locked_hold_up_neither_their_warehouse_nor_others(
    postgres_server: PostgresServer,
) -> None:
    """Each of their commits has come alone, in a thread of its own."""
    database_name = migrated_database_of(postgres_server)
    database, holder = (Database.open(postgres_server.url(database_name), pool_size=4) for _ in range(2))
    stores = Stores.on(database)
    fill(stores)
    tables = [stores.add(f"a.held{number}") for number in range(6)]
    free, of_same = stores.add("a.free"), stores.add("a.same")
    are_held, may_go = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        connection.execute(text("SELECT FROM pointers WHERE name LIKE 'held%' FOR UPDATE")).all()
        are_held.set()
        assert may_go.wait(30)

    def commit(pointer: Pointer, warehouse: str) -> PutOutcome:
        group_at_work.set((warehouse, str(pointer.identifier)))
        of = head()
        author, move = Author("alice", "r", NOW_MS, of), Advance(pointer, Location("1.json"), pointer.uuid)
        return stores.pointers.check_and_put([move], author, None, receipts=[landed(of, NOW_MS, [], 1)])

    def rename(pointer: Pointer, warehouse: str) -> PutOutcome:
        group_at_work.set((warehouse, str(pointer.identifier)))
        stores.pointers.rename(stores.id, pointer.kind, pointer.identifier, name("a.renamed"), AUTHOR)
        return PutOutcome.ADVANCED

    def apart(work: Callable[[Pointer, str], PutOutcome], pointer: Pointer, warehouse: str) -> PutOutcome:
        return copy_context().run(work, pointer, warehouse)

    with ThreadPoolExecutor(8) as threads:
        holding = threads.submit(holder.write, hold)
        assert are_held.wait(30)
        waiting = [threads.submit(apart, commit, pointer, "lake") for pointer in tables]
        try:
            wait_until_somebody_waits_for_a_lock(postgres_server)
            assert threads.submit(apart, commit, of_same, "lake").result(60) is PutOutcome.ADVANCED
            assert threads.submit(apart, rename, free, "pond").result(60) is PutOutcome.ADVANCED
            # Those whose rows are locked give up after a while, and let others have their connections.
            assert not any(each.done() for each in waiting)
        finally:
            may_go.set()
        holding.result()
        assert [each.result() for each in waiting] == [PutOutcome.ADVANCED] * len(tables)
    database.close()
    holder.close()
    postgres_server.drop_database(database_name)
