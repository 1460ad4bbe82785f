"""Receipts as rows, on both databases: landed with their change, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import Connection

from app.database.connections.database import Database
from app.database.outcomes.receipt import (
    ID_LENGTH,
    CommitReceipt,
    LandedChange,
    Outcome,
    ReceiptHead,
    id_of_time,
    landed,
    time_of_id,
)
from app.database.outcomes.receipts import (
    AT_WORK_KEPT_MS,
    MOST_FOUND,
    GivenUpMeanwhile,
    Receipts,
    insert_landed,
)
from app.database.pointers.history import Author
from app.database.pointers.moves import Advance, Unmoved
from app.database.pointers.pointer import PointerKind
from app.database.pointers.pointers import PutOutcome
from app.database.pointers.recoverable import PURGE_NOW
from app.engine.model.ids import Location, TableUuid
from app.errors import DatabaseUnavailable, NamespaceExists
from tests.builders.databases import migrated_database_of
from tests.contract.database.stores import NOW_MS, Stores, levels, name
from tests.servers.postgres import PostgresServer

TABLE = PointerKind.TABLE
CHANGE = LandedChange("table", "committed", ("a",), "t", "0.json", "1.json", (7, 8), 8, rebased=True)
ERROR = {"message": "no", "type": "CommitFailedException", "code": 409, "conflict": {"attempts": 20}}


def head(number: int = 1, *, key: str | None = None, request_id: str = "request-1") -> ReceiptHead:
    commit_id = id_of_time(NOW_MS + number).ljust(ID_LENGTH, "0")
    return ReceiptHead(commit_id, "commit_table", "main", "alice", request_id, key, NOW_MS)


def author(of: ReceiptHead) -> Author:
    return Author("alice", "request-1", NOW_MS, of)


def failed(of: ReceiptHead, outcome: Outcome = Outcome.FAILED) -> CommitReceipt:
    return CommitReceipt(of, outcome, NOW_MS, error=ERROR)


@pytest.fixture
def direct(postgres_server: PostgresServer) -> Iterator[Stores]:
    """Stores on Postgres, whatever the other tests run on."""
    database_name = migrated_database_of(postgres_server)
    database = Database.open(postgres_server.url(database_name))
    yield Stores.on(database)
    database.close()
    postgres_server.drop_database(database_name)


@pytest.fixture
def receipts(stores: Stores) -> Receipts:
    return Receipts(stores.database)


def outcomes(receipts: Receipts, *heads: ReceiptHead) -> list[Outcome | None]:
    found = [receipts.find(each.commit_id) for each in heads]
    return [each[0].outcome if each else None for each in found]


def put(stores: Stores, *these: CommitReceipt) -> PutOutcome:
    seen = stores.there("a.t")
    move = Advance(seen, Location(f"{seen.metadata_location}+"), seen.uuid)
    return stores.pointers.check_and_put([move], author(these[0].head), receipts=these)


def test_time_of_a_commit_id_is_found_again() -> None:
    assert time_of_id(head(5).commit_id) == NOW_MS + 5
    assert id_of_time(9) < id_of_time(10) < id_of_time(NOW_MS)


def test_receipts_land_with_the_move_that_they_are_about(stores: Stores, receipts: Receipts) -> None:
    stores.add_namespace("a")
    stores.add("a.t")
    mine, others = landed(head(1, key="k"), NOW_MS, [CHANGE], 3), landed(head(2), NOW_MS, [CHANGE], 3)
    nothing = CommitReceipt(head(3), Outcome.UNCHANGED, NOW_MS)

    assert put(stores, mine, others, nothing) is PutOutcome.ADVANCED

    (found,) = receipts.find(head(1).commit_id)
    assert found == mine
    assert outcomes(receipts, head(2), head(3)) == [Outcome.LANDED, Outcome.UNCHANGED]


def test_a_lost_race_leaves_no_receipt(stores: Stores, receipts: Receipts) -> None:
    stores.add_namespace("a")
    seen = stores.add("a.t")
    stores.advance(seen, "elsewhere")
    moves: list[Advance | Unmoved] = [Advance(seen, Location("1.json"), seen.uuid), Unmoved(seen)]

    for move in moves:
        outcome = stores.pointers.check_and_put(
            [move], author(head()), receipts=[landed(head(), 1, [CHANGE])]
        )
        assert outcome is PutOutcome.MOVED

    assert receipts.find(head().commit_id) == []


def test_every_other_change_leaves_a_receipt(stores: Stores, receipts: Receipts) -> None:
    heads = [head(number) for number in range(8)]
    authors = [author(each) for each in heads]
    stores.namespaces.create(stores.id, levels("a"), {}, authors[0])
    stores.namespaces.update_properties(stores.id, levels("a"), [], {"x": "y"}, authors[1])
    location = Location("a.t/0.json")
    stores.pointers.check_and_put(
        [stores.creation("a.t")], authors[2], receipts=[landed(heads[2], NOW_MS, [CHANGE])]
    )
    stores.pointers.rename(stores.id, TABLE, name("a.t"), name("a.u"), authors[3])
    stores.pointers.drop(stores.id, name("a.u"), TABLE, authors[4], recovery=PURGE_NOW)
    stores.namespaces.drop(stores.id, levels("a"), authors[5])
    stores.warehouses.create("other", "file:///other", created_ms=NOW_MS, author=authors[6])
    stores.warehouses.drop("other", authors[7])

    found = [receipts.find(each.commit_id)[0] for each in heads]

    assert [receipt.outcome for receipt in found] == [Outcome.LANDED] * 8
    assert [receipt.changes for receipt in found] == [
        (LandedChange("namespace", "created", ("a",)),),
        (LandedChange("namespace", "updated", ("a",)),),
        (CHANGE,),
        (LandedChange("table", "renamed", ("a",), "u", location_after=location),),
        (LandedChange("table", "dropped", ("a",), "u", location_before=location),),
        (LandedChange("namespace", "dropped", ("a",)),),
        (LandedChange("warehouse", "created", name="other"),),
        (LandedChange("warehouse", "dropped", name="other"),),
    ]


def test_a_refused_change_leaves_no_receipt(stores: Stores, receipts: Receipts) -> None:
    stores.add_namespace("a")

    with pytest.raises(NamespaceExists):
        stores.namespaces.create(stores.id, levels("a"), {}, author(head()))

    assert receipts.find(head().commit_id) == []


def test_receipts_are_found_by_key_and_by_request_of_their_principal(receipts: Receipts) -> None:
    first, second = head(1, key="k", request_id="one"), head(2, key="k", request_id="two")
    third = head(3, key="other", request_id="two")
    receipts.note([failed(first), failed(second), failed(third)])

    def found(these: list[CommitReceipt]) -> list[ReceiptHead]:
        return [receipt.head for receipt in these]

    assert found(receipts.find_by_key("alice", "k")) == [second, first]
    assert found(receipts.find_by_request("alice", "two")) == [third, second]
    assert receipts.find_by_key("bob", "k") == receipts.find_by_request("bob", "two") == []


@pytest.mark.parametrize("outcome", [Outcome.IN_PROGRESS, Outcome.UNKNOWN])
def test_what_is_not_final_is_replaced_by_what_is(receipts: Receipts, outcome: Outcome) -> None:
    receipts.note([failed(head(), outcome)])
    assert outcomes(receipts, head()) == [outcome]

    receipts.note([failed(head())])

    assert outcomes(receipts, head()) == [Outcome.FAILED]


def test_a_landed_receipt_is_replaced_by_nothing(stores: Stores, receipts: Receipts) -> None:
    stores.add_namespace("a")
    stores.add("a.t")
    receipts.note([failed(head(), Outcome.IN_PROGRESS)])
    put(stores, landed(head(), NOW_MS, [CHANGE]))

    receipts.note([failed(head(), Outcome.IN_PROGRESS)])
    receipts.note([failed(head())])
    receipts.give_up(failed(head()))

    assert outcomes(receipts, head()) == [Outcome.LANDED]


@pytest.mark.parametrize("beside", [0, 1])
def test_a_request_that_was_given_up_cannot_land(stores: Stores, receipts: Receipts, beside: int) -> None:
    stores.add_namespace("a")
    before = stores.add("a.t")
    receipts.note([failed(head(1), Outcome.IN_PROGRESS)])
    receipts.give_up(failed(head(1)))

    with pytest.raises(GivenUpMeanwhile):
        put(stores, *[landed(head(number), NOW_MS, [CHANGE]) for number in (1, 0)[: 1 + beside]])
    with pytest.raises(GivenUpMeanwhile):
        stores.namespaces.create(stores.id, levels("b"), {}, author(head(1)))

    assert stores.there("a.t") == before
    assert stores.namespaces.find(stores.id, levels("b")) is None
    assert outcomes(receipts, head(1), head(0)) == [Outcome.FAILED, None]


def test_receipts_of_a_job_are_found_and_history_names_it(stores: Stores, receipts: Receipts) -> None:
    stores.add_namespace("a")
    stores.add("a.t")
    of_job = replace(head(1), job="f" * 32)
    put_by = Advance(stores.there("a.t"), Location("1.json"), TableUuid("u"))
    landed_receipt = landed(of_job, NOW_MS, [LandedChange("table", "committed", ("a",), "t")])
    stores.pointers.check_and_put([put_by], author(of_job), receipts=[landed_receipt])

    assert [found.head for found in receipts.find_by_job("f" * 32)] == [of_job]
    assert receipts.find_by_job("0" * 32) == []
    events = stores.pointers.history(stores.there("a.t").id)
    assert [event.job for event in events] == ["f" * 32, None]


def test_all_that_a_job_has_tried_is_found(receipts: Receipts) -> None:
    heads = [replace(head(number), job="f" * 32) for number in range(MOST_FOUND + 1)]
    receipts.note([failed(of) for of in heads])

    assert [found.head for found in receipts.find_by_job("f" * 32)] == heads[::-1]
    assert len(receipts.find_by_request("alice", "request-1")) == MOST_FOUND


def test_old_receipts_go_and_those_that_did_not_land_go_first(stores: Stores, receipts: Receipts) -> None:
    stores.add_namespace("a")
    stores.add("a.t")
    for number in (1, 3):
        put(stores, landed(head(number), NOW_MS, [CHANGE]))
    receipts.note([failed(head(2)), failed(head(4))])

    assert receipts.delete_what_did_not_land(NOW_MS + 4) == 1
    assert outcomes(receipts, *map(head, (1, 2, 3, 4))) == [
        Outcome.LANDED,
        None,
        Outcome.LANDED,
        Outcome.FAILED,
    ]
    assert receipts.delete(NOW_MS + 3) == 1
    assert outcomes(receipts, *map(head, (1, 2, 3, 4))) == [None, None, Outcome.LANDED, Outcome.FAILED]


def test_what_may_still_be_at_work_is_kept_for_a_day_and_what_was_given_up_as_long_as_what_landed(
    stores: Stores, receipts: Receipts
) -> None:
    """A server that stood still for hours goes on where it was."""
    stores.add_namespace("a")
    before = stores.add("a.t")
    receipts.note(
        [failed(head(1), Outcome.IN_PROGRESS), failed(head(2), Outcome.IN_PROGRESS), failed(head(3))]
    )
    receipts.give_up(failed(head(1)))

    assert receipts.delete_what_did_not_land(NOW_MS + 9) == 1

    found = outcomes(receipts, *map(head, (1, 2, 3)))
    assert found == [Outcome.FAILED, Outcome.IN_PROGRESS, None]
    with pytest.raises(GivenUpMeanwhile):
        put(stores, landed(head(1), NOW_MS, [CHANGE]))
    assert stores.there("a.t") == before
    assert receipts.delete_what_did_not_land(NOW_MS + 9 + AT_WORK_KEPT_MS) == 1
    assert outcomes(receipts, head(1), head(2)) == [Outcome.FAILED, None]
    assert receipts.delete(NOW_MS + 9) == 1


@pytest.mark.postgres
def test_a_transaction_that_stays_open_is_no_answer(direct: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.database.outcomes.receipts.LONGEST_WAIT_S", 0.05)
    receipts = Receipts(direct.database)

    def ask(connection: Connection) -> None:
        insert_landed(connection, [landed(head(), NOW_MS, [CHANGE])])
        with pytest.raises(DatabaseUnavailable, match="does not say yet"):
            receipts.wait_for_open_transactions()

    direct.database.write(ask)

    assert outcomes(receipts, head()) == [Outcome.LANDED]


def test_waiting_returns_when_open_transactions_have_ended(stores: Stores, receipts: Receipts) -> None:
    """A transaction that has written a receipt and not committed yet is waited for, and then found."""
    stores.add_namespace("a")
    has_written, may_commit = threading.Event(), threading.Event()

    def slowly(connection: Connection) -> None:
        insert_landed(connection, [landed(head(), NOW_MS, [CHANGE])])
        has_written.set()
        assert may_commit.wait(30)

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(stores.database.write, slowly)
        assert has_written.wait(30)
        assert receipts.find(head().commit_id) == []
        waiting = pool.submit(receipts.wait_for_open_transactions)
        assert not waiting.done()
        may_commit.set()
        waiting.result()
        assert outcomes(receipts, head()) == [Outcome.LANDED]
        writing.result()
