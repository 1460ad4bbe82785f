"""Commits that go side by side in one thread: each has the outcome, the event and the receipt that it has alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import Connection, text

from app import waits
from app.database.connections.database import Database
from app.database.outcomes.receipt import CommitReceipt, Outcome, ReceiptHead, landed
from app.database.outcomes.receipts import GivenUpMeanwhile, Receipts
from app.database.pointers.history import Author
from app.database.pointers.moves import Advance
from app.database.pointers.pointer import Pointer
from app.database.pointers.pointers import PutOutcome
from app.engine.model.ids import Location
from app.errors import InvalidRequest
from tests.contract.database.companions import (
    StoresOnPostgres,
    head,
    last_event,
    longer_than_an_index_takes,
    side_by_side,
)
from tests.contract.database.stores import NOW_MS, Stores, name
from tests.contract.database.test_lost_connections import wait_until_somebody_waits_for_a_lock
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_proxy import Break, PostgresProxy

pytestmark = pytest.mark.timeout(60)

TABLES = 5


def tables_in(stores: Stores) -> list[Pointer]:
    stores.add_namespace("a")
    return [stores.add(f"a.t{number}") for number in range(TABLES)]


def commit(stores: Stores, seen: Pointer, of: ReceiptHead, location: str = "1.json") -> PutOutcome:
    """Advance a pointer as a commit does."""
    author = Author("alice", "request-1", NOW_MS + 7, of)
    receipt = landed(of, NOW_MS + 7, [], 1)
    move = Advance(seen, Location(location), seen.uuid)
    return stores.pointers.check_and_put([move], author, None, receipts=[receipt])


def commits(
    stores: Stores, pointers: list[Pointer], heads: list[ReceiptHead]
) -> list[Callable[[], PutOutcome]]:
    return [partial(commit, stores, seen, of) for seen, of in zip(pointers, heads, strict=True)]


def test_each_leaves_what_it_leaves_alone(stores: Stores) -> None:
    *pointers, alone = tables_in(stores)
    heads = [head() for _ in pointers]

    lonely = head()
    assert commit(stores, alone, lonely) is PutOutcome.ADVANCED
    assert side_by_side(*commits(stores, pointers, heads)) == [PutOutcome.ADVANCED] * len(pointers)

    expected = last_event(stores, alone)
    receipts = Receipts(stores.database)
    (expected_receipt,) = receipts.find(lonely.commit_id)
    for pointer, of in zip(pointers, heads, strict=True):
        now = stores.there(f"a.{pointer.identifier.name}")
        assert now == replace(pointer, metadata_location=Location("1.json"))
        event = last_event(stores, pointer)
        assert event == replace(
            expected,
            sequence=event.sequence,
            pointer_id=pointer.id,
            identifier=pointer.identifier,
            uuid=pointer.uuid,
            previous_location=pointer.metadata_location,
        )
        assert receipts.find(of.commit_id) == [replace(expected_receipt, head=of)]


def test_times_of_a_pointer_do_not_run_backwards(stores: Stores) -> None:
    pointers = tables_in(stores)
    later = text("UPDATE pointers SET updated_ms = :ms")
    stores.database.write(lambda connection: connection.execute(later, {"ms": NOW_MS + 1_000_000}))

    side_by_side(*commits(stores, pointers, [head() for _ in pointers]))

    assert {last_event(stores, pointer).at_ms for pointer in pointers} == {NOW_MS + 1_000_000}


def test_one_that_lost_its_race_fails_alone(stores: Stores) -> None:
    pointers = tables_in(stores)
    assert stores.advance(pointers[2], "other.json") is PutOutcome.ADVANCED

    found = side_by_side(*commits(stores, pointers, heads := [head() for _ in pointers]))

    assert found == [PutOutcome.MOVED if number == 2 else PutOutcome.ADVANCED for number in range(TABLES)]
    assert stores.there("a.t2").metadata_location == "other.json"
    assert Receipts(stores.database).find(heads[2].commit_id) == []


def test_of_two_to_one_table_one_wins(stores: Stores) -> None:
    pointers = tables_in(stores)

    found = side_by_side(
        *commits(stores, pointers, [head() for _ in pointers]),
        lambda: commit(stores, pointers[0], head(), "2.json"),
    )

    assert sorted(map(str, (found[0], found[-1]))) == sorted(
        map(str, (PutOutcome.ADVANCED, PutOutcome.MOVED))
    )
    assert found[1:-1] == [PutOutcome.ADVANCED] * (TABLES - 1)


def test_one_that_was_given_up_does_not_land_and_the_others_do(stores: Stores) -> None:
    pointers, heads = tables_in(stores), [head() for _ in range(TABLES)]
    given_up = CommitReceipt(heads[1], Outcome.FAILED, NOW_MS, error={"message": "no"})
    Receipts(stores.database).note([given_up])

    found = side_by_side(*commits(stores, pointers, heads))

    assert isinstance(found.pop(1), GivenUpMeanwhile)
    assert found == [PutOutcome.ADVANCED] * (TABLES - 1)
    assert stores.there("a.t1").metadata_location == "a.t1/0.json"


def test_one_of_a_renamed_table_lands_with_the_others(stores: Stores) -> None:
    pointers = tables_in(stores)
    stores.pointers.rename(
        stores.id, pointers[1].kind, name("a.t1"), name("a.renamed"), Author("bob", "r", NOW_MS)
    )

    found = side_by_side(*commits(stores, pointers, [head() for _ in pointers]))

    assert found == [PutOutcome.ADVANCED] * TABLES
    assert last_event(stores, pointers[1]).identifier == name("a.renamed")


def test_lookups_side_by_side_find_what_is_there(stores: Stores) -> None:
    tables_in(stores)
    found: dict[str, Pointer | None] = {}

    def find(dotted: str) -> PutOutcome:
        found[dotted] = stores.pointers.find(stores.id, name(dotted))
        return PutOutcome.ADVANCED

    asked = ["a.t0", "a.t1", "a.missing", "b.t0", "a.t1"]
    side_by_side(*(partial(find, dotted) for dotted in asked))

    assert found == {dotted: stores.pointers.find(stores.id, name(dotted)) for dotted in asked}


def test_commits_of_other_threads_do_not_wait_for_those_whose_companion_hangs(stores: Stores) -> None:
    pointers = tables_in(stores)
    works = commits(stores, pointers, [head() for _ in pointers])
    hangs, may_go = threading.Event(), threading.Event()

    def hang() -> None:
        hangs.set()
        may_go.wait(30)

    def on_a_disk_that_hangs() -> PutOutcome:
        waits.do_meanwhile(hang)
        return PutOutcome.ADVANCED

    def look_up() -> PutOutcome:
        stores.there("a.t0")
        return PutOutcome.ADVANCED

    with ThreadPoolExecutor(1) as threads:
        held_up = threads.submit(side_by_side, *works[:2], look_up, on_a_disk_that_hangs)
        try:
            assert hangs.wait(30)
            since_s = time.monotonic()
            assert side_by_side(*works[2:], look_up) == [PutOutcome.ADVANCED] * (TABLES - 1)
            assert time.monotonic() - since_s < 10
        finally:
            may_go.set()
        assert held_up.result() == [PutOutcome.ADVANCED] * 4


@pytest.mark.postgres
class TestOnPostgres(StoresOnPostgres):
    def test_one_with_a_location_that_no_index_takes_is_refused_alone(self, stores: Stores) -> None:
        *others, last = tables_in(stores)
        works = commits(stores, others, [head() for _ in others])

        *found, refused = side_by_side(
            *works, lambda: commit(stores, last, head(), f"{longer_than_an_index_takes()}/1.json")
        )

        assert isinstance(refused, InvalidRequest)
        assert "too long for the database" in str(refused)
        assert found == [PutOutcome.ADVANCED] * len(others)

    def test_a_locked_row_holds_up_its_own_commit_only(
        self, stores: Stores, postgres_server: PostgresServer
    ) -> None:
        pointers = tables_in(stores)
        is_held, may_go = threading.Event(), threading.Event()

        def has_landed() -> set[int]:
            return {
                number
                for number in range(TABLES)
                if stores.there(f"a.t{number}").metadata_location == "1.json"
            }

        def hold() -> None:
            def hold_row(connection: Connection) -> None:
                connection.execute(
                    text("SELECT FROM pointers WHERE id = :id FOR UPDATE"), {"id": pointers[3].id}
                )
                is_held.set()
                may_go.wait(30)

            stores.database.write(hold_row)

        with ThreadPoolExecutor(2) as threads:
            holder = threads.submit(hold)
            assert is_held.wait(30)
            asked = threads.submit(side_by_side, *commits(stores, pointers, [head() for _ in pointers]))
            free = {number for number in range(TABLES) if number != 3}
            while has_landed() != free:
                assert not asked.done()
            wait_until_somebody_waits_for_a_lock(postgres_server)
            assert has_landed() == free
            may_go.set()
            holder.result()

            assert asked.result() == [PutOutcome.ADVANCED] * TABLES

    def test_a_lost_reply_is_unknown_to_all_and_each_finds_out(
        self, stores: Stores, postgres_wire: PostgresProxy, database_name: str
    ) -> None:
        pointers = tables_in(stores)
        wired = Stores.on(Database.open(postgres_wire.url(database_name)))
        heads = [head() for _ in pointers]
        postgres_wire.break_at("COMMIT", Break.LOSE_REPLY)

        found = side_by_side(*commits(wired, pointers, heads))

        assert found == [PutOutcome.UNKNOWN] * TABLES
        for pointer, of in zip(pointers, heads, strict=True):
            move = Advance(pointer, Location("1.json"), pointer.uuid)
            assert stores.pointers.has_landed(move, Author("alice", "request-1", NOW_MS + 7, of))
        wired.database.close()
