from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from app.catalog.commits.dry_runs import dry_run_transaction
from app.catalog.commits.landing import land_one
from app.catalog.commits.table_commits import TableCommit, commit_transaction
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.named import unregister
from app.database.pointers.moves import Advance
from app.engine.change.requirements import (
    AssertCreate,
    AssertRefSnapshotId,
    AssertTableUuid,
)
from app.engine.change.updates import (
    SetProperties,
)
from app.engine.model.ids import Location, SnapshotId
from app.errors import CommitStateUnknown, InvalidUpdate, NoSuchTable, RequirementFailed
from app.lines import Lines
from tests.builders.catalogs import with_server
from tests.builders.tables import (
    DEPARTURES,
    append,
    load_table,
    namespace_in,
    snapshot_on,
    table_in,
)
from tests.unit.catalog.commits.interference import ARRIVALS, creation_updates, files_in, interfering


def test_transaction_lands_all_its_tables(catalog: Catalog) -> None:
    one, two = table_in(catalog), table_in(catalog, ARRIVALS)
    changes = [
        TableCommit(
            table.identifier, [AssertTableUuid(uuid=table.metadata.uuid)], append(snapshot_on(table.metadata))
        )
        for table in (one, two)
    ]

    commit_transaction(catalog, changes)

    assert all(
        load_table(catalog, name).metadata.current_snapshot is not None for name in (DEPARTURES, ARRIVALS)
    )


def test_transaction_with_one_failing_table_changes_none_and_leaves_no_file(catalog: Catalog) -> None:
    one, two = table_in(catalog), table_in(catalog, ARRIVALS)
    before = files_in(catalog)
    changes = [
        TableCommit(DEPARTURES, [], append(snapshot_on(one.metadata))),
        TableCommit(
            ARRIVALS,
            [AssertRefSnapshotId(ref="main", snapshot_id=SnapshotId(5))],
            append(snapshot_on(two.metadata)),
        ),
    ]

    with pytest.raises(RequirementFailed, match="branch or tag main is missing, expected 5"):
        commit_transaction(catalog, changes)

    assert load_table(catalog, DEPARTURES).location == one.location
    assert files_in(catalog) == before


def test_transaction_may_create_a_table_and_go_on_with_it(catalog: Catalog) -> None:
    namespace_in(catalog)
    changes = [
        TableCommit(DEPARTURES, [AssertCreate()], creation_updates()),
        TableCommit(DEPARTURES, [], [SetProperties(updates={"second": "change"})]),
    ]

    created, made = commit_transaction(catalog, changes)

    assert created == made
    assert made.metadata.properties["second"] == "change"
    assert made.location is not None
    assert made.location.rsplit("/", 1)[1].startswith("00000-")


def test_two_changes_of_one_table_make_one_metadata_file(catalog: Catalog) -> None:
    created = table_in(catalog)
    first = snapshot_on(created.metadata)
    changes = [
        TableCommit(DEPARTURES, [AssertRefSnapshotId(ref="main")], append(first)),
        TableCommit(
            DEPARTURES,
            [AssertRefSnapshotId(ref="main", snapshot_id=first.snapshot_id)],
            [SetProperties(updates={"second": "change"})],
        ),
    ]

    one, landed = commit_transaction(catalog, changes)

    assert one == landed
    assert [entry.metadata_file for entry in landed.metadata.metadata_log] == [created.location]
    assert landed.metadata.properties["second"] == "change"


