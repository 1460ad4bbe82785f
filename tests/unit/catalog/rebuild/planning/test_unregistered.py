from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.exports.export_files import read_export
from app.catalog.exports.writing import export_pointers
from app.catalog.named import unregister
from app.catalog.namespaces import drop_namespace
from app.catalog.rebuild.planning import Action, RebuildWish
from app.database.backups import back_up
from app.engine.change.updates import RemoveProperties, SetProperties
from app.engine.model.ids import Location
from app.engine.properties.own_properties import MOVED_TO
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import START_MS, Clock, catalog_on, server_on, with_server
from tests.builders.tables import DEPARTURES, FLIGHTS, commit_to, load_table, table_in
from tests.unit.catalog.rebuild.rebuilding import WISH, commit, rebuild, sole


@pytest.fixture
def backup(lost: Catalog, tmp_path: Path, store: MemoryFiles) -> Catalog:
    """A backup of a catalog that has then handed its table to another one, with an export from after that."""
    table_in(lost)
    back_up(f"sqlite:///{tmp_path}/lost.db", tmp_path / "old.db")
    unregister(lost, TABLES, DEPARTURES)
    export_pointers(lost.server, lost.warehouse)
    return replace(lost, server=server_on(f"sqlite:///{tmp_path}/old.db", store))


@pytest.fixture
def newest(backup: Catalog, tmp_path: Path, store: MemoryFiles) -> Location:
    """Where the table is in the other catalog, after a commit there."""
    other = catalog_on(f"sqlite:///{tmp_path}/other.db", store)
    other = with_server(other, now_ms=Clock(2 * START_MS))  # Exports have the time of the database.
    other.namespaces.create(other.warehouse.id, FLIGHTS, {}, other.author())
    last = load_table(backup, DEPARTURES).location
    assert last is not None
    named.register(other, TABLES, DEPARTURES, last)
    return commit(other, 1)


def test_table_that_was_handed_to_another_catalog_stays_there(found: Catalog, newest: Location) -> None:
    item = sole(rebuild(found))
    assert (item.action, item.reason) == (Action.LEAVE, "it was unregistered: another catalog has it")

    assert sole(rebuild(found, RebuildWish(takes_dropped=True))).action is Action.ADD
    assert load_table(found, DEPARTURES).location == newest


def test_old_backup_says_which_of_its_tables_another_catalog_has(backup: Catalog, newest: Location) -> None:
    item = sole(rebuild(backup))

    assert item.location == newest
    assert "another catalog has it. Unregister it again" in (item.reason or "")


def test_what_was_let_go_after_it_had_come_back_is_left(lost: Catalog) -> None:
    location = table_in(lost).location
    assert location is not None
    named.drop(lost, TABLES, DEPARTURES)
    named.register(lost, TABLES, DEPARTURES, location)
    newest = commit(lost, 1)
    unregister(lost, TABLES, DEPARTURES)

    item = sole(rebuild(lost))

    assert (item.action, item.location) == (Action.LEAVE, newest)
    assert lost.find(DEPARTURES) is None


def test_table_that_has_been_registered_again_is_known_by_its_name(lost: Catalog, found: Catalog) -> None:
    location = table_in(lost).location
    assert location is not None
    unregister(lost, TABLES, DEPARTURES)
    named.register(lost, TABLES, DEPARTURES, location)
    export = export_pointers(lost.server, lost.warehouse)
    assert export is not None

    assert read_export(lost.files, export).unregistered == set()
    assert sole(rebuild(found, WISH)).action is Action.ADD


def test_an_export_is_made_also_when_all_has_been_handed_over(lost: Catalog, found: Catalog) -> None:
    table_in(lost)
    export_pointers(lost.server, lost.warehouse)
    unregister(lost, TABLES, DEPARTURES)
    drop_namespace(lost, FLIGHTS)
    export_pointers(lost.server, lost.warehouse)

    assert sole(rebuild(found)).action is Action.LEAVE


@pytest.mark.parametrize("known_by", ["database", "export"])
def test_fenced_table_does_not_follow_the_catalog_that_it_moved_to(
    lost: Catalog, found: Catalog, tmp_path: Path, store: MemoryFiles, known_by: str
) -> None:
    table_in(lost)
    fenced = commit_to(lost, SetProperties(updates={MOVED_TO: "there"})).location
    assert fenced is not None
    export_pointers(lost.server, lost.warehouse)
    other = catalog_on(f"sqlite:///{tmp_path}/other.db", store)
    other.namespaces.create(other.warehouse.id, FLIGHTS, {}, other.author())
    named.register(other, TABLES, DEPARTURES, fenced)
    commit_to(other, RemoveProperties(removals=(MOVED_TO,)))
    last = commit(other, 1)

    item = sole(rebuild(lost if known_by == "database" else found))

    assert item.reason == "it was moved to there, where others have committed since"
    assert load_table(lost if known_by == "database" else found, DEPARTURES).location == fenced
    assert sole(rebuild(other)).location == last
