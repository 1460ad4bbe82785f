from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.listings import Page
from app.catalog.exports.writing import export_pointers
from app.catalog.past.dropped import Wanted, list_dropped, undrop
from app.catalog.rebuild.known_pointers import NamedBy
from app.catalog.rebuild.planning import Action, plan_rebuild
from app.database.backups import back_up
from app.database.pointers.pointer import PointerKind
from app.database.pointers.recoverable import Recovery
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.fileio.memory import MemoryFiles
from app.recoveries import UndropRefused
from tests.builders.catalogs import START_MS, Clock, catalog_on, server_on, with_server
from tests.builders.tables import DEPARTURES, FLIGHTS, load_table, namespace_in, table_in
from tests.unit.catalog.rebuild.rebuilding import WISH, commit, rebuild, sole

OTHER = TableIdentifier(FLIGHTS, "other")
DAY_MS = 24 * 3_600_000


@pytest.fixture
def old(lost: Catalog, tmp_path: Path, store: MemoryFiles) -> Catalog:
    """A backup from when a table was dropped, and its purge waited."""
    table_in(lost, OTHER)
    table_in(lost)
    waiting = Recovery(DAY_MS, purge=True)
    lost.pointers.drop(lost.warehouse.id, DEPARTURES, PointerKind.TABLE, lost.author(), recovery=waiting)
    back_up(f"sqlite:///{tmp_path}/lost.db", tmp_path / "old.db")
    return replace(lost, server=server_on(f"sqlite:///{tmp_path}/old.db", store))


def test_table_that_came_back_after_the_backup_and_went_on_is_there(lost: Catalog, old: Catalog) -> None:
    undrop(lost, Wanted(namespace=FLIGHTS, name=DEPARTURES.name))
    last = commit(with_server(lost, now_ms=Clock(START_MS + 60_000)), 1)

    plan = rebuild(old)

    (item,) = plan.of(Action.ADD)
    assert (item.identifier, item.named_by) == (DEPARTURES, NamedBy.DROPPED)
    assert load_table(old, DEPARTURES).location == last
    with pytest.raises(UndropRefused, match="its files are in use"):
        undrop(old, Wanted(namespace=FLIGHTS, name=DEPARTURES.name))


def test_purge_that_waited_at_the_backup_is_called_off(lost: Catalog, old: Catalog) -> None:
    undrop(lost, Wanted(namespace=FLIGHTS, name=DEPARTURES.name))
    commit(lost, 1, OTHER)

    plan = rebuild(old)
    (entry,) = list_dropped(old, Page()).items
    ended = old.server.dropped.end(entry.until_ms + 1)

    assert (plan.waiting_purges, ended) == (1, 1)
    assert not old.server.file_deletions.counts().get("queued")


def test_table_that_stayed_dropped_is_left(old: Catalog) -> None:
    plan = rebuild(old)

    (item,) = plan.of(Action.LEAVE)
    assert (item.identifier, item.reason) == (DEPARTURES, "it was dropped; its files stayed")
    assert not plan.has_changes


@pytest.mark.parametrize("was_elsewhere", [False, True], ids=["always here", "it was elsewhere"])
def test_commits_that_a_database_has_gone_on_without_are_named(
    lost: Catalog, tmp_path: Path, store: MemoryFiles, *, was_elsewhere: bool
) -> None:
    """A server went on with the backup before it was brought forward."""
    table_in(lost)
    commit(lost, 1)
    if was_elsewhere:
        for before, after in ((DEPARTURES, OTHER), (OTHER, DEPARTURES)):
            left = named.unregister(lost, TABLES, before)
            named.register(lost, TABLES, after, left.location or "")
            commit(lost, 5, after)
    back_up(f"sqlite:///{tmp_path}/lost.db", tmp_path / "old.db")
    old = replace(lost, server=server_on(f"sqlite:///{tmp_path}/old.db", store))
    last = [commit(lost, number) for number in (2, 3)][-1]
    here = commit(old, 4)

    item = sole(rebuild(old))

    assert (item.action, item.location, item.others) == (Action.KEEP, here, (last,))
    assert f"commits up to {last} are not in it" in (item.reason or "")


