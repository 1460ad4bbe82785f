"""The history of pointers: every event once, in order, with the names of its time."""

from __future__ import annotations

import pytest

from app.catalog.deletions.purge import PurgedPlaces
from app.database import pointer_states
from app.database.pointers.history import Author
from app.database.pointers.moves import Advance
from app.database.pointers.pointer import PointerKind
from app.database.pointers.recoverable import NO_RECOVERY, PURGE_NOW
from app.engine.model.ids import Location, TableUuid
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, name
from tests.contract.database.test_plans import asked_in


def test_a_life_is_told_from_its_end_to_its_beginning(stores: Stores) -> None:
    stores.add_namespace("a")
    stores.add_namespace("b")
    seen = stores.add("a.t", uuid="u")
    stores.advance(seen, "1.json")
    stores.pointers.rename(stores.id, PointerKind.TABLE, name("a.t"), name("b.s"), AUTHOR)
    stores.pointers.drop(stores.id, name("b.s"), PointerKind.TABLE, Author("bob", "request-2", NOW_MS + 5))

    history = stores.pointers.history(seen.id)

    assert [
        (event.event, str(event.identifier), event.previous_location, event.location) for event in history
    ] == [
        ("dropped", "b.s", "1.json", None),
        ("renamed", "b.s", "1.json", "1.json"),
        ("committed", "a.t", "a.t/0.json", "1.json"),
        ("created", "a.t", None, "a.t/0.json"),
    ]
    assert {(event.pointer_id, event.warehouse_id, event.kind, event.uuid) for event in history} == {
        (seen.id, stores.id, PointerKind.TABLE, "u")
    }
    assert (history[0].author, history[0].request_id, history[0].at_ms) == ("bob", "request-2", NOW_MS + 5)
    assert (history[1].author, history[1].request_id, history[1].at_ms) == ("alice", "request-1", NOW_MS)
    sequences = [event.sequence for event in history]
    assert sequences == sorted(set(sequences), reverse=True)


def test_a_commit_that_saw_the_old_name_is_told_under_the_new_one(stores: Stores) -> None:
    stores.add_namespace("a")
    seen = stores.add("a.t")
    stores.pointers.rename(stores.id, PointerKind.TABLE, name("a.t"), name("a.s"), AUTHOR)

    stores.pointers.check_and_put([Advance(seen, Location("1.json"), seen.uuid)], AUTHOR)

    assert str(stores.pointers.history(seen.id)[0].identifier) == "a.s"


def test_history_comes_in_pages(stores: Stores) -> None:
    stores.add_namespace("a")
    seen = stores.add("a.t")
    for version in range(1, 7):
        stores.advance(stores.there("a.t"), f"{version}.json")
    everything = stores.pointers.history(seen.id)

    pages = [stores.pointers.history(seen.id, limit=3)]
    while len(pages[-1]) == 3:
        pages.append(stores.pointers.history(seen.id, before=pages[-1][-1].sequence, limit=3))

    assert [len(page) for page in pages] == [3, 3, 1]
    assert [event for page in pages for event in page] == everything


def test_pointers_as_they_are_now_come_page_by_page_all_or_those_of_which_there_are_new_events(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pointer_states, "_PAGE", 2)
    states = pointer_states.PointerStates(stores.database)
    stores.add_namespace("a")
    for number in range(5):
        stores.add(f"a.t{number}")
    seen = states.last_event()
    stores.advance(stores.there("a.t3"), "3.json")
    stores.pointers.rename(stores.id, PointerKind.TABLE, name("a.t1"), name("a.renamed"), AUTHOR)
    gone = stores.there("a.t4")
    stores.pointers.drop(stores.id, name("a.t4"), PointerKind.TABLE, AUTHOR)

    now = [stores.there(f"a.{last}") for last in ("t0", "renamed", "t2", "t3")]
    assert list(states.current()) == now
    assert list(states.current(after=seen)) == [now[1], now[3]]
    assert list(states.current(after=states.last_event())) == []
    assert states.find(now[3].id) == now[3]
    assert states.find(gone.id) is None


@pytest.mark.parametrize("stretch", [1, 2, 3, 1_000])
def test_the_last_states_of_what_no_pointer_has_are_found_stretch_by_stretch(
    stores: Stores, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one statement would read the whole history, and in a large catalog never come to its end."""
    monkeypatch.setattr(pointer_states, "STRETCH", stretch)
    monkeypatch.setattr(pointer_states, "_PAGE", 2)
    states = pointer_states.PointerStates(stores.database)
    stores.add_namespace("a")
    for each in ("stays", "gone", "replaced", "back"):
        stores.add(f"a.{each}", uuid=each)
        stores.advance(stores.there(f"a.{each}"), f"{each}.json")
    other = Advance(stores.there("a.replaced"), Location("other.json"), TableUuid("other"), "replaced")
    stores.pointers.check_and_put([other], AUTHOR)
    for each in ("gone", "back"):
        stores.pointers.drop(stores.id, name(f"a.{each}"), PointerKind.TABLE, AUTHOR, recovery=NO_RECOVERY)
    stores.add("a.again", uuid="back")
    for number in range(3):
        stores.advance(stores.there("a.stays"), f"{number}.json")
    seen = states.last_event()
    stores.pointers.drop(stores.id, name("a.stays"), PointerKind.TABLE, AUTHOR, recovery=NO_RECOVERY)

    asked = asked_in(stores, lambda: states.left(after=seen))

    assert {state.location for state in states.left()} == {"2.json", "gone.json", "replaced.json"}
    assert {state.location for state in states.left(after=seen)} == {"2.json"}
    assert len(asked) == 3, "which events there are since, what is gone by them, and where that was"


def test_the_last_state_of_a_table_says_whether_a_purge_has_deleted_it(stores: Stores) -> None:
    states, queue = pointer_states.PointerStates(stores.database), stores.file_deletions
    stores.add_namespace("a")
    for each in ("purged", "waits", "queued", "dropped"):
        stores.add(f"a.{each}", uuid=each)
        recovery = NO_RECOVERY if each == "dropped" else PURGE_NOW
        stores.pointers.drop(stores.id, name(f"a.{each}"), PointerKind.TABLE, AUTHOR, recovery=recovery)
    purged, waits = queue.lease(60_000), queue.lease(60_000)
    assert purged is not None
    assert waits is not None
    queue.finish(purged, "done")
    queue.come_back(waits, 60_000, PurgedPlaces(frozenset(), Location("a")).to_json(waits=True))

    found = {state.location.split("/")[0]: state.is_purged for state in states.left()}

    assert found == {"a.purged": True, "a.waits": True, "a.queued": False, "a.dropped": False}
