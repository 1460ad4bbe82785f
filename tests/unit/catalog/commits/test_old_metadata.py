"""Old metadata files: deleted by the commit that lets them go, or kept for reading the table as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete

from app.catalog import named
from app.catalog.commits import old_metadata
from app.catalog.commits.landing import land
from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner, deletable
from app.catalog.context.kinds import TABLES
from app.catalog.past.loads import load_as_it_was
from app.database.schema.rows import pointer_history
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.errors import CommitFailed
from app.fileio.files import FileIO
from app.recoveries import PastIsGone
from tests.builders.catalogs import START_MS, Clock, with_server, with_warehouse
from tests.builders.tables import DEPARTURES, FLIGHTS, commit_to, load_table, table_in
from tests.unit.catalog.commits.interference import files_in
from tests.unit.catalog.deletions.sweeps.test_metadata_files import execute

HOUR_MS = 3_600_000
KEEP_MS = 1_000_000
MINUTE_MS = 60_000
SHORT_LOG = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}


def later(catalog: Catalog, by_ms: int) -> Catalog:
    """Return the same catalog when time has passed."""
    now_ms = catalog.server.now_ms
    return with_server(catalog, now_ms=lambda: now_ms() + by_ms)


def change(catalog: Catalog, value: int) -> tuple[int, Location]:
    """Commit once; return a moment after it, and where the metadata is."""
    changed = commit_to(catalog, SetProperties(updates={"value": str(value)}))
    assert changed.location is not None
    return catalog.now_ms(), changed.location


def test_without_a_time_to_keep_they_go_at_once(catalog: Catalog) -> None:
    table_in(catalog, properties=SHORT_LOG)
    states = [change(catalog, number) for number in range(4)]

    there = [catalog.files.exists(location) for _, location in states]

    assert there == [False, False, True, True]
    with pytest.raises(PastIsGone, match="has been deleted since"):
        load_as_it_was(replace(catalog, as_of_ms=states[0][0]), DEPARTURES)


@pytest.mark.parametrize("place", ["table", "warehouse"])
def test_they_are_kept_for_the_past_and_go_when_it_is_over(catalog: Catalog, place: str) -> None:
    keep = {"icetower.as-of.metadata-keep-ms": str(HOUR_MS)}
    if place == "warehouse":
        catalog = with_warehouse(catalog, default_properties=keep)
        table_in(catalog, properties=SHORT_LOG)
    else:
        table_in(catalog, properties={**SHORT_LOG, **keep})
    states = [change(catalog, number) for number in range(4)]
    half_an_hour = later(catalog, HOUR_MS // 2)
    states += [change(half_an_hour, number) for number in range(4, 7)]

    for number, (moment, location) in enumerate(states):
        loaded = load_as_it_was(replace(half_an_hour, as_of_ms=moment), DEPARTURES)
        assert loaded.metadata.properties["value"] == str(number)
        assert loaded.location == location

    change(later(catalog, HOUR_MS * 5 // 4), 7)

    # What was replaced more than an hour ago is gone; the fourth was in force until half an hour before.
    there = [catalog.files.exists(location) for _, location in states]
    assert there == [False, False, False, True, True, True, True]
    assert load_table(catalog).metadata.properties["value"] == "7"


def test_what_the_log_still_names_stays(catalog: Catalog) -> None:
    long_log = {**SHORT_LOG, "write.metadata.previous-versions-max": "100"}
    table_in(catalog, properties={**long_log, "icetower.as-of.metadata-keep-ms": "1"})
    states = [change(catalog, number) for number in range(4)]

    change(later(catalog, HOUR_MS), 5)

    assert all(catalog.files.exists(location) for _, location in states)


class Times:
    """A table whose commits come at chosen minutes, and what is left of its metadata files."""

    def __init__(self, catalog: Catalog, previous_versions: int, keep: str = str(KEEP_MS)) -> None:
        self.catalog = catalog
        created = table_in(
            catalog,
            properties={
                "write.metadata.delete-after-commit.enabled": "true",
                "write.metadata.previous-versions-max": str(previous_versions),
            },
        )
        catalog.namespaces.update_properties(
            catalog.warehouse.id,
            DEPARTURES.namespace,
            [],
            {"icetower.as-of.metadata-keep-ms": keep},
            catalog.author(),
        )
        assert created.location is not None
        self.written: list[str] = [created.location]

    def at(self, ms: int) -> Catalog:
        return with_server(self.catalog, now_ms=Clock(START_MS + ms))

    def commit(self, ms: int) -> None:
        location = commit_to(self.at(ms), SetProperties(updates={"at": str(ms)})).location
        assert location is not None
        self.written.append(location)

    def left(self) -> list[int]:
        """Return the numbers of the files that are there."""
        there = files_in(self.catalog)
        return [number for number, location in enumerate(self.written) if location in there]


def test_files_go_that_only_the_log_has_held_back(catalog: Catalog) -> None:
    times = Times(catalog, previous_versions=3)
    for number in range(1, 8):
        # Each is in the log of three more commits, much longer than it is kept.
        times.commit(number * 10 * KEEP_MS)

    assert times.left() == [4, 5, 6, 7]


def test_file_that_was_current_again_stays_as_long_after_that(catalog: Catalog) -> None:
    times = Times(catalog, previous_versions=1)
    first = times.written[0]
    times.commit(1 * MINUTE_MS)
    named.register(times.at(5 * MINUTE_MS), TABLES, DEPARTURES, Location(first), overwrite=True)
    for minute in (8, 9, 10):
        times.commit(minute * MINUTE_MS)

    times.commit(6 * MINUTE_MS + KEEP_MS)
    assert 0 in times.left()
    times.commit(60 * MINUTE_MS + KEEP_MS)
    assert 0 not in times.left()


@pytest.mark.parametrize("keep", ["soon", "-5", "", "9" * 30])
def test_time_that_makes_no_sense_keeps_all_and_fails_no_commit(catalog: Catalog, keep: str) -> None:
    times = Times(catalog, previous_versions=1, keep=keep)
    for number in range(1, 4):
        times.commit(number * 10 * KEEP_MS)

    assert load_table(catalog).location == times.written[-1]
    assert times.left() == [0, 1, 2, 3]


@pytest.mark.parametrize("keep_ms", ["0", "1"])
def test_a_file_that_a_commit_is_just_deleting_is_not_registered_over_its_table(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, keep_ms: str
) -> None:
    """Else the table is left without it: the deletion has asked whether it is in use before."""
    table_in(catalog, properties={**SHORT_LOG, "icetower.as-of.metadata-keep-ms": keep_ms})
    _, going = change(catalog, 1)
    change(catalog, 2)
    refused: list[str] = []

    def ask_and_register(catalog: Catalog, owner: Owner, locations: Sequence[Location]) -> list[Location]:
        found = deletable(catalog, owner, locations)
        # As on another server: there no line is waited in.
        try:
            land(catalog, [named.Registration(TABLES, DEPARTURES, going, overwrite=True)])
        except CommitFailed as error:
            refused.append(str(error))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(old_metadata, "deletable", ask_and_register)
        _, last = change(later(catalog, MINUTE_MS), 3)

    assert load_table(catalog).location == last
    assert not catalog.files.exists(going)
    assert "a commit may be deleting it just now (write.metadata.delete-after-commit.enabled)" in refused[0]


class Registering:
    """A store that lets somebody else act when the first file is deleted."""

    def __init__(self, files: FileIO, act: Callable[[], object]) -> None:
        self._files = files
        self._acts = [act]

    def delete(self, location: Location) -> None:
        self._files.delete(location)
        if self._acts:
            self._acts.pop()()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


@pytest.mark.parametrize("comes", ["beside it", "instead of it"])
def test_of_many_files_those_stay_that_are_registered_meanwhile(catalog: Catalog, comes: str) -> None:
    """Far away to delete a file takes as long as to register one."""
    table_in(catalog, properties={**SHORT_LOG, "write.metadata.previous-versions-max": "100"})
    states = [change(catalog, number)[1] for number in range(50)]
    registered = max(states[:40])
    name = TableIdentifier(FLIGHTS, "copy") if comes == "beside it" else DEPARTURES

    def register() -> None:
        if comes == "instead of it":
            named.unregister(catalog, TABLES, DEPARTURES)
        land(catalog, [named.Registration(TABLES, name, registered, overwrite=False)])

    store = Registering(catalog.files, register)
    far_away = with_server(catalog, files_of=lambda _warehouse: store)
    commit_to(far_away, SetProperties(updates=SHORT_LOG))

    assert not catalog.files.exists(min(states))
    assert load_table(catalog, name).location == registered
    assert catalog.files.exists(registered)


def test_a_file_from_before_the_history_is_not_registered_while_it_goes(catalog: Catalog) -> None:
    table_in(catalog, properties=SHORT_LOG)
    history_ms = catalog.rules.history_ms
    _, going = change(catalog, 1)
    content = catalog.files.read(going)
    aged = later(catalog, history_ms + HOUR_MS)
    change(aged, 2)
    change(aged, 3)
    execute(aged, delete(pointer_history).where(pointer_history.c.previous_location == going))
    catalog.files.write_new(going, content)  # as where it is deleted just now

    with pytest.raises(CommitFailed, match="has let it go"):
        named.register(aged, TABLES, DEPARTURES, going, overwrite=True)


def test_what_the_log_names_and_what_has_stayed_for_long_is_registered_over_a_table(catalog: Catalog) -> None:
    table_in(catalog, properties=SHORT_LOG)
    states = [change(catalog, number)[1] for number in range(3)]

    registered = named.register(catalog, TABLES, DEPARTURES, states[1], overwrite=True)
    assert registered.location == states[1]

    catalog.files.write_new(states[0], catalog.files.read(states[1]))  # as where it could not be deleted
    catalog = later(catalog, 11 * MINUTE_MS)
    registered = named.register(catalog, TABLES, DEPARTURES, states[0], overwrite=True)
    assert registered.location == states[0]


def test_what_is_kept_for_the_past_is_registered_over_its_table_at_any_time(catalog: Catalog) -> None:
    table_in(catalog, properties={**SHORT_LOG, "icetower.as-of.metadata-keep-ms": str(HOUR_MS)})
    states = [change(catalog, number)[1] for number in range(4)]

    registered = named.register(catalog, TABLES, DEPARTURES, states[0], overwrite=True)

    assert registered.location == states[0]
