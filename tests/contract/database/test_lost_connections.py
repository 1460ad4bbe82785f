"""Postgres goes away at every bad moment: what is said of a change is true, and the next call works again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from app.database.connections.database import Database
from app.database.deletions.orphan_runs import OrphanBatch, OrphanRuns
from app.database.pointers.moves import Advance, Creation
from app.database.pointers.pointer import PointerKind
from app.database.pointers.pointers import PutOutcome
from app.database.schema.migrations import migrate
from app.database.schema.revisions import check_revision
from app.engine.model.ids import Location
from app.errors import CommitStateUnknown, DatabaseUnavailable
from tests.builders.databases import migrated_database_of
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, claim, levels, name
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_proxy import Break, PostgresProxy, wire_to

pytestmark = pytest.mark.postgres

TABLE = PointerKind.TABLE


@pytest.fixture
def database_name(postgres_server: PostgresServer) -> Iterator[str]:
    name = migrated_database_of(postgres_server)
    yield name
    postgres_server.drop_database(name)


@pytest.fixture
def direct(postgres_server: PostgresServer, database_name: str) -> Iterator[Stores]:
    """What another server sees, whose wire is sound; it has a namespace and a table."""
    database = Database.open(postgres_server.url(database_name))
    stores = Stores.on(database)
    stores.add_namespace("a")
    stores.add("a.t")
    yield stores
    database.close()


@pytest.fixture
def wired(direct: Stores, postgres_wire: PostgresProxy, database_name: str) -> Iterator[Stores]:
    database = Database.open(postgres_wire.url(database_name))
    yield Stores.on(database)
    database.close()


def change_of(stores: Stores, kind: str) -> Advance | Creation:
    if kind == "advance":
        seen = stores.there("a.t")
        return Advance(seen, Location("1.json"), seen.uuid)
    return stores.creation("a.new")


CHANGES = pytest.mark.parametrize("kind", ["advance", "creation"])


@CHANGES
@pytest.mark.parametrize("how", [Break.LOSE_REPLY, Break.LOSE_REQUEST])
def test_commit_without_reply_is_unknown_until_it_is_looked_up(
    direct: Stores, wired: Stores, postgres_wire: PostgresProxy, how: Break, kind: str
) -> None:
    change = change_of(wired, kind)
    postgres_wire.break_at("COMMIT", how)

    assert wired.pointers.check_and_put([change], AUTHOR, claim()) is PutOutcome.UNKNOWN

    landed = how is Break.LOSE_REPLY
    assert wired.pointers.has_landed(change, AUTHOR) is landed
    assert (direct.idempotency_keys.find("alice", "key-1", NOW_MS) is not None) is landed
    again = wired.pointers.check_and_put([change_of(wired, kind)], AUTHOR) if not landed else None
    assert again in (None, PutOutcome.ADVANCED)


@CHANGES
@pytest.mark.parametrize("lands", [True, False])
def test_looking_up_waits_for_a_commit_that_is_still_on_its_way(
    direct: Stores,
    wired: Stores,
    postgres_wire: PostgresProxy,
    postgres_server: PostgresServer,
    lands: bool,
    kind: str,
) -> None:
    """The client is told nothing, while the transaction is open on the server, and may still be committed."""
    change = change_of(wired, kind)
    postgres_wire.break_at("COMMIT", Break.HOLD)
    assert wired.pointers.check_and_put([change], AUTHOR) is PutOutcome.UNKNOWN

    with ThreadPoolExecutor(1) as thread:
        landed = thread.submit(wired.pointers.has_landed, change, AUTHOR)
        wait_until_somebody_waits_for_a_lock(postgres_server)
        assert not landed.done()
        if lands:
            postgres_wire.release()
        else:
            postgres_wire.lose_held()

        assert landed.result() is lands


def test_pointer_is_found_locked_only_after_a_commit_on_its_way(
    direct: Stores, wired: Stores, postgres_wire: PostgresProxy, postgres_server: PostgresServer
) -> None:
    seen = wired.there("a.t")
    postgres_wire.break_at("COMMIT", Break.HOLD)
    assert wired.advance(seen, "1.json") is PutOutcome.UNKNOWN

    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(wired.pointers.find_locked, seen.id)
        wait_until_somebody_waits_for_a_lock(postgres_server)
        postgres_wire.release()

        pointer = found.result()
    assert pointer is not None
    assert pointer.metadata_location == "1.json"


@pytest.mark.parametrize("lands", [True, False])
def test_marking_orphans_waits_for_a_commit_that_is_still_on_its_way(
    wired: Stores, postgres_wire: PostgresProxy, postgres_server: PostgresServer, lands: bool
) -> None:
    runs, seen = OrphanRuns(wired.database), wired.there("a.t")
    postgres_wire.break_at("COMMIT", Break.HOLD)

    with ThreadPoolExecutor(1) as thread:
        marked = thread.submit(runs.mark, seen, "{}", 0, NOW_MS, [OrphanBatch(0, "[]", 1, 1)], claim())
        wait_until_somebody_waits_for_a_lock(postgres_server)
        assert not marked.done()
        if lands:
            postgres_wire.release()
        else:
            postgres_wire.lose_held()

        error = marked.exception()
    assert lands is (error is None)
    assert lands or isinstance(error, DatabaseUnavailable)
    assert [run.state for run in runs.of_table(seen.uuid, 10)] == (["queued"] if lands else [])


def test_a_commit_that_stays_on_its_way_is_not_known_to_have_failed(
    direct: Stores,
    wired: Stores,
    postgres_wire: PostgresProxy,
    postgres_server: PostgresServer,
    database_name: str,
) -> None:
    seen = wired.there("a.t")
    change = change_of(wired, "advance")
    impatient = Database.open(postgres_server.url(database_name) + "&options=-c%20lock_timeout%3D50ms")
    postgres_wire.break_at("COMMIT", Break.HOLD)
    assert wired.pointers.check_and_put([change], AUTHOR) is PutOutcome.UNKNOWN

    with pytest.raises(DatabaseUnavailable, match="held the row for too long"):
        Stores.on(impatient).pointers.has_landed(change, AUTHOR)
    with pytest.raises(DatabaseUnavailable, match="held the row for too long"):
        Stores.on(impatient).advance(seen, "2.json")

    postgres_wire.lose_held()
    impatient.close()


@pytest.mark.parametrize("how", [Break.LOSE_REPLY, Break.LOSE_REQUEST])
@pytest.mark.parametrize(
    "deed",
    [
        lambda stores: stores.namespaces.create(stores.id, levels("b"), {}, AUTHOR),
        lambda stores: stores.namespaces.update_properties(stores.id, levels("a"), [], {"x": "y"}, AUTHOR),
        lambda stores: stores.namespaces.drop(stores.id, levels("empty"), AUTHOR),
        lambda stores: stores.pointers.drop(stores.id, name("a.t"), TABLE, AUTHOR),
        lambda stores: stores.pointers.rename(stores.id, TABLE, name("a.t"), name("a.u"), AUTHOR),
        lambda stores: stores.warehouses.create("other", "file:///x", created_ms=NOW_MS),
        lambda stores: stores.warehouses.drop("empty"),
        lambda stores: stores.idempotency_keys.record(claim(), 404, ""),
    ],
)
def test_other_changes_without_reply_are_unknown(
    direct: Stores, wired: Stores, postgres_wire: PostgresProxy, how: Break, deed: Callable[[Stores], Any]
) -> None:
    direct.add_namespace("empty")
    direct.warehouses.create("empty", "file:///x", created_ms=NOW_MS)
    postgres_wire.break_at("COMMIT", how)

    with pytest.raises(CommitStateUnknown, match="may or may not"):
        deed(wired)


@pytest.mark.parametrize("statement", ["BEGIN", "UPDATE pointers", "INSERT INTO pointer_history"])
def test_connection_lost_before_commit_is_taken_up_again(
    direct: Stores, wired: Stores, postgres_wire: PostgresProxy, statement: str
) -> None:
    seen = wired.there("a.t")
    postgres_wire.break_at(statement, Break.LOSE_REQUEST)

    assert wired.advance(seen, "1.json") is PutOutcome.ADVANCED

    assert [event.location for event in direct.pointers.history(seen.id)] == ["1.json", "a.t/0.json"]


def test_connection_lost_in_a_read_is_taken_up_again(wired: Stores, postgres_wire: PostgresProxy) -> None:
    wired.there("a.t")
    postgres_wire.break_at("SELECT", Break.LOSE_REQUEST)

    assert wired.pointers.list_names(wired.id, levels("a"), TABLE) == ("t",)


@pytest.mark.parametrize("statement", ["SET default_transaction_read_only", "SELECT set_config"])
def test_a_connection_lost_while_it_is_set_up_is_given_up(
    direct: Stores, wired: Stores, postgres_wire: PostgresProxy, database_name: str, statement: str
) -> None:
    database = Database.open(postgres_wire.url(database_name))
    fresh = Stores.of(database, direct.warehouse)
    seen = direct.there("a.t")
    postgres_wire.break_at(statement, Break.LOSE_REQUEST)

    with pytest.raises(DatabaseUnavailable, match="failed or was lost"):
        assert fresh.there("a.t") == fresh.pointers.find_locked(seen.id)

    assert fresh.there("a.t") == fresh.pointers.find_locked(seen.id)
    database.close()


def test_connections_closed_by_the_server_are_replaced_without_a_word(
    direct: Stores, postgres_server: PostgresServer, database_name: str
) -> None:
    def use_everything() -> None:
        seen = direct.there("a.t")
        assert direct.advance(seen, f"{seen.metadata_location}+") is PutOutcome.ADVANCED
        assert direct.pointers.find_many([(direct.id, name("a.t"))])
        assert direct.pointers.list_names(direct.id, levels("a"), TABLE) == ("t",)
        assert direct.pointers.find_locked(seen.id)

    with ThreadPoolExecutor(8) as threads:  # so that there are many connections to lose
        list(threads.map(lambda _: direct.pointers.find(direct.id, name("a.t")), range(100)))
        list(threads.map(lambda _: direct.pointers.find_locked(1), range(100)))

    for _ in range(3):
        use_everything()
        postgres_server.close_connections(database_name)
        use_everything()


def test_a_server_that_only_reads_refuses_writes_until_it_is_replaced(
    direct: Stores, postgres_server: PostgresServer, database_name: str
) -> None:
    """As after a failover, when the pool is full of connections to the former primary."""
    seen = direct.there("a.t")
    postgres_server.execute(f"ALTER DATABASE {database_name} SET default_transaction_read_only = on")
    postgres_server.close_connections(database_name)

    with pytest.raises(DatabaseUnavailable, match="it only reads"):
        direct.advance(seen, "1.json")
    with pytest.raises(DatabaseUnavailable, match="it only reads"):
        direct.database.check_writes()
    assert direct.there("a.t") == seen

    postgres_server.execute(f"ALTER DATABASE {database_name} RESET default_transaction_read_only")
    assert direct.advance(seen, "1.json") is PutOutcome.ADVANCED


@pytest.mark.parametrize("is_ahead", [False, True])
def test_after_a_failover_nothing_is_read_from_the_former_primary(
    own_postgres_server: PostgresServer, is_ahead: bool
) -> None:
    """It still answers those that are connected to it, but only reads; another server may have gone on."""
    with PostgresServer() as promoted, wire_to(own_postgres_server) as wire:
        for server in (own_postgres_server, promoted):
            database = Database.open(server.url())
            migrate(database)
            stores = Stores.on(database)
            stores.add_namespace("a")
            first = stores.add("a.t")
            if is_ahead and server is promoted:
                assert stores.advance(first, "ahead.json") is PutOutcome.ADVANCED
            database.close()
        database = Database.open(wire.url("postgres"))
        stores = Stores.on(database)
        seen = stores.there("a.t")
        assert stores.advance(seen, "a.t/0.json") is PutOutcome.ADVANCED
        with ThreadPoolExecutor(8) as threads:  # so that there are many connections to leave
            list(threads.map(lambda _: stores.there("a.t"), range(100)))

        own_postgres_server.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        own_postgres_server.execute("SELECT pg_reload_conf()")
        while not is_refused(lambda: stores.advance(seen, "a.t/0.json")):
            pass
        wire.lead_to(promoted)

        expected = (PutOutcome.MOVED, "ahead.json") if is_ahead else (PutOutcome.ADVANCED, "1.json")
        assert (stores.advance(seen, "1.json"), stores.there("a.t").metadata_location) == expected
        with ThreadPoolExecutor(8) as threads:
            found = threads.map(lambda _: stores.there("a.t").metadata_location, range(100))
            assert set(found) == {expected[1]}
        database.close()


def is_refused(change: Callable[[], object]) -> bool:
    try:
        change()
    except DatabaseUnavailable:
        return True
    return False


def test_while_the_server_is_down_every_call_says_so_and_afterwards_works(
    own_postgres_server: PostgresServer,
) -> None:
    database = Database.open(own_postgres_server.url())
    migrate(database)
    stores = Stores.on(database)
    stores.add_namespace("a")
    seen = stores.add("a.t")
    assert stores.advance(seen, "1.json") is PutOutcome.ADVANCED

    own_postgres_server.kill()

    for _ in range(3):
        with pytest.raises(DatabaseUnavailable):
            stores.pointers.find(stores.id, name("a.t"))
        with pytest.raises(DatabaseUnavailable):
            stores.advance(seen, "2.json")
        with pytest.raises(DatabaseUnavailable):
            database.check_writes()
        with pytest.raises(DatabaseUnavailable):
            check_revision(database)

    own_postgres_server.start()

    there = stores.there("a.t")
    assert there.metadata_location == "1.json"
    assert stores.advance(there, "3.json") is PutOutcome.ADVANCED
    check_revision(database)
    database.close()


@pytest.mark.slow
def test_killed_in_the_middle_of_many_commits_it_keeps_every_one_it_confirmed(
    own_postgres_server: PostgresServer,
) -> None:
    """What was confirmed is in the history once, what was refused is not, and what is unknown can be looked up."""
    database = Database.open(own_postgres_server.url(), pool_size=16)
    migrate(database)
    stores = Stores.on(database)
    stores.add_namespace("a")
    tables = [f"a.t{n}" for n in range(8)]
    for table in tables:
        stores.add(table)
    outcomes: dict[str, PutOutcome | None] = {}
    confirmed = threading.Semaphore(0)
    is_over = threading.Event()

    def write(n: int) -> None:
        turn = 0
        while not is_over.is_set():
            turn += 1
            location = f"{n}-{turn}.json"
            try:
                seen = stores.pointers.find(stores.id, name(tables[n % len(tables)]))
                assert seen is not None
                outcomes[location] = stores.advance(seen, location)
            except DatabaseUnavailable:
                outcomes[location] = None
            if outcomes[location] is PutOutcome.ADVANCED:
                confirmed.release()

    with ThreadPoolExecutor(16) as threads:
        writers = [threads.submit(write, n) for n in range(16)]
        for _ in range(3):
            for _ in range(300):
                confirmed.acquire()
            own_postgres_server.kill()
            own_postgres_server.start()
        for _ in range(100):
            confirmed.acquire()
        is_over.set()
    for writer in writers:
        writer.result()

    histories = [stores.pointers.history(stores.there(table).id) for table in tables]
    landed = Counter(
        event.location for history in histories for event in history if event.event == "committed"
    )
    assert set(landed.values()) == {1}
    by_outcome = {
        outcome: {location for location, each in outcomes.items() if each is outcome}
        for outcome in (*PutOutcome, None)
    }
    assert by_outcome[PutOutcome.ADVANCED] <= set(landed)
    assert not (by_outcome[PutOutcome.MOVED] | by_outcome[None]) & set(landed)
    assert set(landed) <= by_outcome[PutOutcome.ADVANCED] | by_outcome[PutOutcome.UNKNOWN]
    for history in histories:
        newest_last = history[::-1]
        assert [event.previous_location for event in newest_last[1:]] == [
            event.location for event in newest_last[:-1]
        ]
    database.close()


def wait_until_somebody_waits_for_a_lock(server: PostgresServer) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while connection.execute(waiting).fetchone() == (0,):
            pass


@pytest.mark.slow
def test_a_wire_that_takes_all_and_brings_nothing_is_given_up(
    direct: Stores, postgres_wire: PostgresProxy, database_name: str
) -> None:
    """No limit of the network ends it, and Postgres, which would, is out of reach."""
    hurried = "&options=-c%20statement_timeout%3D1s"
    database = Database.open(f"{postgres_wire.url(database_name)}{hurried}&connect_timeout=2")
    stores = Stores.on(database)
    stores.there("a.t")
    stores.add("a.before")

    with postgres_wire.silent(), ThreadPoolExecutor(2) as threads:
        read = threads.submit(stores.there, "a.t")
        write = threads.submit(database.write, lambda connection: connection.exec_driver_sql("SELECT 1"))
        for call in (read, write):
            with pytest.raises(DatabaseUnavailable, match="the connection failed or was lost"):
                call.result(timeout=60)

    assert stores.there("a.t") == direct.there("a.t")
    stores.add("a.after")
    database.close()


def test_a_statement_is_waited_for_longer_than_postgres_lets_it_run(
    postgres_server: PostgresServer, database_name: str
) -> None:
    url = postgres_server.url(database_name)
    for given, expected in (("", 40.0), ("&options=-c%20statement_timeout%3D0", None)):
        database = Database.open(url + given)
        for run in (database.read, database.write):
            found = run(lambda connection: connection.connection.dbapi_connection)
            assert getattr(found, "longest_wait_s") == expected  # noqa: B009 - the driver's type lacks it
        database.close()
