"""Which export of names counts in a rebuild, and which are passed over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.exports.export_files import Export, export_folder, read_export
from app.catalog.exports.writing import export_pointers
from app.catalog.rebuild import known_pointers
from app.catalog.rebuild.planning import Action, plan_rebuild
from app.database.backups import back_up
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.errors import InvalidRequest
from app.fileio.files import FileIO
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import catalog_on, new_warehouse, server_on, with_rules
from tests.builders.tables import DEPARTURES, FLIGHTS, namespace_in, table_in
from tests.unit.catalog.rebuild.rebuilding import WISH, commit, sole

ARRIVALS = TableIdentifier(FLIGHTS, "arrivals")


def test_an_export_that_the_database_has_seen_is_not_used(lost: Catalog) -> None:
    table_in(lost)
    export_pointers(lost.server, lost.warehouse)

    assert plan_rebuild(lost, WISH).export is None


def test_what_an_old_backup_exports_does_not_hide_what_was_exported_after_the_backup(
    lost: Catalog, tmp_path: Path, store: MemoryFiles
) -> None:
    table_in(lost)
    back_up(f"sqlite:///{tmp_path}/lost.db", tmp_path / "old.db")
    renamed = TableIdentifier(FLIGHTS, "renamed")
    table_in(lost, ARRIVALS)
    named.rename(lost, TABLES, ARRIVALS, renamed)
    for number in range(9):
        commit(lost, number)
    newest = export_pointers(lost.server, lost.warehouse)
    old = replace(lost, server=server_on(f"sqlite:///{tmp_path}/old.db", store))
    old = with_rules(old, pointer_exports_kept=2)

    # A server ran on the backup for some hours before the rebuild.
    for number in range(3):
        named.rename(old, TABLES, DEPARTURES, TableIdentifier(FLIGHTS, f"other{number}"))
        export_pointers(old.server, old.warehouse)
        named.rename(old, TABLES, TableIdentifier(FLIGHTS, f"other{number}"), DEPARTURES)
    plan = plan_rebuild(old, WISH)

    assert plan.export == newest
    assert {item.identifier for item in plan.of(Action.ADD)} == {renamed}


def test_older_exports_of_another_database_do_not_count_after_one_of_this_database(
    lost: Catalog, found: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    table_in(lost)
    of_lost = export_pointers(lost.server, lost.warehouse)
    table_in(found, ARRIVALS)
    export_pointers(found.server, found.warehouse)

    assert plan_rebuild(found, WISH).export is None

    assert f"if this one was not whole then, give the newest of them with --export: {of_lost}" in caplog.text


def test_of_own_exports_that_the_database_has_all_of_one_is_read_as_a_whole(
    lost: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_in(lost)
    for number in range(3):
        commit(lost, number)
        assert export_pointers(lost.server, lost.warehouse) is not None
    read: list[Location] = []

    def noted(files: FileIO, location: Location) -> Export:
        read.append(location)
        return read_export(files, location)

    monkeypatch.setattr(known_pointers, "read_export", noted)

    assert plan_rebuild(lost, WISH).export is None
    assert len(read) == 1


def test_an_export_of_a_warehouse_elsewhere_counts_for_nothing(
    lost: Catalog, found: Catalog, store: MemoryFiles
) -> None:
    table_in(lost)
    # A table of a warehouse beside it, whose export was copied into its folder together with other files.
    beside = new_warehouse(lost.server, "beside", "memory://beside")
    table_in(beside, ARRIVALS)
    named.drop(beside, TABLES, ARRIVALS)
    of_beside = export_pointers(beside.server, beside.warehouse)
    assert of_beside is not None
    folder = export_folder(lost.warehouse.root_location, lost.warehouse.name)
    store.write_new(Location(f"{folder}/{of_beside.rpartition('/')[2]}"), store.read(of_beside))

    plan = plan_rebuild(found, WISH)
    assert (plan.export, plan.drops, sole(plan).action) == (None, [], Action.ADD)
    with pytest.raises(InvalidRequest, match="is of warehouse beside at memory://beside, and not of one at"):
        plan_rebuild(found, replace(WISH, export=of_beside))


def test_what_was_handed_to_another_catalog_does_not_come_back_by_the_exports_of_that_one(
    lost: Catalog, found: Catalog
) -> None:
    table = table_in(lost)
    export_pointers(lost.server, lost.warehouse)
    named.unregister(lost, TABLES, DEPARTURES)
    _take_over(found, table.location)
    of_found = export_pointers(found.server, found.warehouse)

    for wish in (WISH, replace(WISH, export=of_found)):
        plan = plan_rebuild(lost, wish)
        assert plan.export == of_found
        assert (sole(plan).action, sole(plan).identifier) == (Action.LEAVE, DEPARTURES)
        assert "another catalog may have it" in (sole(plan).reason or "")

    assert sole(plan_rebuild(lost, replace(WISH, takes_dropped=True))).action is Action.ADD


def test_exports_of_a_catalog_beside_say_nothing_of_this_one(
    lost: Catalog, found: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    table = table_in(lost)
    export_pointers(lost.server, lost.warehouse)
    named.unregister(lost, TABLES, DEPARTURES)
    _take_over(found, table.location)
    export_pointers(found.server, found.warehouse)
    table_in(lost, ARRIVALS)
    newest = export_pointers(lost.server, lost.warehouse)

    plan = plan_rebuild(found, WISH)

    assert plan.export is None
    assert f"are passed over. To take names from the newest of them, give it with --export: {newest}" in (
        " ".join(caplog.text.split())
    )
    (given,) = (
        item
        for item in plan_rebuild(found, replace(WISH, export=newest)).items
        if item.identifier == DEPARTURES
    )
    assert (given.action, given.reason) == (Action.KEEP, None)


def test_a_lost_database_is_told_of_a_catalog_beside_that_exported_last(
    lost: Catalog, found: Catalog, tmp_path: Path, store: MemoryFiles, caplog: pytest.LogCaptureFixture
) -> None:
    table = table_in(lost)
    export_pointers(lost.server, lost.warehouse)
    named.unregister(lost, TABLES, DEPARTURES)
    _take_over(found, table.location)
    of_found = export_pointers(found.server, found.warehouse)
    newest = export_pointers(lost.server, lost.warehouse)
    anew = catalog_on(f"sqlite:///{tmp_path}/anew.db", store)

    assert plan_rebuild(anew, WISH).export == newest

    assert f"give the newest of the other one with --export: {of_found}" in caplog.text
    assert sole(plan_rebuild(anew, replace(WISH, export=of_found))).action is Action.ADD


def _take_over(catalog: Catalog, location: Location | None) -> None:
    assert location is not None
    namespace_in(catalog)
    named.register(catalog, TABLES, DEPARTURES, location)