def test_a_file_that_lost_a_race_is_not_named_as_a_commit(lost: Catalog) -> None:
    table_in(lost)
    commit(lost, 1)
    last = commit(lost, 2)
    lost.files.write_new(
        Location(last.replace("00002-", "00002-1")), lost.files.read(last).replace(b'"2"', b'"3"')
    )
    commit(lost, 3)

    item = sole(rebuild(lost))

    assert (item.action, item.reason, item.others) == (Action.KEEP, None, ())


def test_what_another_catalog_has_gone_on_with_since_its_drop_stays_dropped(
    lost: Catalog, found: Catalog
) -> None:
    location = table_in(lost).location
    assert location is not None
    named.drop(lost, TABLES, DEPARTURES)
    namespace_in(found)
    named.register(found, TABLES, DEPARTURES, location)
    newest = commit(found, 1)

    item = sole(rebuild(lost))

    assert item.action is Action.LEAVE
    assert item.reason == f"it was dropped, and {newest} was written by another catalog, which may have it"


def test_what_no_catalog_of_ours_has_gone_on_with_since_its_drop_stays_dropped(lost: Catalog) -> None:
    """Other catalogs give files other names, also the one that the table was registered at."""
    first = table_in(lost).location
    assert first is not None
    named.unregister(lost, TABLES, DEPARTURES)
    content = json.loads(lost.files.read(first))
    theirs = list[Location]()
    for number in (1, 2):
        log = [{"metadata-file": each, "timestamp-ms": START_MS} for each in (first, *theirs)]
        changes = {"metadata-log": log, "last-updated-ms": START_MS + number * 3_600_000}
        name = f"{number:05d}-11111111-1111-4111-8111-11111111111{number}.metadata.json"
        theirs.append(Location(f"{first.rpartition('/')[0]}/{name}"))
        lost.files.write_new(theirs[-1], json.dumps(content | changes).encode())
    named.register(lost, TABLES, DEPARTURES, theirs[0])
    named.drop(lost, TABLES, DEPARTURES)

    item = sole(rebuild(lost))

    assert item.action is Action.LEAVE
    assert item.reason == f"it was dropped, and {theirs[1]} was written by another catalog, which may have it"


def test_old_backup_does_not_follow_another_catalog_to_its_commits(
    lost: Catalog, found: Catalog, tmp_path: Path, store: MemoryFiles
) -> None:
    table_in(lost)
    seen = commit(lost, 1)
    back_up(f"sqlite:///{tmp_path}/lost.db", tmp_path / "old.db")
    old = replace(lost, server=server_on(f"sqlite:///{tmp_path}/old.db", store))
    named.unregister(lost, TABLES, DEPARTURES)
    namespace_in(found)
    named.register(found, TABLES, DEPARTURES, seen)
    newest = commit(found, 2)

    item = sole(rebuild(old))

    assert (item.action, item.seen, item.location) == (Action.LEAVE, seen, newest)
    assert f"{newest} was written by another catalog" in (item.reason or "")
    assert sole(plan_rebuild(old, replace(WISH, takes_likely=True))).action is Action.ADVANCE

    # It came back, and has gone on here.
    named.register(lost, TABLES, DEPARTURES, newest)
    commit(lost, 3)
    assert sole(plan_rebuild(old, WISH)).action is Action.ADVANCE


def test_new_table_of_another_catalog_is_said_to_be_one(lost: Catalog, found: Catalog) -> None:
    table_in(lost)
    commit(lost, 1)
    arrivals = TableIdentifier(FLIGHTS, "arrivals")
    table_in(found, arrivals)

    (item,) = plan_rebuild(lost, WISH).of(Action.ADD)

    assert (item.identifier, "was written by another catalog" in (item.reason or "")) == (arrivals, True)


def test_table_that_was_handed_over_after_the_last_export_is_left(
    lost: Catalog, found: Catalog, tmp_path: Path, store: MemoryFiles
) -> None:
    table_in(lost)
    seen = commit(lost, 1)
    export_pointers(lost.server, lost.warehouse)
    named.unregister(lost, TABLES, DEPARTURES)
    namespace_in(found)
    named.register(found, TABLES, DEPARTURES, seen)
    newest = commit(found, 2)
    new = catalog_on(f"sqlite:///{tmp_path}/new.db", store)

    item = sole(plan_rebuild(new, WISH))

    assert (item.action, item.named_by, item.location) == (Action.LEAVE, NamedBy.EXPORT, newest)
    assert f"{newest} was written by another catalog" in (item.reason or "")
    assert sole(plan_rebuild(new, replace(WISH, takes_likely=True))).action is Action.ADD
