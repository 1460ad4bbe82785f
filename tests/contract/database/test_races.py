"""Sixteen threads at the same moment: one winner, the others told why, and no deadlock that anyone notices."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from app.database.connections.database import Database
from app.database.deletions.file_deletions import Deletion
from app.database.deletions.foreign_places import ForeignPlaces
from app.database.pointers.moves import Advance, Unmoved
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.pointers.pointers import PutOutcome
from app.database.pointers.recoverable import PURGE_NOW
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.errors import FilesBeingDeleted, IcetowerError, IdempotencyKeyTaken, InvalidRequest
from tests.contract.database.races import kinds, run_together
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, claim, levels, name

THREADS = 16
TABLE, VIEW = PointerKind.TABLE, PointerKind.VIEW


@pytest.fixture(params=["one server", "two servers"])
def servers(request: pytest.FixtureRequest, stores: Stores, database_url: str) -> Any:
    """The same database as one process sees it, or as two do: on SQLite they do not share a queue."""
    if request.param == "one server":
        yield [stores]
        return
    other = Database.open(database_url)
    yield [stores, Stores.on(other)]
    other.close()


def each_thread(servers: list[Stores], deed: Callable[[Stores, int], Any]) -> list[Any]:
    """Run a deed in each thread, with its server and its number."""
    return run_together([partial(deed, servers[n % len(servers)], n) for n in range(THREADS)])


def test_one_of_many_advances_wins(servers: list[Stores]) -> None:
    servers[0].add_namespace("a")
    seen = servers[0].add("a.t")

    outcomes = each_thread(servers, lambda stores, n: stores.advance(seen, f"{n}.json"))

    assert kinds(outcomes) == {"ADVANCED": 1, "MOVED": THREADS - 1}
    winner = outcomes.index(PutOutcome.ADVANCED)
    assert servers[0].there("a.t").metadata_location == f"{winner}.json"
    assert len(servers[0].pointers.history(seen.id)) == 2


def test_advances_of_patient_writers_are_all_made_one_after_the_other(servers: list[Stores]) -> None:
    servers[0].add_namespace("a")
    seen = servers[0].add("a.t")

    def commit_five(stores: Stores, n: int) -> None:
        for turn in range(5):
            while stores.advance(stores.there("a.t"), f"{n}-{turn}.json") is not PutOutcome.ADVANCED:
                pass

    outcomes = each_thread(servers, commit_five)

    assert outcomes == [None] * THREADS
    history = servers[0].pointers.history(seen.id)[::-1]
    assert Counter(event.location for event in history[1:]) == Counter(
        f"{n}-{turn}.json" for n in range(THREADS) for turn in range(5)
    )
    # Each event begins where the one before it ended.
    assert [event.previous_location for event in history[1:]] == [event.location for event in history[:-1]]


def test_a_name_is_given_once_to_a_table_or_a_view(servers: list[Stores]) -> None:
    servers[0].add_namespace("a")

    outcomes = each_thread(
        servers,
        lambda stores, n: stores.pointers.check_and_put(
            [stores.creation("a.t", VIEW if n % 2 else TABLE, f"uuid {n}")], AUTHOR
        ),
    )

    assert kinds(outcomes) == {"ADVANCED": 1, "NameTaken": THREADS - 1}
    winner = outcomes.index(PutOutcome.ADVANCED)
    there = servers[0].there("a.t")
    assert (there.uuid, there.kind) == (f"uuid {winner}", VIEW if winner % 2 else TABLE)
    assert {outcome.kind for outcome in outcomes if outcome is not PutOutcome.ADVANCED} == {there.kind}


def test_many_names_taken_in_any_order_do_not_deadlock(servers: list[Stores]) -> None:
    servers[0].add_namespace("a")
    servers[0].add_namespace("b")
    names = [f"{namespace}.t{n}" for namespace in "ab" for n in range(6)]

    def create_all(stores: Stores, n: int) -> PutOutcome:
        mine = random.Random(n).sample(names, len(names))
        return stores.pointers.check_and_put([stores.creation(each, uuid=str(n)) for each in mine], AUTHOR)

    outcomes = each_thread(servers, create_all)

    assert kinds(outcomes) == {"ADVANCED": 1, "NameTaken": THREADS - 1}
    winner = outcomes.index(PutOutcome.ADVANCED)
    assert {servers[0].there(each).uuid for each in names} == {str(winner)}


def test_many_pointers_advanced_in_any_order_do_not_deadlock(servers: list[Stores]) -> None:
    """Like transfers between accounts: all tables of a commit move, or none does."""
    servers[0].add_namespace("a")
    seen = [servers[0].add(f"a.t{n}") for n in range(6)]

    def advance_some(stores: Stores, n: int) -> list[Pointer]:
        mine = random.Random(n).sample(seen, 3)
        changes = [Advance(each, Location(f"{n}.json"), each.uuid) for each in mine]
        return mine if stores.pointers.check_and_put(changes, AUTHOR) is PutOutcome.ADVANCED else []

    outcomes = each_thread(servers, advance_some)

    expected = {each.identifier: each.metadata_location for each in seen}
    for n, moved in enumerate(outcomes):
        expected |= {each.identifier: Location(f"{n}.json") for each in moved}
    assert sum(bool(moved) for moved in outcomes) in (1, 2), (
        "three of six tables at a time: two commits have room"
    )
    assert {
        each.identifier: servers[0].there(str(each.identifier)).metadata_location for each in seen
    } == expected


def test_of_changes_that_rely_on_each_others_absence_one_is_made(servers: list[Stores]) -> None:
    """Each moves one table because the other has not moved: together they would contradict each other."""
    servers[0].add_namespace("a")
    pair = [servers[0].add("a.one"), servers[0].add("a.two")]

    def advance_one(stores: Stores, n: int) -> PutOutcome:
        moving, kept = pair[n % 2], pair[1 - n % 2]
        move = Advance(moving, Location(f"{n}.json"), moving.uuid)
        return stores.pointers.check_and_put([move, Unmoved(kept)], AUTHOR)

    outcomes = each_thread(servers, advance_one)

    assert kinds(outcomes) == {"ADVANCED": 1, "MOVED": THREADS - 1}


def test_a_namespace_is_created_once_and_its_parents_too(servers: list[Stores]) -> None:
    outcomes = each_thread(
        servers,
        lambda stores, n: stores.namespaces.create(stores.id, levels("a.b.c"), {"by": str(n)}, AUTHOR),
    )

    assert kinds(outcomes) == {"NoneType": 1, "NamespaceExists": THREADS - 1}
    assert servers[0].namespaces.find(servers[0].id, levels("a.b.c")) == {"by": str(outcomes.index(None))}


def test_siblings_are_created_together_with_their_missing_parents(servers: list[Stores]) -> None:
    outcomes = each_thread(
        servers,
        lambda stores, n: stores.namespaces.create(stores.id, levels(f"a.b{n % 2}.c{n}"), {}, AUTHOR),
    )

    assert outcomes == [None] * THREADS
    assert servers[0].namespaces.list_children(servers[0].id, levels("a")) == ("b0", "b1")


@pytest.mark.parametrize("round_number", range(4))
def test_a_namespace_is_dropped_or_gets_a_table_but_never_both(
    servers: list[Stores], round_number: int
) -> None:
    servers[0].add_namespace("a")

    def create_or_drop(stores: Stores, n: int) -> Any:
        if n % 2 == round_number % 2:
            return stores.namespaces.drop(stores.id, levels("a"), AUTHOR)
        return stores.pointers.check_and_put([stores.creation(f"a.t{n}")], AUTHOR)

    outcomes = each_thread(servers, create_or_drop)

    counted = kinds(outcomes)
    if servers[0].namespaces.find(servers[0].id, levels("a")) is None:
        assert counted == {"NoneType": 1, "NoSuchNamespace": THREADS - 1}
    else:
        assert counted == {"ADVANCED": THREADS // 2, "NamespaceNotEmpty": THREADS // 2}


def refuse_if_kept(properties: Mapping[str, str]) -> None:
    if "keep" in properties:
        raise InvalidRequest("it is to be kept")


@pytest.mark.parametrize("round_number", range(4))
def test_a_namespace_is_dropped_or_marked_to_be_kept(servers: list[Stores], round_number: int) -> None:
    servers[0].add_namespace("a")

    def mark_or_drop(stores: Stores, n: int) -> Any:
        if n % 2 == round_number % 2:
            return stores.namespaces.drop(stores.id, levels("a"), AUTHOR, check=refuse_if_kept)
        return stores.namespaces.update_properties(stores.id, levels("a"), [], {"keep": str(n)}, AUTHOR)

    counted = kinds(each_thread(servers, mark_or_drop))

    if servers[0].namespaces.find(servers[0].id, levels("a")) is None:
        assert counted == {"NoneType": 1, "NoSuchNamespace": THREADS - 1}
    else:
        assert counted == {"PropertyChanges": THREADS // 2, "InvalidRequest": THREADS // 2}


@pytest.mark.parametrize("round_number", range(4))
def test_a_warehouse_is_dropped_or_marked_to_be_kept(servers: list[Stores], round_number: int) -> None:
    def mark_or_drop(stores: Stores, n: int) -> Any:
        if n % 2 == round_number % 2:
            return stores.warehouses.drop("main", check=lambda now: refuse_if_kept(now.default_properties))
        return stores.warehouses.update("main", lambda now: replace(now, default_properties={"keep": "1"}))

    counted = kinds(each_thread(servers, mark_or_drop))

    if servers[0].warehouses.find("main") is None:
        assert counted == {"NoneType": 1, "NoSuchWarehouse": THREADS - 1}
    else:
        assert counted == {"Warehouse": THREADS // 2, "InvalidRequest": THREADS // 2}


@pytest.mark.parametrize("round_number", range(4))
def test_a_parent_is_dropped_or_gets_a_child(servers: list[Stores], round_number: int) -> None:
    """A child creates its missing parent again, so that a drop may come first; no child is ever without parent."""
    servers[0].add_namespace("a")

    def create_or_drop(stores: Stores, n: int) -> Any:
        if n % 2 == round_number % 2:
            return stores.namespaces.drop(stores.id, levels("a"), AUTHOR)
        return stores.namespaces.create(stores.id, levels(f"a.c{n}"), {}, AUTHOR)

    outcomes = each_thread(servers, create_or_drop)

    assert set(kinds(outcomes)) <= {"NoneType", "NamespaceNotEmpty", "NoSuchNamespace"}
    children = [f"c{n}" for n in range(THREADS) if n % 2 != round_number % 2]
    assert servers[0].namespaces.list_children(servers[0].id, levels("a")) == tuple(sorted(children))


def test_one_rename_to_a_name_wins(servers: list[Stores]) -> None:
    servers[0].add_namespace("a")
    servers[0].add_namespace("b")
    there = [servers[0].add(f"a.t{n}") for n in range(THREADS)]

    outcomes = each_thread(
        servers,
        lambda stores, n: stores.pointers.rename(stores.id, TABLE, name(f"a.t{n}"), name("b.t"), AUTHOR),
    )

    assert kinds(outcomes) == {"Pointer": 1, "NameTaken": THREADS - 1}
    winner = next(n for n, outcome in enumerate(outcomes) if isinstance(outcome, Pointer))
    assert servers[0].there("b.t").id == there[winner].id
    assert len(servers[0].pointers.list_names(servers[0].id, levels("a"), TABLE)) == THREADS - 1


def test_one_rename_of_a_pointer_wins(servers: list[Stores]) -> None:
    servers[0].add_namespace("a")
    there = servers[0].add("a.t")

    outcomes = each_thread(
        servers,
        lambda stores, n: stores.pointers.rename(stores.id, TABLE, name("a.t"), name(f"a.t{n}"), AUTHOR),
    )

    assert kinds(outcomes) == {"Pointer": 1, "NoneType": THREADS - 1}
    winner = next(n for n, outcome in enumerate(outcomes) if isinstance(outcome, Pointer))
    assert servers[0].there(f"a.t{winner}").id == there.id
    assert servers[0].pointers.list_names(servers[0].id, levels("a"), TABLE) == (f"t{winner}",)


def test_one_drop_of_a_pointer_wins(servers: list[Stores]) -> None:
    servers[0].add_namespace("a")
    there = servers[0].add("a.t")

    outcomes = each_thread(
        servers,
        lambda stores, _: stores.pointers.drop(stores.id, name("a.t"), TABLE, AUTHOR, recovery=PURGE_NOW),
    )

    assert kinds(outcomes) == {"Pointer": 1, "NoneType": THREADS - 1}
    assert there in outcomes
    assert servers[0].file_deletions.counts() == {"queued": 1}


def test_a_purge_begins_or_its_table_is_registered_again(servers: list[Stores]) -> None:
    servers[0].add_namespace("a")
    outcomes = []
    for round_ in range(10):
        dropped = servers[0].add(f"a.t{round_}")
        servers[0].pointers.drop(servers[0].id, dropped.identifier, TABLE, AUTHOR, recovery=PURGE_NOW)
        entry = servers[0].file_deletions.lease(60_000)
        assert entry is not None

        def deed(stores: Stores, n: int, dropped: Pointer = dropped, entry: Deletion = entry) -> object:
            if n == 0:
                return stores.file_deletions.begin(entry, None)
            again = replace(stores.creation(f"a.r{dropped.id}-{n}", uuid=dropped.uuid), registration=n)
            return stores.pointers.check_and_put([again], AUTHOR)

        begun, *registered = each_thread(servers, deed)
        outcomes.append(begun)
        landed = [each for each in registered if each is PutOutcome.ADVANCED]
        refused = [each for each in registered if isinstance(each, FilesBeingDeleted)]
        assert len(landed) + len(refused) == THREADS - 1
        assert begun is not bool(landed)
        servers[0].file_deletions.finish(entry, "done")
    assert len(outcomes) == 10


def test_a_sweep_begins_or_its_files_are_registered(servers: list[Stores]) -> None:
    servers[0].add_namespace("a")
    for round_ in range(10):
        seen = servers[0].add(f"a.s{round_}")

        def deed(stores: Stores, n: int, seen: Pointer = seen) -> object:
            if n == 0:
                return stores.file_deletions.begin_sweep(seen, NOW_MS, 60_000)
            again = replace(stores.creation(f"a.w{seen.id}-{n}", uuid=seen.uuid), registration=n)
            return stores.pointers.check_and_put([again], AUTHOR)

        begun, *registered = each_thread(servers, deed)
        landed = [each for each in registered if each is PutOutcome.ADVANCED]
        refused = [each for each in registered if isinstance(each, FilesBeingDeleted)]
        assert len(landed) + len(refused) == THREADS - 1
        assert isinstance(begun, Deletion) is not bool(landed)


def test_a_purge_finds_what_a_commit_takes_in_or_the_commit_is_refused(servers: list[Stores]) -> None:
    servers[0].add_namespace("a")
    for round_ in range(10):
        folder = f"s3://b/t{round_}/"
        purged = replace(servers[0].creation(f"a.t{round_}"), places=frozenset([folder]))
        servers[0].pointers.check_and_put([purged], AUTHOR)
        readers = [servers[0].add(f"a.r{round_}-{n}") for n in range(THREADS)]
        servers[0].pointers.drop(servers[0].id, purged.identifier, TABLE, AUTHOR, recovery=PURGE_NOW)
        entry = servers[0].file_deletions.lease(60_000)
        assert entry is not None

        def deed(
            stores: Stores,
            n: int,
            folder: str = folder,
            readers: list[Pointer] = readers,
            entry: Deletion = entry,
        ) -> object:
            if n == 0:
                assert stores.file_deletions.begin(entry, None)
                return {item.pointer.id for item in ForeignPlaces(stores.database).readers([folder], None)}
            seen = readers[n]
            move = Advance(seen, Location(f"{seen.id}/1.json"), seen.uuid, foreign=frozenset([folder]))
            return stores.pointers.check_and_put([move], AUTHOR)

        found, *moved = each_thread(servers, deed)
        landed = {readers[n].id for n, each in enumerate(moved, 1) if each is PutOutcome.ADVANCED}
        assert found == landed
        assert len([each for each in moved if isinstance(each, FilesBeingDeleted)]) == THREADS - 1 - len(
            landed
        )
        servers[0].file_deletions.finish(entry, "done")


def test_a_request_sent_many_times_is_answered_once(servers: list[Stores]) -> None:
    servers[0].add_namespace("a")

    outcomes = each_thread(
        servers,
        lambda stores, n: stores.pointers.check_and_put([stores.creation(f"a.t{n}")], AUTHOR, claim()),
    )

    assert kinds(outcomes) == {"ADVANCED": 1, IdempotencyKeyTaken.__name__: THREADS - 1}
    assert len(servers[0].pointers.list_names(servers[0].id, levels("a"), TABLE)) == 1


def test_changes_of_properties_are_not_lost(servers: list[Stores]) -> None:
    servers[0].add_namespace("a")

    outcomes = each_thread(
        servers,
        lambda stores, n: stores.namespaces.update_properties(
            stores.id, levels("a"), [], {f"key {n}": "there"}, AUTHOR
        ),
    )

    assert kinds(outcomes) == {"PropertyChanges": THREADS}
    expected = {f"key {n}": "there" for n in range(THREADS)}
    assert servers[0].namespaces.find(servers[0].id, levels("a")) == expected


@pytest.mark.parametrize("seed", range(3))
def test_everything_at_once_breaks_nothing(servers: list[Stores], seed: int) -> None:
    """Random deeds on few names: each is done or refused for its own reason, and none fails for the crowd's sake."""
    names = [f"{namespace}.t{n}" for namespace in ("a", "a.b", "c") for n in range(3)]

    def pick(dice: random.Random) -> TableIdentifier:
        return name(dice.choice(names))

    def advance_two(stores: Stores, dice: random.Random) -> Any:
        seen = stores.pointers.find_many([(stores.id, pick(dice)), (stores.id, pick(dice))])
        location = Location(f"{dice.random()}.json")
        return stores.pointers.check_and_put(
            [Advance(each, location, each.uuid) for each in seen.values()], AUTHOR
        )

    deeds: list[Callable[[Stores, random.Random], Any]] = [
        advance_two,
        lambda stores, dice: stores.pointers.check_and_put(
            [stores.creation(str(each)) for each in {pick(dice), pick(dice)}], AUTHOR
        ),
        lambda stores, dice: stores.pointers.drop(stores.id, pick(dice), TABLE, AUTHOR),
        lambda stores, dice: stores.pointers.rename(stores.id, TABLE, pick(dice), pick(dice), AUTHOR),
        lambda stores, dice: stores.namespaces.create(stores.id, pick(dice).namespace, {}, AUTHOR),
        lambda stores, dice: stores.namespaces.drop(stores.id, pick(dice).namespace, AUTHOR),
        lambda stores, dice: stores.namespaces.update_properties(
            stores.id, pick(dice).namespace, [], {"a": "b"}, AUTHOR
        ),
    ]

    def live(stores: Stores, n: int) -> Counter[str]:
        dice = random.Random(f"{seed} {n}")
        seen: Counter[str] = Counter()
        for _ in range(20):
            try:
                dice.choice(deeds)(stores, dice)
                seen["done"] += 1
            except IcetowerError as error:
                seen[type(error).__name__] += 1
        return seen

    lives = each_thread(servers, live)

    assert [life for life in lives if not isinstance(life, Counter)] == []
    reasons = set().union(*lives) - {"done"}
    assert reasons <= {"NameTaken", "NoSuchNamespace", "NamespaceExists", "NamespaceNotEmpty"}
    for each in names:
        found = servers[0].pointers.find(servers[0].id, name(each))
        if found is not None:
            history = servers[0].pointers.history(found.id)
            assert (history[0].location, history[0].identifier) == (found.metadata_location, found.identifier)
