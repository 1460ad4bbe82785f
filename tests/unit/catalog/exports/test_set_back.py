"""A database that was set back under a running server: what it has lost is said, and stays in storage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete, update

from app.catalog.context.catalog import Catalog
from app.catalog.context.seen.landed_commits import MOST_NOTED, LandedCommit, LandedCommits
from app.catalog.deletions.sweeps import sweep_one
from app.catalog.exports.set_back import look_for_lost_commits
from app.database.pointer_states import PointerStates
from app.database.schema.rows import pointer_history, pointers
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.errors import DatabaseUnavailable, IcetowerError
from app.fileio.local import LocalFiles
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.tables import DEPARTURES, FLIGHTS, load_table, table_in
from tests.unit.catalog.commits.interference import ARRIVALS
from tests.unit.catalog.deletions.sweeps.test_metadata_files import DAY_MS, let_age
from tests.unit.catalog.deletions.test_orphans import make_old
from tests.unit.catalog.rebuild.rebuilding import commit


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    server = server_on(f"sqlite:///{tmp_path}/icetower.db", LocalFiles())
    made = new_warehouse(server, root=f"file://{tmp_path}/wh")
    table_in(made)
    commit(made, 1)
    return made


def set_back(catalog: Catalog, to: Location) -> None:
    """Make the database one that has seen no event since the one that brought a table to a file."""
    events = pointer_history.c

    def forget(connection: object) -> None:
        run = connection.execute  # type: ignore[attr-defined]  # a connection
        seen = run(pointer_history.select().where(events.location == to)).one().sequence
        run(delete(pointer_history).where(events.sequence > seen))
        run(update(pointers).where(pointers.c.name == DEPARTURES.name).values(metadata_location=to))

    catalog.server.pointer_states._database.write(forget)


def test_what_is_there_is_not_mentioned(catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(3):
        commit(catalog, number)
        look_for_lost_commits(catalog.server)
    look_for_lost_commits(catalog.server)

    assert caplog.text == ""


def test_commits_that_a_failover_has_lost_are_named_while_others_land(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    first = load_table(catalog).location
    assert first is not None
    table_in(catalog, ARRIVALS)
    other = commit(catalog, 5, ARRIVALS)
    look_for_lost_commits(catalog.server)
    commit(catalog, 2)
    lost = [other, commit(catalog, 3)]
    set_back(catalog, first)
    there = commit(catalog, 4)

    look_for_lost_commits(catalog.server)
    look_for_lost_commits(catalog.server)

    assert [
        record.message.count(location) for record, location in zip(caplog.records, lost, strict=True)
    ] == [1, 1]
    assert there not in caplog.text


def test_a_backup_that_lacks_what_was_seen_long_ago_is_noticed(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    first = load_table(catalog).location
    assert first is not None
    lost = commit(catalog, 2)
    look_for_lost_commits(catalog.server)
    set_back(catalog, first)

    look_for_lost_commits(catalog.server)

    assert lost in caplog.text


def test_tables_with_their_metadata_in_one_folder_are_all_named(
    catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = load_table(catalog).location
    assert first is not None
    lost = []
    for name in ("one", "two"):
        identifier = TableIdentifier(FLIGHTS, name)
        table_in(catalog, identifier, properties={"write.metadata.path": f"file://{tmp_path}/wh/shared"})
        lost.append(commit(catalog, 2, identifier))
    look_for_lost_commits(catalog.server)
    set_back(catalog, first)

    look_for_lost_commits(catalog.server)

    assert [location in caplog.text for location in lost] == [True, True]


def test_of_very_many_commits_between_two_looks_the_newest_are_left_out() -> None:
    landed = LandedCommits()
    commits = [
        LandedCommit(DEPARTURES, TableUuid("u"), Location(f"file:///{number}"), number)
        for number in range(MOST_NOTED + 1)
    ]
    for each in commits:
        landed.note(each)

    assert landed.take() == commits[:-1]


def test_a_lost_commit_is_not_swept(catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    first = load_table(catalog).location
    assert first is not None
    lost = commit(catalog, 2)
    set_back(catalog, first)
    commit(catalog, 3)
    look_for_lost_commits(catalog.server)
    for file in list(LocalFiles().list_files(Location(catalog.warehouse.root_location))):
        make_old(file.location)
    let_age(catalog, 30 * DAY_MS)

    assert sweep_one(catalog.server)

    assert LocalFiles().exists(lost)
    assert f"{lost} is a commit to this table that this catalog does not have" in caplog.text


def test_while_the_database_is_away_nothing_is_forgotten(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    first = load_table(catalog).location
    assert first is not None
    lost = commit(catalog, 2)

    class Away(PointerStates):
        def events_at(self, locations: object, since_ms: int) -> dict[Location, int]:
            raise DatabaseUnavailable("away")

    away = replace(catalog.server, pointer_states=Away(catalog.server.pointer_states._database))
    with pytest.raises(IcetowerError):
        look_for_lost_commits(away)
    set_back(catalog, first)

    look_for_lost_commits(catalog.server)

    assert lost in caplog.text
