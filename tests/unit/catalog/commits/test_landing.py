"""Commits to one table that arrive together: one file, one move, and to each its own answer."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextvars import copy_context
from dataclasses import replace
from typing import Any

import pytest

from app.catalog.commits.door import land_all
from app.catalog.commits.landing import land_one
from app.catalog.commits.table_commits import TableCommit
from app.catalog.commits.wishes import Wish
from app.catalog.context.callers import Caller
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.rows import IdempotencyClaim
from app.database.pointers.moves import Advance
from app.database.pointers.pointers import PutOutcome
from app.engine.change.requirements import AssertRefSnapshotId, Requirement
from app.engine.change.updates import SetProperties
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.errors import (
    CommitStateUnknown,
    GivenUp,
    IdempotencyKeyTaken,
    InvalidMetadata,
    NoSuchTable,
    PointerMoved,
    RequirementFailed,
)
from app.fileio.wanted import ask_if_wanted
from app.formats.metadata.files import MetadataFiles
from tests.builders.catalogs import START_MS, with_rules, with_server
from tests.builders.tables import DEPARTURES, append, append_to, head, load_table, snapshot_on, table_in
from tests.unit.catalog.commits.interference import InterferingPointers, files_in, interfering

STALE = AssertRefSnapshotId(ref="main", snapshot_id=None)


def wish(
    catalog: Catalog, name: str, *requirements: Requirement, key: str | None = None
) -> Wish[TableMetadata, Any]:
    """Return what a request of this name wants: to set the property of its name."""
    claim = None
    if key is not None:
        claim = IdempotencyClaim("tester", key, name, START_MS, START_MS + 1_000_000)
    caller = Caller("tester", name, claim)
    commit = TableCommit(DEPARTURES, requirements, [SetProperties(updates={name: "set"})])
    return Wish(replace(catalog, caller=caller), [commit])


def events(catalog: Catalog) -> list[tuple[str, str | None, str | None]]:
    """Return who moved the table from where to where, oldest first."""
    pointer = catalog.load(TABLES, DEPARTURES)
    newest_first = catalog.server.pointers.history(pointer.id)
    return [(item.request_id, item.previous_location, item.location) for item in reversed(newest_first)]


def set_by(found: Wish[TableMetadata, Any]) -> set[str]:
    return set(found.results()[0].loaded.metadata.properties)


def test_each_has_its_event_and_the_file_has_all(catalog: Catalog) -> None:
    before = append_to(catalog, table_in(catalog))
    files = files_in(catalog)
    wishes = [wish(catalog, name) for name in ("one", "two", "three")]

    land_all(wishes)

    assert all(set_by(each) >= {"one", "two", "three"} for each in wishes)
    (new,) = files_in(catalog) - files
    assert events(catalog)[-3:] == [("one", before.location, new), ("two", new, new), ("three", new, new)]
    log = load_table(catalog).metadata.metadata_log
    assert [entry.metadata_file for entry in log][-1] == before.location
    assert len(log) == len(before.metadata.metadata_log) + 1


def test_one_that_is_refused_fails_alone(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog))
    wishes = [wish(catalog, "one"), wish(catalog, "two", STALE), wish(catalog, "three")]

    land_all(wishes)

    with pytest.raises(RequirementFailed):
        wishes[1].results()
    assert {"one", "three"} <= set_by(wishes[0])
    assert "two" not in set_by(wishes[2])


def test_one_that_makes_the_metadata_too_large_fails_alone(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog))
    files = files_in(catalog)
    bounded = with_server(catalog, metadata_files=MetadataFiles(64 << 20, 0, 100_000))
    large = TableCommit(DEPARTURES, [], [SetProperties(updates={"large": "x" * 100_000})])
    wishes = [wish(bounded, "one"), Wish(bounded, [large]), wish(bounded, "three")]

    land_all(wishes)

    with pytest.raises(InvalidMetadata, match="more than 100000 bytes"):
        wishes[1].results()
    assert "one" in set_by(wishes[0])
    assert {"one", "three"} <= set_by(wishes[2])
    assert len(files_in(catalog) - files) == 2


def test_when_all_are_refused_nothing_is_written(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog))
    files, moves = files_in(catalog), events(catalog)
    wishes = [wish(catalog, "one", STALE), wish(catalog, "two", STALE)]

    land_all(wishes)

    for each in wishes:
        with pytest.raises(RequirementFailed):
            each.results()
    assert (files_in(catalog), events(catalog)) == (files, moves)


def test_second_append_to_a_branch_is_refused_as_if_it_had_come_later(catalog: Catalog) -> None:
    table = append_to(catalog, table_in(catalog))
    at_head = AssertRefSnapshotId(ref="main", snapshot_id=head(table).snapshot_id)
    first, second = snapshot_on(table.metadata), snapshot_on(table.metadata)
    wishes = [Wish(catalog, [TableCommit(DEPARTURES, [at_head], append(each))]) for each in (first, second)]

    land_all(wishes)

    assert wishes[0].results()[0].loaded.metadata.current_snapshot_id == first.snapshot_id
    with pytest.raises(RequirementFailed) as refused:
        wishes[1].results()
    assert refused.value.standing is not None


def test_refusal_by_a_change_that_lost_its_race_does_not_count(catalog: Catalog) -> None:
    """The first wish removes what the second one needs, but somebody else has done what makes the first impossible."""
    table = append_to(catalog, table_in(catalog))
    meddled, pointers = interfering(catalog)
    seen = catalog.load(TABLES, DEPARTURES)
    rival = Location(f"{table.metadata.location}/metadata/00009-rival.metadata.json")
    pointers.rivals = [[Advance(seen, rival, seen.uuid)]]
    at_head = AssertRefSnapshotId(ref="main", snapshot_id=head(table).snapshot_id)
    added = snapshot_on(table.metadata)
    catalog.files.write_new(
        rival, table.metadata.replace(current_snapshot_id=None, refs={}, snapshot_log=()).to_json()
    )
    one = Wish(meddled, [TableCommit(DEPARTURES, [at_head], append(added))])
    two = wish(meddled, "two", STALE)

    land_all([one, two])

    with pytest.raises(RequirementFailed):
        one.results()
    assert "two" in set_by(two)


def test_lost_race_plans_all_anew(catalog: Catalog) -> None:
    table = table_in(catalog)
    meddled, pointers = interfering(catalog)
    seen = catalog.load(TABLES, DEPARTURES)
    rival = Location(f"{table.metadata.location}/metadata/00001-rival.metadata.json")
    catalog.files.write_new(rival, table.metadata.replace(properties={"rival": "first"}).to_json())
    pointers.rivals = [[Advance(seen, rival, seen.uuid)]]
    wishes = [wish(meddled, "one"), wish(meddled, "two")]

    land_all(wishes)

    assert set_by(wishes[0]) == set_by(wishes[1]) == {"rival", "one", "two"}


def test_when_every_race_is_lost_each_hears_its_own_reason(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog))
    pointers = InterferingPointers(catalog.server.pointers)
    pointers.check_and_put = lambda *_args, **_kwargs: PutOutcome.MOVED  # type: ignore[method-assign]  # always lost
    hopeless = with_rules(with_server(catalog, pointers=pointers), commit_attempts=2)
    files = files_in(catalog)
    wishes = [wish(hopeless, "one"), wish(hopeless, "two", STALE), wish(hopeless, "three")]

    land_all(wishes)

    for each, error in zip(wishes, (PointerMoved, RequirementFailed, PointerMoved), strict=True):
        with pytest.raises(error):
            each.results()
    assert files_in(catalog) == files


@pytest.mark.parametrize("landed", [True, False])
def test_lost_reply_is_the_same_for_all_that_went_together(catalog: Catalog, landed: bool) -> None:
    append_to(catalog, table_in(catalog))
    meddled, pointers = interfering(catalog)
    pointers.lose_reply, pointers.lose_request = landed, not landed
    files = files_in(catalog)
    wishes = [wish(meddled, "one"), wish(meddled, "two"), wish(meddled, "three", STALE)]

    land_all(wishes)

    for each in wishes[:2]:
        if landed:
            assert {"one", "two"} <= set_by(each)
        else:
            with pytest.raises(CommitStateUnknown):
                each.results()
    with pytest.raises(RequirementFailed):
        wishes[2].results()
    assert len(files_in(catalog) - files) == 1, "after an unknown outcome nothing is deleted"


def test_keys_of_all_are_stored_with_the_change(catalog: Catalog) -> None:
    table_in(catalog)
    wishes = [wish(catalog, "one", key="b"), wish(catalog, "two"), wish(catalog, "three", key="a")]

    land_all(wishes)

    loaded = wishes[0].results()[0].loaded
    place = f"{loaded.location}\n{loaded.metadata.uuid}"
    found = [catalog.server.idempotency_keys.find("tester", key, START_MS) for key in ("a", "b")]
    assert [(item.request_hash, item.result) for item in found if item] == [
        ("three", place),
        ("one", place),
    ]


def test_request_whose_key_is_taken_fails_alone(catalog: Catalog) -> None:
    table_in(catalog)
    land_all([wish(catalog, "one", key="k")])
    wishes = [wish(catalog, "two"), wish(catalog, "one", key="k"), wish(catalog, "three")]

    land_all(wishes)

    with pytest.raises(IdempotencyKeyTaken):
        wishes[1].results()
    assert "two" in set_by(wishes[0])
    assert "three" in set_by(wishes[2])


def test_one_request_sent_twice_at_once_is_done_once(catalog: Catalog) -> None:
    table_in(catalog)
    wishes = [wish(catalog, "one", key="k"), wish(catalog, "one", key="k")]

    land_all(wishes)

    assert "one" in set_by(wishes[0])
    with pytest.raises(IdempotencyKeyTaken):
        wishes[1].results()
    assert [request for request, _, _ in events(catalog)].count("one") == 1


def test_client_that_has_gone_takes_no_other_commit_with_it(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog))
    forgetful = with_server(catalog, metadata_files=MetadataFiles(64 << 20, 0))

    def give_up() -> None:
        raise GivenUp("its client has gone")

    def leave() -> Wish[TableMetadata, Any]:
        ask_if_wanted.set(give_up)
        return wish(forgetful, "gone")

    gone = copy_context().run(leave)
    wishes = [gone, wish(forgetful, "one"), wish(forgetful, "two")]

    land_all(wishes)

    assert set_by(wishes[1]) >= {"one", "two"}
    with pytest.raises(GivenUp):
        gone.results()


def test_table_that_is_not_there(catalog: Catalog) -> None:
    wishes = [wish(catalog, "one"), wish(catalog, "two")]

    land_all(wishes)

    for each in wishes:
        with pytest.raises(NoSuchTable):
            each.results()


def test_commits_that_come_while_one_is_at_work_land_together(catalog: Catalog) -> None:
    table_in(catalog)
    at_work, let_go, answered = threading.Event(), threading.Event(), list[set[str]]()

    def step(name: str) -> None:
        if name == "before_put" and not at_work.is_set():
            at_work.set()
            assert let_go.wait(10)

    slow = with_server(catalog, step=step)
    key = (catalog.warehouse.id, TABLES.of_pointer, DEPARTURES)

    def commit(name: str) -> None:
        mine = replace(slow, caller=Caller("tester", name))
        landed = land_one(mine, TableCommit(DEPARTURES, [], [SetProperties(updates={name: "set"})]))
        answered.append(set(landed.loaded.metadata.properties) & set(names))

    names: Sequence[str] = ("first", "a", "b", "c")
    threads = [threading.Thread(target=commit, args=(name,)) for name in names]
    threads[0].start()
    assert at_work.wait(10)
    for number, thread in enumerate(threads[1:], 1):
        thread.start()
        while len(slow.server.commit_lines._waiting[key]) < number:
            pass
    let_go.set()
    for thread in threads:
        thread.join(10)

    assert answered.count({"first"}) == 1
    assert answered.count(set(names)) == 3
    assert len({location for _, _, location in events(catalog)}) == 3
    assert [request for request, _, _ in events(catalog)][-4:] == list(names)
