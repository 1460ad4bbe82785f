from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import VIEWS
from app.catalog.exports.writing import export_pointers
from app.catalog.rebuild.planning import Action
from app.catalog.views import replace_view
from app.database.backups import back_up
from app.engine.change.updates import (
    AddViewVersion,
    RemoveProperties,
    SetCurrentViewVersion,
    SetProperties,
    Update,
)
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.properties.own_properties import MOVED_TO
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import START_MS, catalog_on, server_on, with_server
from tests.builders.tables import DEPARTURES, FLIGHTS, view_in, view_version
from tests.unit.catalog.rebuild.rebuilding import WISH, rebuild, sole

ARRIVALS = TableIdentifier(FLIGHTS, "arrivals")


def commit(catalog: Catalog, *updates: Update, identifier: TableIdentifier = DEPARTURES) -> Location:
    location = replace_view(catalog, identifier, (), updates).location
    assert location is not None
    return location


def query(
    catalog: Catalog, sql: str, identifier: TableIdentifier = DEPARTURES, at_ms: int = START_MS
) -> Location:
    """Replace the query of a view."""
    version = view_version(sql).replace(timestamp_ms=at_ms)
    now = SetCurrentViewVersion(view_version_id=-1)
    return commit(catalog, AddViewVersion(view_version=version), now, identifier=identifier)


def set_property(catalog: Catalog, name: str, value: str) -> Location:
    return commit(catalog, SetProperties(updates={name: value}))


def place(catalog: Catalog, identifier: TableIdentifier = DEPARTURES) -> Location | None:
    pointer = catalog.find(identifier)
    return pointer.metadata_location if pointer else None


def test_view_is_where_the_export_says_after_changes_without_versions(lost: Catalog, found: Catalog) -> None:
    view_in(lost)
    set_property(lost, "a", "1")
    newest = set_property(lost, "a", "2")
    export_pointers(lost.server, lost.warehouse)

    item = sole(rebuild(found))

    assert (item.action, item.reason, place(found)) == (Action.ADD, None, newest)


def test_view_that_keeps_one_version_is_where_the_export_says(lost: Catalog, found: Catalog) -> None:
    view_in(lost)
    set_property(lost, "version.history.num-entries", "1")
    query(lost, "SELECT 2")
    newest = query(lost, "SELECT 3")
    export_pointers(lost.server, lost.warehouse)

    rebuild(found)

    assert place(found) == newest


def test_the_way_back_of_a_view_is_remembered_by_the_export(lost: Catalog, found: Catalog) -> None:
    first = view_in(lost).location
    assert first is not None
    query(lost, "SELECT 2")
    named.register(lost, VIEWS, DEPARTURES, first, overwrite=True)
    export_pointers(lost.server, lost.warehouse)

    rebuild(found)

    assert place(found) == first


def test_view_goes_on_from_where_it_was_set_back_to(lost: Catalog, found: Catalog) -> None:
    first = view_in(lost).location
    assert first is not None
    query(lost, "SELECT 2")
    named.register(lost, VIEWS, DEPARTURES, first, overwrite=True)
    export_pointers(lost.server, lost.warehouse)
    newest = query(lost, "SELECT 3")

    rebuild(found)

    assert place(found) == newest


def test_two_names_of_one_view_go_their_own_ways(lost: Catalog, found: Catalog) -> None:
    first = view_in(lost).location
    assert first is not None
    named.register(lost, VIEWS, ARRIVALS, first)
    query(lost, "SELECT 2", at_ms=START_MS + 1)
    query(lost, "SELECT 3", ARRIVALS, START_MS + 2)
    export_pointers(lost.server, lost.warehouse)
    newest = [query(lost, "SELECT 4"), query(lost, "SELECT 5", ARRIVALS)]

    rebuild(found)

    assert [place(found), place(found, ARRIVALS)] == newest


def test_later_changes_without_versions_are_likely_only(lost: Catalog, found: Catalog) -> None:
    view_in(lost)
    export_pointers(lost.server, lost.warehouse)
    newest = set_property(lost, "a", "1")

    assert sole(rebuild(found)).action is Action.LEAVE
    rebuild(found, replace(WISH, takes_likely=True))
    assert place(found) == newest


def test_view_that_is_younger_than_the_export_comes_back(lost: Catalog, found: Catalog) -> None:
    now_ms = lost.server.pointer_exports.now_ms  # An export has the database's time.
    lost = with_server(lost, now_ms=now_ms)
    view_in(lost, ARRIVALS)
    export_pointers(lost.server, lost.warehouse)
    view_in(lost)
    newest = query(lost, "SELECT 2", at_ms=now_ms() + 60_000)

    rebuild(found)

    assert place(found) == newest


@pytest.mark.parametrize("known_by", ["database", "export"])
def test_fenced_view_does_not_follow_the_catalog_that_it_moved_to(
    lost: Catalog, found: Catalog, tmp_path: Path, store: MemoryFiles, known_by: str
) -> None:
    view_in(lost)
    fenced = set_property(lost, MOVED_TO, "there")
    export_pointers(lost.server, lost.warehouse)
    other = catalog_on(f"sqlite:///{tmp_path}/other.db", store)
    other.namespaces.create(other.warehouse.id, FLIGHTS, {}, other.author())
    named.register(other, VIEWS, DEPARTURES, fenced)
    commit(other, RemoveProperties(removals=(MOVED_TO,)))
    last = query(other, "SELECT 2")
    catalog = lost if known_by == "database" else found

    item = sole(rebuild(catalog))

    assert item.reason == "it was moved to there, where others have committed since"
    assert place(catalog) == fenced
    assert sole(rebuild(other)).location == last


@pytest.mark.parametrize("let_go", [named.drop, named.unregister])
@pytest.mark.parametrize("known_by", ["database", "export"])
def test_view_that_another_catalog_took_over_is_left_to_it(
    lost: Catalog,
    found: Catalog,
    tmp_path: Path,
    store: MemoryFiles,
    known_by: str,
    let_go: Callable[..., object],
) -> None:
    lost = with_server(lost, now_ms=lost.server.pointer_exports.now_ms)
    location = view_in(lost).location
    assert location is not None
    view_in(lost, ARRIVALS)
    let_go(lost, VIEWS, DEPARTURES)
    export_pointers(lost.server, lost.warehouse)
    other = catalog_on(f"sqlite:///{tmp_path}/other.db", store)
    other = with_server(other, now_ms=lost.server.now_ms)
    other.namespaces.create(other.warehouse.id, FLIGHTS, {}, other.author())
    named.register(other, VIEWS, DEPARTURES, location)
    query(other, "SELECT 2", at_ms=lost.server.now_ms() + 60_000)
    catalog = lost if known_by == "database" else found

    (item,) = rebuild(catalog).of(Action.LEAVE)

    assert (item.identifier, place(catalog)) == (DEPARTURES, None)
    assert re.search("dropped|unregistered", item.reason or "")


def test_versions_that_a_database_has_gone_on_without_are_named(
    lost: Catalog, tmp_path: Path, store: MemoryFiles
) -> None:
    view_in(lost)
    back_up(f"sqlite:///{tmp_path}/lost.db", tmp_path / "old.db")
    old = replace(lost, server=server_on(f"sqlite:///{tmp_path}/old.db", store))
    last = [query(lost, f"SELECT {number}", at_ms=START_MS + number) for number in (2, 3)][-1]
    here = query(old, "SELECT 4", at_ms=START_MS + 4)

    item = sole(rebuild(old))

    assert (item.action, item.location, item.others) == (Action.KEEP, here, (last,))
    assert f"commits up to {last} are not in it" in (item.reason or "")