def test_table_that_a_transaction_only_asserts_about_must_stay_as_it_was(catalog: Catalog) -> None:
    table_in(catalog)
    watched = table_in(catalog, ARRIVALS)
    meddled, pointers = interfering(catalog)
    seen = pointers.find(catalog.warehouse.id, ARRIVALS)
    assert seen is not None
    rival = Location(f"{watched.metadata.location}/metadata/00001-rival.metadata.json")
    moved = watched.metadata.replace(current_schema_id=0, properties={"rival": "first"})
    catalog.files.write_new(rival, moved.to_json())
    pointers.rivals = [[Advance(seen, rival, seen.uuid)]]
    planned: list[str] = []
    meddled = with_server(meddled, step=planned.append)

    commit_transaction(
        meddled,
        [
            TableCommit(DEPARTURES, [], [SetProperties(updates={"a": "b"})]),
            TableCommit(ARRIVALS, [AssertTableUuid(uuid=watched.metadata.uuid)], []),
        ],
    )

    assert planned.count("before_put") == 2, (
        "the other table moved in between, so everything was checked again"
    )
    assert load_table(catalog, ARRIVALS).metadata.properties == {"rival": "first"}


def test_commits_to_one_of_its_tables_wait_for_a_transaction_that_has_lost_a_race(catalog: Catalog) -> None:
    table_in(catalog)
    table_in(catalog, ARRIVALS)
    rivals, lines = list[threading.Thread](), Lines[Any](8, 30.0)
    others = with_server(catalog, commit_lines=lines)
    line = (catalog.warehouse.id, TABLES.of_pointer, ARRIVALS)

    def rival(name: str) -> None:
        land_one(others, TableCommit(ARRIVALS, [], [SetProperties(updates={name: "set"})]))

    def step(name: str) -> None:
        if name != "before_put":
            return
        rivals.append(threading.Thread(target=rival, args=(f"rival-{len(rivals)}",)))
        rivals[-1].start()
        while rivals[-1].is_alive() and not lines._waiting.get(line):
            time.sleep(0.001)

    changes = [TableCommit(name, [], [SetProperties(updates={"a": "b"})]) for name in (DEPARTURES, ARRIVALS)]
    rules = replace(catalog.rules, commit_attempts=2)
    commit_transaction(with_server(catalog, commit_lines=lines, rules=rules, step=step), changes)
    for each in rivals:
        each.join(10)

    assert set(load_table(catalog, ARRIVALS).metadata.properties) >= {"a", "rival-0", "rival-1"}
    assert len(rivals) == 2


@pytest.mark.parametrize("is_first", [True, False])
def test_transaction_sent_again_of_which_a_part_is_there_is_not_refused(
    catalog: Catalog, is_first: bool
) -> None:
    """On a refusal the client would delete the files of all parts, also those that a table uses."""
    changes = [
        TableCommit(name, [], append(snapshot_on(table_in(catalog, name).metadata)))
        for name in (DEPARTURES, ARRIVALS)
    ]
    changes = changes if is_first else changes[::-1]
    commit_transaction(catalog, changes)
    unregister(catalog, TABLES, changes[1].identifier)
    kept = load_table(catalog, changes[0].identifier)

    for again in (changes, changes[::-1]):
        for asked in (commit_transaction, dry_run_transaction):
            with pytest.raises(CommitStateUnknown, match="A part of this transaction has landed before"):
                asked(catalog, again)

    assert load_table(catalog, changes[0].identifier).location == kept.location


def test_snapshot_that_two_parts_of_a_transaction_add_is_refused_as_not_landed(catalog: Catalog) -> None:
    """The second part is not the first one sent again: nothing of it is there."""
    created = table_in(catalog)
    change = TableCommit(DEPARTURES, [], append(snapshot_on(created.metadata)))
    missing = TableCommit(ARRIVALS, [], [])

    for changes, expected in (
        ([change, change], InvalidUpdate),
        ([change, missing, change], InvalidUpdate),
        ([missing, change, change], NoSuchTable),
    ):
        with pytest.raises(expected) as refused:
            commit_transaction(catalog, changes)
        refusal = dry_run_transaction(catalog, changes).error

        assert type(refusal) is expected
        assert str(refusal) == str(refused.value)
        assert load_table(catalog, DEPARTURES).location == created.location
    landed = commit_transaction(catalog, [change])[0]
    for asked in (commit_transaction, dry_run_transaction):
        with pytest.raises(CommitStateUnknown, match="A part of this transaction has landed before"):
            asked(catalog, [change, change])
    assert load_table(catalog, DEPARTURES).location == landed.location
