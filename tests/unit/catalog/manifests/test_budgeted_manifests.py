from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import LoadedTable
from app.catalog.manifests.budgeted_manifests import MOST_LOOKS, BudgetedTableManifests
from app.engine.change.updates import SetProperties
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.snapshot import Snapshot
from app.errors import FileMissing, InvalidLocation
from app.fileio.memory import MemoryFiles
from app.formats.avro import cost_within
from app.formats.manifests.headers import unlisted_manifest
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.source import ManifestCache
from app.formats.manifests.writer import write_manifest
from tests.builders.catalogs import catalog_on, with_rules, with_server
from tests.builders.commits import commit_table
from tests.builders.counting_files import CountingFiles
from tests.builders.manifest_records import manifest_list_of
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, SCHEMA, append, table_in


@pytest.fixture
def files() -> CountingFiles:
    return CountingFiles(MemoryFiles())


@pytest.fixture
def catalog(tmp_path: Path, files: CountingFiles) -> Catalog:
    return catalog_on(f"sqlite:///{tmp_path}/icetower.db", files)


@pytest.fixture
def table(catalog: Catalog) -> LoadedTable:
    return table_in(catalog)


def manifest_list_bytes(files: CountingFiles, snapshot: Snapshot) -> int:
    assert snapshot.manifest_list is not None
    return len(files.files.read(snapshot.manifest_list))


class TestReading:
    def test_what_is_read_once_costs_nothing_more(
        self, catalog: Catalog, table: LoadedTable, files: CountingFiles
    ) -> None:
        snapshot = TableFiles(files).snapshot(table.metadata, ["a"])
        enough = 20_000
        first = BudgetedTableManifests(catalog, enough)
        (manifest,) = first.manifests(snapshot) or ()
        assert len(first.entries(manifest) or ()) == 1
        files.forget()

        again = BudgetedTableManifests(catalog, 0)

        assert again.manifests(snapshot) == (manifest,)
        assert len(again.entries(manifest) or ()) == 1
        assert files.read_bytes.total() == 0

    def test_a_list_that_does_not_fit_is_not_read(
        self, catalog: Catalog, table: LoadedTable, files: CountingFiles
    ) -> None:
        snapshot = TableFiles(files).snapshot(table.metadata, ["a"])
        size = manifest_list_bytes(files, snapshot)

        assert BudgetedTableManifests(catalog, size - 1).manifests(snapshot) is None
        assert files.read_bytes.total() == 0
        assert BudgetedTableManifests(catalog, size).manifests(snapshot) is not None
        assert files.read_bytes.total() == size

    def test_a_manifest_that_does_not_fit_any_more_is_not_read(
        self, catalog: Catalog, table: LoadedTable, files: CountingFiles
    ) -> None:
        snapshot = TableFiles(files).snapshot(table.metadata, ["a"])
        size = manifest_list_bytes(files, snapshot)
        budgeted = BudgetedTableManifests(catalog, size + 10)
        (manifest,) = budgeted.manifests(snapshot) or ()

        assert budgeted.entries(manifest) is None
        assert files.read_bytes.total() == size

    def test_a_list_that_lies_about_a_manifest_s_size_gets_no_more_read(
        self, catalog: Catalog, table: LoadedTable, files: CountingFiles
    ) -> None:
        snapshot = TableFiles(files).snapshot(table.metadata, ["a"])
        size = manifest_list_bytes(files, snapshot)
        budgeted = BudgetedTableManifests(catalog, size + 10)
        (manifest,) = budgeted.manifests(snapshot) or ()

        assert budgeted.entries(replace(manifest, manifest_length=1)) is None
        assert files.read_bytes.total() == size

    def test_manifests_without_a_list_are_paid_for_one_by_one(
        self, catalog: Catalog, table: LoadedTable, files: CountingFiles
    ) -> None:
        (manifest,) = written_manifests(files, table, 1)
        content = files.files.read(manifest.manifest_path)
        snapshot = Snapshot(
            snapshot_id=SnapshotId(1), timestamp_ms=1, manifests=(manifest.manifest_path,), summary=None
        )

        cost = cost_of(content)

        assert BudgetedTableManifests(catalog, len(content) - 1).manifests(snapshot) is None
        assert files.read_bytes.total() == 0
        assert BudgetedTableManifests(catalog, cost - 1).manifests(snapshot) is None
        found = BudgetedTableManifests(catalog, cost).manifests(snapshot)

        listed = unlisted_manifest(content, manifest.manifest_path)
        assert found == [replace(listed, added_snapshot_id=manifest.added_snapshot_id)]

    def test_missing_files_are_missing(
        self, catalog: Catalog, table: LoadedTable, files: CountingFiles
    ) -> None:
        snapshot = TableFiles(files).snapshot(table.metadata, ["a"])
        budgeted = BudgetedTableManifests(catalog, 100_000)
        (manifest,) = budgeted.manifests(snapshot) or ()
        files.delete(manifest.manifest_path)

        with pytest.raises(FileMissing):
            budgeted.entries(manifest)
        assert budgeted.exists(manifest.manifest_path) is False

    def test_looks_have_an_end(self, catalog: Catalog, table: LoadedTable, files: CountingFiles) -> None:
        budgeted = BudgetedTableManifests(catalog, 0)

        answers = [budgeted.exists(Location("memory://wh/x")) for _ in range(MOST_LOOKS + 5)]

        assert answers == [False] * MOST_LOOKS + [None] * 5
        assert len(files.looked_for) == MOST_LOOKS

    def test_nothing_outside_the_warehouse_is_read_or_looked_for(
        self, catalog: Catalog, table: LoadedTable, files: CountingFiles
    ) -> None:
        outside = Location("memory://elsewhere/x.avro")
        files.write_new(outside, b"secret")
        budgeted = BudgetedTableManifests(catalog, 100_000)
        snapshot = Snapshot(snapshot_id=SnapshotId(1), timestamp_ms=1, manifest_list=outside)

        with pytest.raises(InvalidLocation):
            budgeted.manifests(snapshot)
        with pytest.raises(InvalidLocation):
            budgeted.entries(ManifestFile(outside, 6, SpecId(0)))
        with pytest.raises(InvalidLocation):
            budgeted.exists(outside)
        assert files.read_bytes.total() == 0
        assert files.looked_for == []


