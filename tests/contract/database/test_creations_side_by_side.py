"""Creations that go side by side in one thread: each leaves what it leaves alone, or is refused as it is alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import Connection, text

from app.database.connections.database import Database
from app.database.outcomes.receipt import CommitReceipt, Outcome, ReceiptHead, landed
from app.database.outcomes.receipts import GivenUpMeanwhile, Receipts
from app.database.past import Past
from app.database.pointers.history import Author
from app.database.pointers.moves import Creation, NameTaken
from app.database.pointers.places import check_alone
from app.database.pointers.pointer import PointerKind
from app.database.pointers.pointers import PutOutcome
from app.database.pointers.shared_creations import PlainCreation, SharedCreations
from app.engine.model.ids import Location
from app.errors import InvalidRequest, NoSuchNamespace
from tests.contract.database.companions import (
    Found,
    StoresOnPostgres,
    head,
    last_event,
    longer_than_an_index_takes,
    side_by_side,
)
from tests.contract.database.stores import NOW_MS, Stores, levels, name
from tests.contract.database.test_lost_connections import wait_until_somebody_waits_for_a_lock
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_proxy import Break, PostgresProxy

pytestmark = pytest.mark.timeout(60)

AT_MS = NOW_MS + 7
HELD_NAME = (
    "INSERT INTO pointers (namespace_id, kind, name, uuid, metadata_location, created_ms, updated_ms)"
    " SELECT id, 'table', 'held', 'u', 'l', 0, 0 FROM namespaces WHERE key = 'a'"
)
WANTED = [f"a.t{number}" for number in range(5)]


def creation(stores: Stores, dotted: str, kind: PointerKind = PointerKind.TABLE) -> Creation:
    """Return what a server asks for that has given a table its folder alone."""
    place = f"file:///lake/{dotted.replace('.', '/')}/"
    made = stores.creation(dotted, kind)
    return replace(made, places=frozenset({place, f"{place}data/"}), alone=place)


def create(stores: Stores, wanted: Creation, of: ReceiptHead, at_ms: int = AT_MS) -> PutOutcome:
    author = Author("alice", "request-1", at_ms, of)
    return stores.pointers.check_and_put([wanted], author, None, receipts=[landed(of, at_ms, [], 1)])


def creations(
    stores: Stores, *wanted: Creation, heads: Sequence[ReceiptHead] = ()
) -> list[Callable[[], PutOutcome]]:
    return [
        partial(create, stores, each, of)
        for each, of in zip(wanted, heads or [head() for _ in wanted], strict=True)
    ]


def of_all(stores: Stores) -> list[Creation]:
    return [creation(stores, dotted) for dotted in WANTED]


def places_of(stores: Stores, pointer_id: int) -> set[str]:
    query = text("SELECT place FROM table_places WHERE pointer_id = :id")
    return set(stores.database.read(lambda connection: list(connection.scalars(query, {"id": pointer_id}))))


@pytest.fixture
def filled(stores: Stores) -> Stores:
    stores.add_namespace("a")
    return stores


def test_each_leaves_what_it_leaves_alone(filled: Stores) -> None:
    filled.add_namespace("b.c")
    lonely, heads = head(), [head() for _ in range(3)]
    assert create(filled, creation(filled, "a.alone"), lonely) is PutOutcome.ADVANCED
    wanted = [
        creation(filled, "a.t"),
        creation(filled, "a.v", PointerKind.VIEW),
        creation(filled, "b.c.t"),
    ]

    found = side_by_side(*creations(filled, *wanted, heads=heads))

    assert found == [PutOutcome.ADVANCED] * 3
    alone, receipts, past = filled.there("a.alone"), Receipts(filled.database), Past(filled.database)
    (receipt_alone,) = receipts.find(lonely.commit_id)
    for each, of in zip(wanted, heads, strict=True):
        made = filled.there(str(each.identifier))
        assert made == replace(
            alone,
            id=made.id,
            identifier=each.identifier,
            kind=each.kind,
            uuid=each.uuid,
            metadata_location=each.location,
        )
        event, event_alone = last_event(filled, made), last_event(filled, alone)
        assert event == replace(
            event_alone,
            sequence=event.sequence,
            pointer_id=made.id,
            identifier=each.identifier,
            kind=each.kind,
            uuid=each.uuid,
            location=each.location,
        )
        assert receipts.find(of.commit_id) == [replace(receipt_alone, head=of)]
        assert places_of(filled, made.id) == each.places
        was = past.find(filled.id, each.identifier, AT_MS)
        assert was is not None
        assert was.pointer_id == made.id
        assert past.find(filled.id, each.identifier, AT_MS - 1) is None


def test_one_whose_name_or_namespace_is_not_free_is_refused_alone(filled: Stores) -> None:
    filled.add("a.t1")

    found = side_by_side(*creations(filled, *of_all(filled), creation(filled, "missing.t")))

    assert isinstance(found.pop(), NoSuchNamespace)
    assert isinstance(found.pop(1), NameTaken)
    assert found == [PutOutcome.ADVANCED] * 4


def test_of_two_with_one_name_one_is_made(filled: Stores) -> None:
    twin = replace(creation(filled, "a.t0"), uuid=filled.creation("a.twin").uuid)

    found = side_by_side(*creations(filled, *of_all(filled), twin))

    ends: list[Found] = [found[0], found[-1]]
    assert sum(each is PutOutcome.ADVANCED for each in ends) == 1
    assert sum(isinstance(each, NameTaken) for each in ends) == 1
    assert found[1:-1] == [PutOutcome.ADVANCED] * 4


def test_one_whose_folder_is_taken_moves_on_alone(filled: Stores) -> None:
    around = replace(creation(filled, "a.around"), alone="file:///lake/a/t1/data/x/")
    filled.pointers.check_and_put([replace(creation(filled, "a.t1"), alone=None)], Author("bob", "r", NOW_MS))

    found = side_by_side(*creations(filled, creation(filled, "a.t2"), around, creation(filled, "a.t3")))

    assert found == [PutOutcome.ADVANCED, PutOutcome.MOVED, PutOutcome.ADVANCED]
    assert filled.pointers.find(filled.id, name("a.around")) is None


def test_of_two_whose_folders_overlap_one_is_made(filled: Stores) -> None:
    inside = "file:///lake/a/t0/inside/"
    overlaps = replace(creation(filled, "a.other"), places=frozenset({inside}), alone=inside)

    found = side_by_side(*creations(filled, *of_all(filled), overlaps))

    assert sorted(map(str, (found[0], found[-1]))) == ["PutOutcome.ADVANCED", "PutOutcome.MOVED"]
    assert found[1:-1] == [PutOutcome.ADVANCED] * 4


def test_one_that_was_given_up_is_not_made_and_the_others_are(filled: Stores) -> None:
    heads = [head() for _ in WANTED]
    Receipts(filled.database).note([CommitReceipt(heads[1], Outcome.FAILED, NOW_MS, error={"message": "no"})])

    found = side_by_side(*creations(filled, *of_all(filled), heads=heads))

    assert isinstance(found.pop(1), GivenUpMeanwhile)
    assert found == [PutOutcome.ADVANCED] * 4
    assert filled.pointers.find(filled.id, name("a.t1")) is None


def test_a_name_that_was_freed_by_a_clock_ahead_is_had_from_then_on(filled: Stores) -> None:
    filled.add("a.t1")
    freed_ms = AT_MS + 1_000_000
    filled.pointers.drop(filled.id, name("a.t1"), PointerKind.TABLE, Author("bob", "r", freed_ms))

    assert side_by_side(*creations(filled, *of_all(filled))) == [PutOutcome.ADVANCED] * 5

    times = {dotted: last_event(filled, filled.there(dotted)).at_ms for dotted in WANTED}
    assert times == {dotted: freed_ms if dotted == "a.t1" else AT_MS for dotted in WANTED}


def test_what_is_looked_up_side_by_side_is_what_is_found_alone(filled: Stores) -> None:
    filled.namespaces.update_properties(filled.id, levels("a"), (), {"k": "v"}, Author("bob", "r", NOW_MS))
    create(filled, creation(filled, "a.t0"), head())
    namespaces = [levels(each) for each in ("a", "a.b", "missing", "a")]
    places = [
        "file:///lake/a/t0/",
        "file:///lake/a/t0/data/x/",
        "file:///lake/a/",
        "file:///lake/a/t1/",
        "s3://lake/a/t0/",
    ]
    found: dict[object, object] = {}

    def ask(key: object, work: Callable[[], object]) -> PutOutcome:
        found[key] = work()
        return PutOutcome.ADVANCED

    asked: dict[object, Callable[[], object]] = {
        **{each: partial(filled.namespaces.find, filled.id, each) for each in namespaces},
        **{each: partial(filled.pointers.is_free, each) for each in places},
    }
    side_by_side(*(partial(ask, key, work) for key, work in asked.items()))

    assert found == {key: work() for key, work in asked.items()}
    assert [found[place] for place in places] == [False, False, False, True, True]
    assert [found[namespace] for namespace in namespaces] == [{"k": "v"}, None, None, {"k": "v"}]


@pytest.mark.postgres
class TestOnPostgres(StoresOnPostgres):
    @pytest.mark.parametrize("part", ["location", "places"])
    def test_one_with_a_location_that_no_index_takes_is_refused_alone(
        self, filled: Stores, part: str
    ) -> None:
        wanted = of_all(filled)
        place = f"file:///lake/{longer_than_an_index_takes()}/"
        if part == "location":
            wanted[1] = replace(wanted[1], location=Location(f"{place}0.json"))
        else:
            wanted[1] = replace(wanted[1], places=frozenset({place}))

        found = side_by_side(*creations(filled, *wanted))

        refused = found.pop(1)
        assert isinstance(refused, InvalidRequest)
        assert "too long for the database" in str(refused)
        assert found == [PutOutcome.ADVANCED] * 4

    @pytest.mark.parametrize(
        "held",
        [
            "SELECT FROM namespaces WHERE key = 'held' FOR UPDATE",
            (
                "INSERT INTO pointers (namespace_id, kind, name, uuid, metadata_location, created_ms, updated_ms)"
                " SELECT id, 'table', 't', 'u', 'l', 0, 0 FROM namespaces WHERE key = 'held'"
            ),
        ],
        ids=["namespace", "name"],
    )
    def test_a_lock_holds_up_its_own_creation_only(
        self, filled: Stores, postgres_server: PostgresServer, held: str
    ) -> None:
        filled.add_namespace("held")
        is_held, may_go = threading.Event(), threading.Event()

        def hold() -> None:
            def hold_row(connection: Connection) -> None:
                connection.execute(text(held))
                is_held.set()
                may_go.wait(30)
                raise KeyError(held)

            with pytest.raises(KeyError):
                filled.database.write(hold_row)

        with ThreadPoolExecutor(2) as threads:
            holder = threads.submit(hold)
            assert is_held.wait(30)
            wanted = [*of_all(filled), creation(filled, "held.t")]
            asked = threads.submit(side_by_side, *creations(filled, *wanted))
            while filled.pointers.find(filled.id, name("a.t4")) is None:
                assert not asked.done()
            wait_until_somebody_waits_for_a_lock(postgres_server)
            made_meanwhile = [filled.pointers.find(filled.id, each.identifier) is not None for each in wanted]
            may_go.set()
            holder.result()

            assert asked.result() == [PutOutcome.ADVANCED] * 6
        assert made_meanwhile == [True] * 5 + [False]

    def test_a_name_that_is_freed_meanwhile_is_had_from_then_on(
        self, filled: Stores, postgres_server: PostgresServer
    ) -> None:
        freed_ms = AT_MS + 1_000_000
        statements = [
            (
                "INSERT INTO pointers (namespace_id, kind, name, uuid, metadata_location, created_ms, updated_ms)"
                " SELECT id, 'table', 't1', 'u', 'l', 0, 0 FROM namespaces"
            ),
            (
                "INSERT INTO pointer_names (pointer_id, warehouse_id, namespace_key, kind, name, from_ms, until_ms)"
                f" SELECT 0, warehouse_id, key, 'table', 't1', 0, {freed_ms} FROM namespaces"
            ),
            "DELETE FROM pointers",
        ]
        has_begun, may_go = threading.Event(), threading.Event()

        def have_name(connection: Connection) -> None:
            for statement in statements:
                connection.execute(text(statement))
            has_begun.set()
            may_go.wait(30)

        with ThreadPoolExecutor(2) as threads:
            holder = threads.submit(filled.database.write, have_name)
            assert has_begun.wait(30)
            asked = threads.submit(side_by_side, *creations(filled, *of_all(filled)))
            wait_until_somebody_waits_for_a_lock(postgres_server)
            may_go.set()
            holder.result()
            assert asked.result() == [PutOutcome.ADVANCED] * 5
        times = {dotted: last_event(filled, filled.there(dotted)).at_ms for dotted in WANTED}
        assert times == {dotted: freed_ms if dotted == "a.t1" else AT_MS for dotted in WANTED}

    def test_a_name_that_others_had_to_wait_for_is_not_made_with_others_for_a_while(
        self, filled: Stores
    ) -> None:
        shared, of = SharedCreations(filled.database), head()
        plain = PlainCreation(
            creation(filled, "a.held"), Author("alice", "r", AT_MS, of), landed(of, AT_MS, [], 1)
        )

        def hold(connection: Connection) -> None:
            connection.execute(text(HELD_NAME))
            assert not shared.put(plain)
            raise KeyError

        with pytest.raises(KeyError):
            filled.database.write(hold)

        assert not shared.put(plain), "though it is free by now"
        assert filled.pointers.find(filled.id, name("a.held")) is None

    def test_they_wait_for_the_lock_of_the_folders_together_however_long(
        self, filled: Stores, postgres_server: PostgresServer
    ) -> None:
        waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        has_lock, may_go = threading.Event(), threading.Event()

        def hold(connection: Connection) -> None:
            check_alone(connection, [(0, "file:///lake/")])
            has_lock.set()
            assert may_go.wait(30)

        with ThreadPoolExecutor(2) as threads:
            holder = threads.submit(filled.database.write, hold)
            assert has_lock.wait(30)
            asked = threads.submit(side_by_side, *creations(filled, *of_all(filled)))
            wait_until_somebody_waits_for_a_lock(postgres_server)
            end_s = time.monotonic() + 0.3
            while time.monotonic() < end_s:
                assert filled.database.read(lambda connection: connection.scalars(waiting).one()) == 1
            may_go.set()
            holder.result()
            assert asked.result() == [PutOutcome.ADVANCED] * 5

    def test_a_lost_reply_is_unknown_to_all_and_each_finds_out(
        self, filled: Stores, postgres_wire: PostgresProxy, database_name: str
    ) -> None:
        wired = Stores.on(Database.open(postgres_wire.url(database_name)))
        heads = [head() for _ in WANTED]
        postgres_wire.break_at("COMMIT", Break.LOSE_REPLY)

        twin = replace(creation(filled, "a.t0", PointerKind.VIEW), uuid=filled.creation("a.twin").uuid)
        found = side_by_side(
            *creations(wired, *of_all(filled), heads=heads), partial(create, wired, twin, head())
        )

        assert isinstance(found.pop(), NameTaken), "it was not tried with the others"
        assert found == [PutOutcome.UNKNOWN] * 5
        for each, of in zip(of_all(filled), heads, strict=True):
            assert filled.pointers.has_landed(each, Author("alice", "request-1", AT_MS, of))
        wired.database.close()
