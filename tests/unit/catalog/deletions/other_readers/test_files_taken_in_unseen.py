"""A commit whose files were not looked at, while files of another table are being deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.commits.door import land_all
from app.catalog.commits.table_commits import TableCommit
from app.catalog.commits.wishes import Wish
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.tables import NewTable, purge_table
from app.database.pointers.foreign_files import ANYWHERE
from app.engine.change.updates import AddSnapshot, SetProperties, Update
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.errors import FilesBeingDeleted
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import catalog_on, with_rules, with_server
from tests.builders.commits import commit_table
from tests.builders.queues import work_off_one
from tests.builders.table_files import NamingFiles, TableFiles
from tests.builders.tables import DEPARTURES, FLIGHTS, SCHEMA, append, load_table, table_in

OTHER = TableIdentifier(FLIGHTS, "other")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """Two tables; the guard of the second is off."""
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", MemoryFiles())
    table_in(catalog)
    properties = {"icetower.guard": "off"}
    named.create(catalog, NewTable(OTHER, SCHEMA, None, None, None, properties))
    metadata = load_table(catalog, DEPARTURES).metadata
    commit_table(catalog, DEPARTURES, [], append(TableFiles(catalog.files).snapshot(metadata, ["kept"])))
    return catalog


def while_purged(catalog: Catalog, act: Callable[[], object]) -> None:
    """Purge the first table, and do something in the middle of it."""
    done: list[str] = []

    def step(name: str) -> None:
        if name == "purged_content_deleted":
            act()
            done.append(name)

    purge_table(catalog, DEPARTURES)
    while work_off_one(with_server(catalog, step=step).server):
        pass
    assert done == ["purged_content_deleted"]


def snapshot(catalog: Catalog, *names: str) -> Snapshot:
    return NamingFiles(catalog.files).snapshot(load_table(catalog, OTHER).metadata, list(names))


def data_file(catalog: Catalog, name: str) -> str:
    return TableFiles.data_path(load_table(catalog, DEPARTURES).metadata, name)


def noted(catalog: Catalog) -> set[str]:
    return set(catalog.server.foreign_places.of_table(catalog.load(TABLES, OTHER).id))


def test_files_that_are_being_deleted_are_not_taken_in_though_the_guard_is_off(catalog: Catalog) -> None:
    added = append(snapshot(catalog, f"@{data_file(catalog, 'kept')}"))

    def act() -> None:
        with pytest.raises(FilesBeingDeleted, match=r"the purge of flights\.departures, which has begun"):
            commit_table(catalog, OTHER, [], added)

    while_purged(catalog, act)

    assert load_table(catalog, OTHER).metadata.snapshots == ()
    commit_table(catalog, OTHER, [], added)
    assert noted(catalog) == {ANYWHERE}


def test_what_came_together_with_a_commit_that_takes_such_files_in_lands(catalog: Catalog) -> None:
    taking = append(snapshot(catalog, f"@{data_file(catalog, 'kept')}"))
    own: list[Update] = [SetProperties(updates={"own": "set"})]
    wishes = [Wish(catalog, [TableCommit(OTHER, [], updates)]) for updates in (taking, own)]

    while_purged(catalog, lambda: land_all(wishes))

    with pytest.raises(FilesBeingDeleted):
        wishes[0].results()
    assert wishes[1].results()[0].loaded.metadata.properties["own"] == "set"
    assert load_table(catalog, OTHER).metadata.snapshots == ()


def test_own_files_land_meanwhile_and_nothing_is_noted(catalog: Catalog) -> None:
    added = append(snapshot(catalog, "own"))

    while_purged(catalog, lambda: commit_table(catalog, OTHER, [], added))

    assert len(load_table(catalog, OTHER).metadata.snapshots) == 1
    assert noted(catalog) == set(), "it was looked at"


def test_a_manifest_list_there_is_known_without_looking(catalog: Catalog) -> None:
    blind = with_rules(catalog, guard_read_bytes=0)
    own = snapshot(catalog, "own")
    folder = load_table(catalog, DEPARTURES).metadata.location
    where = Location(f"{folder}/metadata/snap-9.avro")
    catalog.files.write_new(where, catalog.files.read(Location(str(own.manifest_list))))
    moved = own.replace(manifest_list=where)

    def act() -> None:
        with pytest.raises(FilesBeingDeleted, match="metadata"):
            commit_table(blind, OTHER, [], append(moved))

    while_purged(catalog, act)


def test_what_cannot_be_looked_at_lands_and_is_looked_at_before_the_next_batch(catalog: Catalog) -> None:
    blind = with_rules(catalog, guard_read_bytes=0)
    added = append(snapshot(catalog, f"@{data_file(catalog, 'kept')}"))

    while_purged(catalog, lambda: commit_table(blind, OTHER, [], added))

    assert len(load_table(catalog, OTHER).metadata.snapshots) == 1


def test_nothing_is_read_while_nothing_is_deleted(catalog: Catalog) -> None:
    added = append(snapshot(catalog, "own"))
    (snapshot_id,) = [update.snapshot.snapshot_id for update in added if isinstance(update, AddSnapshot)]
    purge_table(catalog, DEPARTURES)

    commit_table(catalog, OTHER, [], added)

    assert load_table(catalog, OTHER).metadata.current_snapshot_id == snapshot_id
    assert noted(catalog) == {ANYWHERE}
