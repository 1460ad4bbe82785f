"""Folders that a new table has alone: certain, however many servers create tables at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from app.catalog.deletions.purge import PurgedPlaces
from app.database.connections.database import Database
from app.database.dropped import DroppedThings
from app.database.pointers.moves import Creation
from app.database.pointers.places import is_free
from app.database.pointers.pointers import PutOutcome
from app.database.pointers.recoverable import PURGE_NOW, Recovery
from app.engine.model.ids import Location
from tests.contract.database.races import kinds, run_together
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, name

PLACE = "file:///lake/a/b/"
NOTED = PurgedPlaces(frozenset({PLACE}), Location(f"{PLACE}metadata"))
AROUND = ["file:///", "file:///lake/", "file:///lake/a/"]
INSIDE = ["file:///lake/a/b/c/", "file:///lake/a/b/c/d/"]
BESIDE = [
    "file:///lake/a/bc/",
    "file:///lake/a/b-1234/",
    "file:///lake/a0/",
    "s3://lake/a/b/",
    "file:///LAKE/a/b/",
]


def creation(stores: Stores, dotted: str, *places: str, alone: str | None = None) -> Creation:
    made = stores.creation(dotted)
    return replace(made, places=frozenset({*places, *([alone] if alone else [])}), alone=alone)


def put(stores: Stores, *creations: Creation) -> PutOutcome:
    return stores.pointers.check_and_put(creations, AUTHOR)


@pytest.fixture
def filled(stores: Stores) -> Stores:
    stores.add_namespace("n")
    return stores


@pytest.mark.parametrize("other", [PLACE, *AROUND, *INSIDE])
def test_a_folder_that_is_anothers_or_around_or_inside_one_is_not_free(filled: Stores, other: str) -> None:
    assert filled.pointers.is_free(PLACE)
    put(filled, creation(filled, "n.other", other))

    assert not filled.pointers.is_free(PLACE)
    assert put(filled, creation(filled, "n.t", alone=PLACE)) is PutOutcome.MOVED
    assert filled.pointers.find(filled.id, name("n.t")) is None


def test_folders_beside_it_do_not_matter(filled: Stores) -> None:
    put(filled, creation(filled, "n.other", *BESIDE))

    assert filled.pointers.is_free(PLACE)
    assert put(filled, creation(filled, "n.t", "file:///lake/a/b/data/", alone=PLACE)) is PutOutcome.ADVANCED


def test_who_brings_a_location_does_not_ask(filled: Stores) -> None:
    put(filled, creation(filled, "n.t", alone=PLACE))

    assert put(filled, creation(filled, "n.other", INSIDE[0])) is PutOutcome.ADVANCED


def test_two_of_one_transaction_see_each_other(filled: Stores) -> None:
    both = [creation(filled, "n.t", alone=PLACE), creation(filled, "n.other", alone=INSIDE[0])]

    assert put(filled, *both) is PutOutcome.MOVED
    assert filled.pointers.is_free(PLACE)


def test_what_was_dropped_keeps_its_folder_until_its_files_are_gone(filled: Stores) -> None:
    put(filled, creation(filled, "n.t", alone=PLACE))
    pointers, table = filled.pointers, filled.there("n.t")

    pointers.rename(filled.id, table.kind, name("n.t"), name("n.u"), AUTHOR)
    renamed = pointers.is_free(PLACE)
    pointers.drop(filled.id, name("n.u"), table.kind, AUTHOR, recovery=Recovery(1_000, purge=True))
    dropped = pointers.is_free(PLACE)
    ended = DroppedThings(filled.database).end(NOW_MS + 10_000)
    queued = pointers.is_free(PLACE)
    entry = filled.file_deletions.lease(60_000)
    assert entry is not None
    assert filled.file_deletions.begin(entry, None)
    begun = pointers.is_free(PLACE)
    taken = pointers.taken_of([PLACE, "file:///lake/", f"{PLACE}x/"])
    filled.file_deletions.come_back(entry, 60_000, NOTED.to_json(waits=True))
    waits = pointers.is_free(PLACE)
    filled.file_deletions.finish(entry, "done")

    assert ended == 1
    assert [renamed, dropped, queued, begun] == [False] * 4
    assert taken == {PLACE}
    assert [waits, pointers.is_free(PLACE)] == [True, True]
    assert pointers.taken_of([PLACE]) == frozenset()


def test_a_drop_without_recovery_and_purge_frees_the_folder_for_the_store_to_say(filled: Stores) -> None:
    put(filled, creation(filled, "n.t", alone=PLACE))
    filled.pointers.drop(filled.id, name("n.t"), filled.there("n.t").kind, AUTHOR)

    assert filled.pointers.is_free(PLACE)


def test_a_purge_that_has_not_begun_keeps_the_folder(filled: Stores) -> None:
    put(filled, creation(filled, "n.t", alone=PLACE))
    filled.pointers.drop(filled.id, name("n.t"), filled.there("n.t").kind, AUTHOR, recovery=PURGE_NOW)

    assert not filled.pointers.is_free(PLACE)


def test_a_purge_that_has_noted_its_places_keeps_the_folder_before_and_after_it_begins(
    filled: Stores,
) -> None:
    put(filled, creation(filled, "n.t", alone=PLACE))
    filled.pointers.drop(filled.id, name("n.t"), filled.there("n.t").kind, AUTHOR, recovery=PURGE_NOW)
    queue = filled.file_deletions
    entry = queue.lease(60_000)
    assert entry is not None

    queue.note(entry, NOTED.to_json(waits=False))
    noted = filled.pointers.is_free(PLACE), filled.pointers.taken_of([PLACE])
    assert queue.begin(entry, None)
    begun = filled.pointers.is_free(PLACE)

    assert noted == (False, frozenset({PLACE}))
    assert not begun


@pytest.mark.parametrize("servers_at_work", [1, 2])
def test_of_many_that_want_overlapping_folders_alone_those_that_land_do_not_overlap(
    filled: Stores, database_url: str, servers_at_work: int
) -> None:
    others = [Database.open(database_url) for _ in range(servers_at_work - 1)]
    servers = [filled, *(Stores.on(other) for other in others)]
    chains = [f"file:///lake/a/{'x/' * depth}" for depth in range(1, 5)]
    wanted = [place for place in chains for _ in range(2)] + [f"file:///lake/b/{n}/" for n in range(4)]

    for turn in range(5):
        deeds: Sequence[Callable[[], Any]] = [
            partial(put, servers[n % servers_at_work], creation(filled, f"n.t{turn}_{n}", alone=place))
            for n, place in enumerate(wanted)
        ]
        outcomes = run_together(deeds)

        landed = [
            place for place, outcome in zip(wanted, outcomes, strict=True) if outcome is PutOutcome.ADVANCED
        ]
        assert set(kinds(outcomes)) <= {"ADVANCED", "MOVED"}
        assert sum("/a/" in place for place in landed) == 1, "one of those that overlap, and no less"
        assert sum("/b/" in place for place in landed) == 4, "all of those that do not"
        for n, outcome in enumerate(outcomes):
            if outcome is PutOutcome.ADVANCED:
                identifier = name(f"n.t{turn}_{n}")
                filled.pointers.drop(filled.id, identifier, filled.there(str(identifier)).kind, AUTHOR)
    for other in others:
        other.close()


def test_its_own_places_do_not_matter_to_a_pointer(filled: Stores) -> None:
    put(filled, creation(filled, "n.t", alone=PLACE))
    own_id = filled.there("n.t").id

    assert filled.database.read(lambda connection: is_free(connection, PLACE, own_id))
