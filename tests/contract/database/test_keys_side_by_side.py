"""Keys of changes that go side by side: each is answered once, and holds up no other change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import Connection

from app.database.outcomes.idempotency_keys import IdempotencyClaim, RecordedOutcome, insert_claim
from app.database.outcomes.receipt import landed
from app.database.outcomes.receipts import Receipts
from app.database.pointers.history import Author
from app.database.pointers.moves import Advance, Creation
from app.database.pointers.pointer import Pointer
from app.database.pointers.pointers import PutOutcome
from app.database.pointers.shared_advances import PlainAdvance, SharedAdvances
from app.engine.model.ids import Location
from app.errors import IdempotencyKeyTaken
from tests.contract.database.companions import StoresOnPostgres, head, side_by_side
from tests.contract.database.stores import NOW_MS, Stores, claim, name
from tests.contract.database.test_lost_connections import wait_until_somebody_waits_for_a_lock
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.timeout(60)

Change = Advance | Creation
MOST = 4


def advances(stores: Stores) -> list[Change]:
    stores.add_namespace("a")
    return [move_of(stores.add(f"a.t{number}")) for number in range(MOST)]


def creations(stores: Stores) -> list[Change]:
    stores.add_namespace("a")
    return [stores.creation(f"a.t{number}") for number in range(MOST)]


def move_of(pointer: Pointer) -> Advance:
    return Advance(pointer, Location("1.json"), pointer.uuid)


@pytest.fixture(params=[advances, creations])
def changes(stores: Stores, request: pytest.FixtureRequest) -> list[Change]:
    """Changes of one kind, each of another table."""
    made: list[Change] = request.param(stores)
    return made


def put(stores: Stores, change: Change, key: IdempotencyClaim | None) -> PutOutcome:
    of = head(key.key if key else None)
    receipts = [landed(of, NOW_MS, [], 1)]
    return stores.pointers.check_and_put([change], Author("alice", "r", NOW_MS, of), key, receipts=receipts)


def puts(
    stores: Stores, changes: list[Change], keys: list[IdempotencyClaim | None]
) -> list[Callable[[], PutOutcome]]:
    return [partial(put, stores, change, key) for change, key in zip(changes, keys, strict=True)]


def keys_of_all() -> list[IdempotencyClaim | None]:
    return [replace(claim(f"key-{number}"), commit_id=f"c{number}") for number in range(MOST)]


def has_landed(stores: Stores, change: Change) -> bool:
    dotted = change.identifier if isinstance(change, Creation) else change.seen.identifier
    pointer = stores.pointers.find(stores.id, dotted)
    return pointer is not None and pointer.metadata_location == change.location


def test_each_leaves_the_answer_to_its_key(stores: Stores, changes: list[Change]) -> None:
    keys = [None, *keys_of_all()[1:]]

    assert side_by_side(*puts(stores, changes, keys)) == [PutOutcome.ADVANCED] * MOST

    for key in keys:
        if key is not None:
            found = stores.idempotency_keys.find("alice", key.key, NOW_MS)
            assert found == RecordedOutcome(key.request_hash, 200, key.result, key.commit_id)
            assert stores.idempotency_keys.find("alice", key.key, key.expires_ms) is None
    assert stores.idempotency_keys.delete_expired(NOW_MS + 10_000) == MOST - 1


def test_one_whose_key_was_answered_before_changes_nothing(stores: Stores, changes: list[Change]) -> None:
    stores.idempotency_keys.record(claim("key-1"), 404, "first")

    found = side_by_side(*puts(stores, changes, keys_of_all()))

    assert isinstance(found.pop(1), IdempotencyKeyTaken)
    assert found == [PutOutcome.ADVANCED] * (MOST - 1)
    assert [has_landed(stores, change) for change in changes] == [number != 1 for number in range(MOST)]
    kept = stores.idempotency_keys.find("alice", "key-1", NOW_MS)
    assert kept == RecordedOutcome("hash-1", 404, "first", "")


def test_an_expired_key_is_answered_anew(stores: Stores, changes: list[Change]) -> None:
    stores.idempotency_keys.record(claim("key-1", now_ms=NOW_MS - 1000), 404, "first")

    assert side_by_side(*puts(stores, changes, keys_of_all())) == [PutOutcome.ADVANCED] * MOST

    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) == RecordedOutcome(
        "hash-1", 200, "what a success left", "c1"
    )


def test_of_two_with_one_key_one_lands(stores: Stores, changes: list[Change]) -> None:
    keys = keys_of_all()
    keys[2] = keys[1]

    found = side_by_side(*puts(stores, changes, keys))

    assert sum(isinstance(each, IdempotencyKeyTaken) for each in found[1:3]) == 1
    assert [each is PutOutcome.ADVANCED for each in found] == [
        has_landed(stores, change) for change in changes
    ]
    assert sum(each is PutOutcome.ADVANCED for each in found) == MOST - 1


def test_the_key_of_what_lost_its_race_stays_free(stores: Stores) -> None:
    changes = advances(stores)
    stores.advance(stores.there("a.t1"), "other.json")

    found = side_by_side(*puts(stores, changes, keys_of_all()))

    assert found == [PutOutcome.MOVED if number == 1 else PutOutcome.ADVANCED for number in range(MOST)]
    assert stores.idempotency_keys.find("alice", "key-1", NOW_MS) is None


def test_answers_are_found_side_by_side(stores: Stores) -> None:
    stores.idempotency_keys.record(claim("key-1"), 404, "first")
    stores.idempotency_keys.record(claim("key-1", principal="bob"), 409, "bob's")
    stores.idempotency_keys.record(claim("old", now_ms=NOW_MS - 500), 404, "old")
    asked = [
        ("alice", "key-1", NOW_MS),
        ("bob", "key-1", NOW_MS),
        ("alice", "key-2", NOW_MS),
        ("alice", "old", NOW_MS),
        ("alice", "old", NOW_MS + 600),
    ]
    found: dict[object, object] = {}

    def find(principal: str, key: str, now_ms: int) -> PutOutcome:
        found[principal, key, now_ms] = stores.idempotency_keys.find(principal, key, now_ms)
        return PutOutcome.ADVANCED

    side_by_side(*(partial(find, *each) for each in asked))

    assert found == {each: stores.idempotency_keys.find(*each) for each in asked}
    assert [found[each] is not None for each in asked] == [True, True, False, True, False]


@pytest.mark.postgres
class TestOnPostgres(StoresOnPostgres):
    def test_a_key_that_is_being_answered_holds_up_its_own_change_only(
        self, stores: Stores, changes: list[Change], postgres_server: PostgresServer
    ) -> None:
        is_held, may_go = threading.Event(), threading.Event()

        def hold(connection: Connection) -> None:
            insert_claim(connection, claim("key-1"))
            is_held.set()
            may_go.wait(30)

        with ThreadPoolExecutor(2) as threads:
            holder = threads.submit(stores.database.write, hold)
            assert is_held.wait(30)
            asked = threads.submit(side_by_side, *puts(stores, changes, keys_of_all()))
            while not has_landed(stores, changes[-1]):
                assert not asked.done()
            wait_until_somebody_waits_for_a_lock(postgres_server)
            landed_meanwhile = [has_landed(stores, change) for change in changes]
            may_go.set()
            holder.result()
            found = asked.result()

        assert landed_meanwhile == [number != 1 for number in range(MOST)]
        assert isinstance(found.pop(1), IdempotencyKeyTaken)
        assert found == [PutOutcome.ADVANCED] * (MOST - 1)

    def test_a_key_that_others_had_to_wait_for_goes_alone_for_a_while(self, stores: Stores) -> None:
        stores.add_namespace("a")
        pointer, of = stores.add("a.t"), head("key-1")
        shared = SharedAdvances(stores.database)

        def plain() -> PlainAdvance:
            author = Author("alice", "r", NOW_MS, of)
            return PlainAdvance(move_of(pointer), author, landed(of, NOW_MS, [], 1), claim("key-1"))

        def hold(connection: Connection) -> None:
            insert_claim(connection, claim("key-1"))
            assert not shared.put(plain())
            raise KeyError

        with pytest.raises(KeyError):
            stores.database.write(hold)

        assert not shared.put(plain()), "though it is free by now"
        assert stores.there("a.t") == pointer
        assert Receipts(stores.database).find(of.commit_id) == []
        of = head("key-2")
        other = replace(plain(), claim=claim("key-2"))
        assert shared.put(other)
        assert stores.pointers.find(stores.id, name("a.t")) != pointer