def written_manifests(files: CountingFiles, table: LoadedTable, count: int) -> list[ManifestFile]:
    """Write one manifest of 200 files and list it under so many names: the guard cannot tell, and it is quick."""
    location = table.metadata.location
    entries = [
        ManifestEntry(
            EntryStatus.ADDED,
            None,
            None,
            None,
            DataFile(
                FileContent.DATA,
                Location(f"{location}/data/{number}.parquet"),
                "parquet",
                SpecId(0),
                (),
                1,
                100,
            ),
        )
        for number in range(200)
    ]
    written = write_manifest(
        entries,
        schema=SCHEMA,
        spec=table.metadata.default_spec,
        format_version=2,
        snapshot_id=SnapshotId(77),
    )
    paths = [Location(f"{location}/metadata/m{number}.avro") for number in range(count)]
    for path in paths:
        files.write_new(path, written.content)
    return [written.at(path) for path in paths]


def huge_snapshot(
    files: CountingFiles, table: LoadedTable, manifests: Sequence[ManifestFile], **summary: str
) -> Snapshot:
    number = table.metadata.last_sequence + 1
    snapshot_id = SnapshotId(76 + number)
    parent = table.metadata.current_snapshot
    numbered, _ = assign_numbers(manifests, sequence_number=number)
    location = Location(f"{table.metadata.location}/metadata/snap-{snapshot_id}.avro")
    parent_id = parent.snapshot_id if parent else None
    files.write_new(
        location,
        write_manifest_list(
            numbered,
            format_version=2,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=number,
        ).content,
    )
    return Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=parent_id,
        sequence_number=number,
        timestamp_ms=table.metadata.last_updated_ms + 1,
        manifest_list=location,
        summary={"operation": "append", **summary},
    )


def test_a_small_list_of_very_many_manifests_is_given_up_at_once(
    catalog: Catalog, table: LoadedTable, files: CountingFiles
) -> None:
    """Equal lines pack well: what counts is what a list unpacks to, and how many lines it has."""
    snapshot = huge_snapshot(files, table, [])
    assert snapshot.manifest_list is not None
    files.delete(snapshot.manifest_list)
    files.write_new(snapshot.manifest_list, manifest_list_of(100_000))
    budgeted = BudgetedTableManifests(catalog, 16 << 20)

    assert manifest_list_bytes(files, snapshot) < 1 << 20
    assert budgeted.manifests(snapshot) is None


def cost_of(content: bytes) -> int:
    cost = cost_within(content, 1 << 30)
    assert cost is not None
    return cost


@pytest.mark.parametrize("budget", [0, 10_000, 200_000, 1_000_000])
def test_a_commit_to_a_huge_table_reads_no_more_than_the_budget(
    catalog: Catalog, table: LoadedTable, files: CountingFiles, budget: int
) -> None:
    """The list has 3,000 manifests, all new and each with 200 files, and totals that invite to look further."""
    manifests = written_manifests(files, table, 3_000)
    snapshot = huge_snapshot(files, table, manifests, **{"total-records": "1"})
    tight = with_server(
        catalog, rules=replace(catalog.rules, guard_read_bytes=budget), manifest_cache=ManifestCache(64 << 20)
    )
    files.forget()

    landed = commit_table(tight, DEPARTURES, [], append(snapshot))

    assert landed.metadata.current_snapshot_id == snapshot.snapshot_id
    read = {path: size for path, size in files.read_bytes.items() if path.endswith(".avro")}
    assert sum(read.values()) <= budget
    assert len([path for path in files.looked_for if path.endswith(".avro")]) <= MOST_LOOKS
    if budget >= 1_000_000:
        assert len([path for path in read if "/m" in path and "snap-" not in path]) > 2


def test_all_tables_and_attempts_of_a_commit_share_one_budget(
    catalog: Catalog, table: LoadedTable, files: CountingFiles
) -> None:
    manifests = written_manifests(files, table, 50)
    first = huge_snapshot(files, table, manifests[:25])
    cost = cost_of(files.files.read(manifests[0].manifest_path))
    budget = cost_of(files.files.read(first.manifest_list or Location(""))) + 3 * cost
    files.forget()

    commit_table(
        with_rules(catalog, guard_read_bytes=budget),
        DEPARTURES,
        [],
        [SetProperties(updates={"a": "b"}), *append(first)],
    )

    opened = [path for path in files.read_bytes if "/metadata/m" in path]
    assert len(opened) == 3
    assert sum(files.read_bytes[path] for path in opened) == 3 * manifests[0].manifest_length
