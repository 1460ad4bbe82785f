"""Manifests, lists and statistics that no commit landed are collected in the end, and no others."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.places.file_names import content_mark, new_content_uuid
from app.catalog.deletions.sweeps import sweep_one
from app.catalog.tables import NewTable, purge_table
from app.catalog.upkeep.manifest_rewrites import ManifestRewriteRequest, rewrite_manifests
from app.catalog.upkeep.partition_statistics import write_statistics_of_partitions
from app.database.schema.rows import file_deletions, metadata_sweeps, pointer_history, pointers
from app.engine.change.updates import RemoveSnapshots, SetProperties
from app.engine.manifest_rewrite.wishes import RewriteWish
from app.engine.model.ids import Location
from app.formats.metadata.own_names import is_own_content
from tests.builders.catalogs import catalog_on
from tests.builders.partitioned_files import PartitionedFiles
from tests.builders.queues import work_off_one
from tests.builders.tables import DEPARTURES, SCHEMA, commit_to, load_table
from tests.unit.catalog.deletions.sweeps.test_metadata_files import (
    DAY_MS,
    AgedFiles,
    execute,
    let_age,
    orphan,
)

LAST_COMMIT_MS = DAY_MS * 3 // 2
NAMES = ("{}-m0.avro", "snap-4711-1-{}.avro", "partition-stats-4711-{}.parquet")


@pytest.fixture
def store() -> AgedFiles:
    return AgedFiles()


@pytest.fixture
def files(tmp_path: Path, store: AgedFiles) -> PartitionedFiles:
    """A table of which the server has written manifests, lists and statistics, made ten days ago."""
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", store)
    made = PartitionedFiles.made(catalog)
    made.fill(4)
    rewrite_manifests(catalog, DEPARTURES, ManifestRewriteRequest(RewriteWish(rewrites_all=True)))
    write_statistics_of_partitions(catalog, DEPARTURES, None)
    pass_time(catalog, store)
    return made


def pass_time(catalog: Catalog, store: AgedFiles) -> None:
    """Make the table look ten days old, its files three days, and its last commit one and a half."""
    let_age(catalog, 10 * DAY_MS)
    let_age(catalog, LAST_COMMIT_MS, pointers)
    now_ms = catalog.server.metadata_sweeps.now_ms()
    later = pointer_history.c.event != "created"
    execute(catalog, pointer_history.update().where(later).values(at_ms=now_ms - LAST_COMMIT_MS))
    execute(catalog, metadata_sweeps.delete())
    for location in list(store._files):
        store.age(location, 3 * DAY_MS)


def left(
    catalog: Catalog, name: str, folder: str | None = None, of: str | None = None, age_ms: int = 2 * DAY_MS
) -> Location:
    """Write a file as a killed server would have left it."""
    metadata = load_table(catalog).metadata
    own = f"{metadata.location}/metadata"
    location = Location(
        f"{own}/{name.format(new_content_uuid(catalog.server, of or metadata.uuid, folder or own))}"
    )
    store = catalog.files
    assert isinstance(store, AgedFiles)
    store.write_new(location, b"never read")
    store.age(location, age_ms)
    return location


def test_what_nothing_reaches_goes_and_nothing_else(files: PartitionedFiles, store: AgedFiles) -> None:
    catalog = files.catalog
    stay = set(store._files)
    gone = {left(catalog, name) for name in NAMES}
    stay |= {
        left(catalog, NAMES[0], age_ms=0),
        left(catalog, NAMES[0], age_ms=LAST_COMMIT_MS - 3_600_000),  # younger than the last commit
        left(catalog, NAMES[0], age_ms=12 * DAY_MS),  # older than the table
        left(
            catalog, NAMES[0], folder="memory://warehouse/elsewhere/metadata"
        ),  # the copy of another table's
        left(catalog, NAMES[0], of=str(uuid.uuid4())),  # of a table that lay there before
        left(catalog, NAMES[0].format(uuid.uuid4())),
        left(catalog, "{}-m0.avro.part"),
        left(catalog, "{}-m1.avro"),
    }

    assert sweep_one(catalog.server)

    assert set(store._files) == stay
    assert gone.isdisjoint(stay)


def test_what_servers_write_has_their_mark_in_its_name(files: PartitionedFiles, store: AgedFiles) -> None:
    folder = f"{files.location}/metadata"
    mark = content_mark(files.catalog.server, files.metadata.uuid, folder)
    written = [name for name in store._files if name.startswith(folder) and ".metadata.json" not in name]

    assert len(written) >= 4 * 2 + 2 + 1
    assert all(is_own_content(name, mark) for name in written)
    assert not any(is_own_content(name, b"none") for name in written)


def test_what_an_earlier_state_reaches_stays(files: PartitionedFiles, store: AgedFiles) -> None:
    catalog = files.catalog
    first, *_ = load_table(catalog).metadata.snapshots
    commit_to(catalog, RemoveSnapshots(snapshot_ids=(first.snapshot_id,)))
    pass_time(catalog, store)
    assert first.manifest_list in store._files

    assert sweep_one(catalog.server)

    assert first.manifest_list in store._files


def test_nothing_goes_while_it_is_not_known_what_the_table_reaches(
    files: PartitionedFiles, store: AgedFiles
) -> None:
    catalog = files.catalog
    location = left(catalog, NAMES[0])
    store.delete(files.manifests()[0].manifest_path)

    assert sweep_one(catalog.server)

    assert location in store._files


@pytest.mark.parametrize("setting", ["gc.enabled", "later version"])
def test_nothing_goes_where_files_may_be_anothers(
    files: PartitionedFiles, store: AgedFiles, setting: str
) -> None:
    """A later version lies there where a database was restored from a backup: a rebuild may find it."""
    catalog = files.catalog
    if setting == "gc.enabled":
        commit_to(catalog, SetProperties(updates={"gc.enabled": "false"}))
    else:
        orphan(catalog, 99)
    location = left(catalog, NAMES[0])
    pass_time(catalog, store)

    assert sweep_one(catalog.server)

    assert location in store._files


def test_a_purge_comes_back_for_what_was_too_young(files: PartitionedFiles, store: AgedFiles) -> None:
    catalog = files.catalog
    young = {left(catalog, name, age_ms=0) for name in NAMES} | {Location(orphan(catalog, 99, age_ms=0))}
    foreign = {left(catalog, NAMES[0].format(uuid.uuid4()))}
    old = {left(catalog, NAMES[1])}
    purge_table(catalog, DEPARTURES)

    assert work_off_one(catalog.server)
    after_purge = set(store._files)
    waiting = catalog.server.file_deletions.counts()
    assert not work_off_one(catalog.server)
    for location in young:
        store.age(location)
    execute(catalog, file_deletions.update().values(not_before_ms=0))
    assert work_off_one(catalog.server)

    assert old.isdisjoint(after_purge)
    assert young | foreign <= after_purge
    assert waiting == {"queued": 1}
    assert young.isdisjoint(store._files)
    assert foreign <= set(store._files)
    assert catalog.server.file_deletions.counts() == {"done": 1}


def test_a_purge_that_leaves_nothing_does_not_come_back(tmp_path: Path) -> None:
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db")
    PartitionedFiles.made(catalog).fill(2)
    purge_table(catalog, DEPARTURES)

    assert work_off_one(catalog.server)

    assert catalog.server.file_deletions.counts() == {"done": 1}


def test_a_table_made_at_the_purged_place_keeps_all_that_lies_there(
    files: PartitionedFiles, store: AgedFiles
) -> None:
    catalog = files.catalog
    young = left(catalog, NAMES[0], age_ms=0)
    purge_table(catalog, DEPARTURES)
    assert work_off_one(catalog.server)
    named.create(catalog, NewTable(DEPARTURES, SCHEMA, None, None, files.location, {}))
    new = set(store._files)
    for location in new:
        store.age(location)
    execute(catalog, file_deletions.update().values(not_before_ms=0))

    assert work_off_one(catalog.server)

    assert young in new
    assert set(store._files) == new
