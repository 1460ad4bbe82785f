"""A purge that cannot know which files the table had says so, and deletes none."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.tables import purge_table
from app.engine.model.ids import Location
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import catalog_on
from tests.builders.commits import commit_table
from tests.builders.queues import let_queue_age, work_off_one
from tests.builders.table_files import NamingFiles
from tests.builders.tables import DEPARTURES, append, load_table, table_in
from tests.unit.catalog.commits.interference import ARRIVALS
from tests.unit.catalog.context.test_absent_stores import LATER_MS, Killed, killed_at


@pytest.fixture
def store() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def catalog(tmp_path: Path, store: MemoryFiles) -> Catalog:
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", store)
    table_in(catalog)
    snapshot = NamingFiles(store).snapshot(load_table(catalog).metadata, ["a", "b"])
    commit_table(catalog, DEPARTURES, [], append(snapshot))
    return catalog


@pytest.mark.parametrize("has_begun", [False, True], ids=["not begun", "broken off"])
def test_a_purge_whose_metadata_file_alone_is_gone_fails_and_shows_it(
    catalog: Catalog, store: MemoryFiles, *, has_begun: bool
) -> None:
    last = load_table(catalog).location
    assert last is not None
    purge_table(catalog, DEPARTURES)
    if has_begun:
        with pytest.raises(Killed):
            work_off_one(killed_at(catalog, "purged_content_deleted").server)
        let_queue_age(catalog.server.file_deletions, LATER_MS)
    store.delete(last)
    stay = set(store._files)

    assert work_off_one(catalog.server)

    (shown,) = catalog.server.file_deletions.waiting(catalog.warehouse.id, most=9)
    assert shown.is_given_up
    assert f"metadata file {last} is gone, so it is not known which files the table had" in shown.error
    assert set(store._files) == stay


@pytest.mark.parametrize(
    "strays", [(), ("metadata/of-somebody.avro",)], ids=["nothing is left", "a stray is left"]
)
def test_a_table_with_two_names_that_are_both_purged_is_purged_once(
    catalog: Catalog, store: MemoryFiles, strays: tuple[str, ...]
) -> None:
    table = load_table(catalog)
    assert table.location is not None
    for stray in strays:
        store.write_new(Location(f"{table.metadata.location}/{stray}"), b"of a client")
    named.register(catalog, TABLES, ARRIVALS, table.location)
    purge_table(catalog, DEPARTURES)
    purge_table(catalog, ARRIVALS)

    while work_off_one(catalog.server):
        pass

    assert catalog.server.file_deletions.counts() == {"done": 2}
    assert len(store._files) == len(strays)
