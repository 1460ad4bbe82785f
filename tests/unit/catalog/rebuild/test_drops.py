from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS
from app.catalog.context.listings import Page
from app.catalog.exports.export_files import dropped_line, header_line, last_line, read_export
from app.catalog.exports.writing import export_pointers
from app.catalog.namespaces import drop_namespace, update_namespace_properties
from app.catalog.past.dropped import Wanted, list_dropped, undrop
from app.catalog.rebuild.known_pointers import NamedBy
from app.catalog.rebuild.planning import Action, plan_rebuild
from app.database.backups import back_up
from app.database.pointers.pointer import PointerKind
from app.database.pointers.recoverable import Recovery
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import (
    START_MS,
    Clock,
    server_on,
    with_server,
)
from tests.builders.tables import (
    DEPARTURES,
    FLIGHTS,
    load_table,
    table_in,
    view_in,
)
from tests.unit.catalog.rebuild.rebuilding import WISH, commit, rebuild, sole

ARRIVALS = TableIdentifier(FLIGHTS, "arrivals")
WEEK_MS = 7 * 24 * 3_600_000


def test_purge_that_waited_deletes_nothing_after_a_rebuild(lost: Catalog, found: Catalog) -> None:
    """The table came back after the export, which still says that its files go at the end."""
    location = table_in(lost).location
    waiting = Recovery(WEEK_MS, purge=True)
    lost.pointers.drop(lost.warehouse.id, DEPARTURES, PointerKind.TABLE, lost.author(), recovery=waiting)
    export_pointers(lost.server, lost.warehouse)
    undrop(lost, Wanted(namespace=FLIGHTS, name=DEPARTURES.name))

    rebuild(found)
    (entry,) = list_dropped(found, Page()).items
    ended = found.server.dropped.end(entry.until_ms + 1)

    assert ended == 1
    assert not found.server.file_deletions.counts().get("queued")
    assert location is not None
    assert found.files.exists(location)


def test_what_could_come_back_still_can(lost: Catalog, found: Catalog) -> None:
    table_in(lost)
    commit(lost, 0)
    before = load_table(lost)
    view_in(lost, ARRIVALS)
    named.drop(lost, TABLES, DEPARTURES)
    named.drop(lost, VIEWS, ARRIVALS)
    update_namespace_properties(lost, FLIGHTS, [], {"owner": "anna"})
    drop_namespace(lost, FLIGHTS)
    export_pointers(lost.server, lost.warehouse)

    plan = rebuild(found)
    entries = list_dropped(found, Page()).items

    assert "undrop brings it back until" in str(
        next(item.reason for item in plan.items if item.kind == "table")
    )
    assert [(entry.kind, entry.dropped_ms, entry.until_ms, entry.principal) for entry in entries] == [
        (entry.kind, entry.dropped_ms, entry.until_ms, entry.principal)
        for entry in list_dropped(lost, Page()).items
    ]
    assert not plan_rebuild(found, WISH).has_changes
    undrop(found, Wanted(namespace=FLIGHTS))
    undrop(found, Wanted(namespace=FLIGHTS, name=ARRIVALS.name))
    undrop(found, Wanted(namespace=FLIGHTS, name=DEPARTURES.name))
    assert found.load_namespace(FLIGHTS) == {"owner": "anna"}
    assert load_table(found) == replace(before, registration=load_table(found).registration)
    commit(found, 1)
    # And its files count as long as it is dropped again.
    named.drop(found, TABLES, DEPARTURES)
    assert [entry.name for entry in list_dropped(found, Page()).items] == ["departures"]


def test_what_is_dropped_with_a_wrong_place_or_too_long_ago_is_not_noted(
    lost: Catalog, found: Catalog
) -> None:
    table_in(lost)
    other = table_in(lost, ARRIVALS)
    named.drop(lost, TABLES, DEPARTURES)
    location = export_pointers(lost.server, lost.warehouse)
    assert location is not None
    export = read_export(lost.files, location)
    drop, now_ms = export.dropped[0], found.now_ms()
    places = [other.location, Location("memory://elsewhere/m/1.json"), Location("memory://wh/gone.json")]
    wrong = [replace(drop, location=place, dropped_ms=drop.dropped_ms + n) for n, place in enumerate(places)]
    too_long_ago = replace(drop, until_ms=now_ms)
    header = header_line("wh", "memory://wh", now_ms, 1)
    lines = [header, *map(dropped_line, [*wrong, too_long_ago]), last_line(0, 0)]
    planted = Location(f"{location}.planted")
    found.files.write_new(planted, gzip.compress("".join(lines).encode()))

    assert plan_rebuild(found, replace(WISH, export=planted)).drops == []


def test_what_came_back_after_the_export_and_went_on_is_there(lost: Catalog, found: Catalog) -> None:
    called = TableIdentifier(FLIGHTS, "called so")
    table_in(lost)
    named.rename(lost, TABLES, DEPARTURES, called)
    named.drop(lost, TABLES, called)
    export_pointers(lost.server, lost.warehouse)
    undrop(lost, Wanted(namespace=FLIGHTS, name=called.name))
    lost = with_server(lost, now_ms=Clock(2 * START_MS))  # Exports have the time of the database.
    last = commit(lost, 1, called)

    plan = rebuild(found)

    assert (sole(plan).named_by, sole(plan).action, plan.drops) == (NamedBy.DROPPED, Action.ADD, [])
    assert load_table(found, called).location == last


def test_what_a_younger_export_says_otherwise_than_an_old_backup_is_said(
    lost: Catalog, tmp_path: Path, store: MemoryFiles
) -> None:
    for name in ("dropped", "purged", "renamed", "same"):
        table_in(lost, TableIdentifier(FLIGHTS, name))
    back_up(f"sqlite:///{tmp_path}/lost.db", tmp_path / "old.db")
    named.drop(lost, TABLES, TableIdentifier(FLIGHTS, "dropped"))
    lost.pointers.drop(
        lost.warehouse.id, TableIdentifier(FLIGHTS, "purged"), PointerKind.TABLE, lost.author()
    )
    named.rename(lost, TABLES, TableIdentifier(FLIGHTS, "renamed"), TableIdentifier(FLIGHTS, "new"))
    export_pointers(lost.server, lost.warehouse)
    old = replace(lost, server=server_on(f"sqlite:///{tmp_path}/old.db", store))

    plan = plan_rebuild(old, WISH)

    assert {item.action for item in plan.items} == {Action.KEEP}
    said = {item.identifier.name: str(item.reason) for item in plan.items}
    assert "drop it again" in said["dropped"]
    assert "may have been dropped since" in said["purged"]
    assert "calls it flights.new" in said["renamed"]
    assert said["same"] == "None"
    assert plan.drops == []
