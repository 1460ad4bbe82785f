"""The health of a table whose files are really there: counted once, kept, and refused when damaged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import LoadedTable
from app.catalog.context.listings import Page
from app.catalog.upkeep.profile import load_profile
from app.catalog.upkeep.table_health import TableHealth, table_health
from app.catalog.upkeep.upkeep_plans import table_upkeep
from app.catalog.upkeep.warehouse_health import warehouse_health
from app.engine.change.updates import (
    AddSpec,
    RemovePartitionSpecs,
    SetDefaultSpec,
    SetProperties,
    SetSnapshotRef,
    UpgradeFormatVersion,
)
from app.engine.model.ids import Location, SpecId
from app.engine.model.jobs import Job
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.errors import CorruptMetadata, FileMissing, NoSuchSnapshot, NoSuchTable
from app.fileio.memory import MemoryFiles
from app.formats.manifests.source import ManifestCache
from tests.builders.catalogs import catalog_on, with_server
from tests.builders.counting_files import CountingFiles
from tests.builders.other_stores import moved_to_another_store
from tests.builders.partitioned_files import PartitionedFiles
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, append, commit_to, head, load_table, table_in, view_in


@pytest.fixture
def files() -> CountingFiles:
    return CountingFiles(MemoryFiles())


@pytest.fixture
def catalog(tmp_path_factory: pytest.TempPathFactory, files: CountingFiles) -> Catalog:
    return catalog_on(f"sqlite:///{tmp_path_factory.mktemp('db')}/icetower.db", files)


@pytest.fixture
def writer(catalog: Catalog) -> TableFiles:
    return TableFiles(catalog.files)


def write(catalog: Catalog, writer: TableFiles, *added: str, removed: tuple[str, ...] = ()) -> LoadedTable:
    """Commit a snapshot with these data files."""
    snapshot = writer.snapshot(load_table(catalog).metadata, added, removed)
    return commit_to(catalog, *append(snapshot))


def test_a_table_without_a_snapshot_has_no_files(catalog: Catalog) -> None:
    table_in(catalog)

    found = table_health(catalog, DEPARTURES)

    assert (found.facts.snapshot_id, found.facts.metadata.snapshots, list(found.findings)) == (None, 0, [])
    assert found.facts.files is not None
    assert (found.facts.files.data_files, found.facts.files.partitions) == (0, 0)


def test_live_files_are_counted_from_all_manifests(catalog: Catalog, writer: TableFiles) -> None:
    table_in(catalog)
    write(catalog, writer, "a", "b")
    last = write(catalog, writer, "c", removed=("a",))

    facts = table_health(catalog, DEPARTURES).facts

    assert facts.files is not None
    assert (facts.files.data_files, facts.files.rows, facts.files.small_files) == (2, 2, 2)
    assert facts.files.data_bytes == len(b"rows of b") + len(b"rows of c")
    assert facts.snapshot_id == last.metadata.current_snapshot_id
    assert (facts.manifests.data_manifests, facts.metadata.snapshots) == (2, 2)


def test_an_earlier_state_is_looked_at_by_its_name(catalog: Catalog, writer: TableFiles) -> None:
    table_in(catalog)
    first = write(catalog, writer, "a").metadata.current_snapshot_id
    write(catalog, writer, "b")

    facts = table_health(catalog, DEPARTURES, str(first)).facts

    assert facts.files is not None
    assert (facts.snapshot_id, facts.files.data_files) == (first, 1)
    assert table_health(catalog, DEPARTURES, "main").facts.snapshot_id != first
    with pytest.raises(NoSuchSnapshot):
        table_health(catalog, DEPARTURES, "audit")


def test_what_was_counted_is_not_read_again(
    catalog: Catalog, files: CountingFiles, writer: TableFiles
) -> None:
    table_in(catalog)
    write(catalog, writer, "a")
    table_health(catalog, DEPARTURES)
    files.forget()

    table_health(catalog, DEPARTURES)
    write(catalog, writer, "b")
    after_a_commit = table_health(catalog, DEPARTURES).facts

    read = [location for location in files.read_bytes if "-m" in location]
    newest = writer.manifests[head(load_table(catalog)).snapshot_id][-1]
    assert read == [newest.manifest_path], "only the manifest that the commit has added"
    assert after_a_commit.files is not None
    assert after_a_commit.files.data_files == 2


def test_commits_and_reads_are_those_that_are_known(catalog: Catalog, writer: TableFiles) -> None:
    table_in(catalog)
    write(catalog, writer, "a")

    activity = table_health(catalog, DEPARTURES).facts.activity

    assert activity is not None
    assert activity.commits_a_day == 2, "it is younger than a day"
    assert (activity.attempts_a_commit, activity.last_read_ms) == (1.0, None)
    pointer = catalog.find(DEPARTURES)
    assert pointer is not None
    catalog.server.last_reads.note(pointer.id, 77)
    catalog.server.traffic.count(("wh", DEPARTURES), races_lost=3, refused=1)
    activity = table_health(catalog, DEPARTURES).facts.activity
    assert activity is not None
    assert (activity.attempts_a_commit, activity.last_read_ms) == ((2 + 3 + 1) / 2, 77)


def test_damaged_manifests_are_named(catalog: Catalog, files: CountingFiles, writer: TableFiles) -> None:
    table_in(catalog)
    written = write(catalog, writer, "a")
    manifest = writer.manifests[head(written).snapshot_id][0].manifest_path
    content = files.read(manifest)

    files.delete(manifest)
    for damage in (FileMissing, CorruptMetadata):
        found = table_health(catalog, DEPARTURES)
        assert (found.findings[0].code, found.findings[0].severity) == ("unreadable-manifest", "critical")
        assert str(manifest) in found.findings[0].message
        assert (found.facts.files, found.facts.manifests.data_manifests) == (None, 1)
        with pytest.raises(damage, match=str(manifest)):
            load_profile(catalog, DEPARTURES)
        if damage is FileMissing:
            files.write_new(manifest, content[:-40])
    files.delete(manifest)
    files.write_new(manifest, content)
    assert table_health(catalog, DEPARTURES).facts.files is not None, "a failure is not kept"


def test_manifests_of_a_partition_spec_that_is_gone_are_named(catalog: Catalog) -> None:
    """A writer may commit files of a spec that was removed at that moment: engines cannot read them."""
    table = PartitionedFiles.made(catalog)
    table.fill(1)
    spec = UnboundPartitionSpec.from_object({"fields": []})
    commit_to(catalog, AddSpec(spec=spec), SetDefaultSpec(spec_id=SpecId(-1)))
    assert table_health(catalog, DEPARTURES).facts.unreadable is None
    commit_to(catalog, RemovePartitionSpecs(spec_ids=(SpecId(0),)))

    found = table_health(catalog, DEPARTURES)

    assert (found.findings[0].code, found.findings[0].severity) == ("unreadable-manifest", "critical")
    (manifest, *_) = table.manifests()
    assert (
        f"{manifest.manifest_path} has partition spec 0, which the table has not" in found.findings[0].message
    )
    assert found.facts.files is None
    (overview,) = warehouse_health(catalog, Page()).items
    assert overview.findings[0].code == "unreadable-manifest"
    assert "has partition spec 0, which the table has not" in overview.findings[0].message
    left = table_upkeep(catalog, DEPARTURES, [Job.EXPIRE_SNAPSHOTS]).plan.left
    assert [item.reason for item in left] == [f"the table is damaged: {found.facts.unreadable}"]


@pytest.mark.parametrize("damage", [b"", b"something else"])
def test_a_damaged_manifest_list_is_named(
    catalog: Catalog, files: CountingFiles, writer: TableFiles, damage: bytes
) -> None:
    table_in(catalog)
    damaged = head(write(catalog, writer, "a")).manifest_list
    assert damaged is not None
    files.delete(damaged)
    if damage:
        files.write_new(damaged, damage)
    catalog = with_server(catalog, manifest_cache=ManifestCache(1 << 20))

    found = table_health(catalog, DEPARTURES)

    assert (found.findings[0].code, found.findings[0].severity) == ("unreadable-manifest", "critical")
    assert str(damaged) in found.findings[0].message
    assert found.facts.files is None
    left = table_upkeep(catalog, DEPARTURES, [Job.REWRITE_MANIFESTS]).plan.left
    assert [item.reason for item in left] == [f"the table is damaged: {found.facts.unreadable}"]


@pytest.mark.parametrize("what", ["manifest", "list"])
def test_encrypted_tables_are_not_damaged(
    catalog: Catalog, files: CountingFiles, writer: TableFiles, what: str
) -> None:
    table_in(catalog)
    written = write(catalog, writer, "a")
    commit_to(
        catalog, UpgradeFormatVersion(format_version=3), SetProperties(updates={"encryption.key-id": "k"})
    )
    snapshot = head(written)
    manifest = writer.manifests[snapshot.snapshot_id][0].manifest_path
    location = manifest if what == "manifest" else snapshot.manifest_list
    other = MemoryFiles()
    for file in files.list_files(Location(catalog.warehouse.root_location)):
        start = b"AGS1" if file.location == location else b""
        other.write_new(file.location, start + files.read(file.location))
    catalog = with_server(catalog, files_of=lambda _warehouse: other)

    found = table_health(catalog, DEPARTURES)
    listed = warehouse_health(catalog, Page(None, None)).items
    plan = table_upkeep(catalog, DEPARTURES)

    assert [finding.code for finding in found.findings] == ["encrypted"]
    assert (found.facts.files, found.facts.manifests.data_manifests) == (None, what == "manifest")
    assert [finding.code for finding in listed[0].findings] == ["encrypted"]
    assert (plan.condition.damage, plan.plan.jobs) == (None, ())


def test_views_and_missing_tables_are_no_tables(catalog: Catalog) -> None:
    with pytest.raises(NoSuchTable):
        table_health(catalog, DEPARTURES)
    view_in(catalog)
    with pytest.raises(NoSuchTable):
        table_health(catalog, DEPARTURES)
    with pytest.raises(NoSuchTable):
        load_profile(catalog, DEPARTURES)


def test_limits_are_those_of_the_server(catalog: Catalog, writer: TableFiles) -> None:
    table_in(catalog)
    write(catalog, writer, "a")
    limits = replace(catalog.rules.health_thresholds, snapshots_warning=0)
    strict = replace(
        catalog, server=replace(catalog.server, rules=replace(catalog.rules, health_thresholds=limits))
    )

    assert [finding.code for finding in table_health(catalog, DEPARTURES).findings] == []
    assert [finding.code for finding in table_health(strict, DEPARTURES).findings] == ["snapshots"]


def test_commands_mend_the_snapshot_that_was_asked_about(catalog: Catalog, writer: TableFiles) -> None:
    table_in(catalog)
    first = head(write(catalog, writer, "a")).snapshot_id
    last = head(write(catalog, writer, "b")).snapshot_id
    branch = SetSnapshotRef(ref_name="it's", snapshot_id=last, type="branch")
    commit_to(catalog, branch, SetSnapshotRef(ref_name="tag", snapshot_id=first, type="tag"))
    limits = replace(catalog.rules.health_thresholds, small_manifests=0)
    strict = replace(
        catalog, server=replace(catalog.server, rules=replace(catalog.rules, health_thresholds=limits))
    )

    def command(wanted: str | None) -> str | None:
        (finding,) = table_health(strict, DEPARTURES, wanted).findings
        return finding.command

    of_main = "icetower table rewrite-manifests {table}"
    assert [command(wanted) for wanted in (None, "main", str(last))] == [of_main] * 3
    assert command("it's") == of_main + " --branch 'it'\"'\"'s'"
    assert [command(wanted) for wanted in ("tag", str(first))] == [None, None]


def test_profile_has_the_columns_of_the_state_that_is_asked_for(catalog: Catalog, writer: TableFiles) -> None:
    table_in(catalog)
    assert load_profile(catalog, DEPARTURES).snapshot_id is None
    first = write(catalog, writer, "a").metadata.current_snapshot_id

    profile = load_profile(catalog, DEPARTURES)

    assert (profile.snapshot_id, profile.data_files, profile.rows, profile.delete_files) == (first, 1, 1, 0)
    assert [column.name for column in profile.columns] == ["id", "carrier"]
    # The writer of these files notes no metrics.
    assert {column.values.files for column in profile.columns} == {0}
    assert load_profile(catalog, DEPARTURES, "main") == profile


def test_facts_about_one_store_are_none_about_another(catalog: Catalog, writer: TableFiles) -> None:
    """The storage of a warehouse may be changed: what was counted before is of the other store."""
    table_in(catalog)
    write(catalog, writer, "a", "b")
    write(catalog, writer, "c")

    def counts(of: Catalog) -> list[int | None]:
        health = table_health(of, DEPARTURES).facts
        (overview,) = warehouse_health(of, Page(None, None)).items
        assert isinstance(overview, TableHealth)
        assert health.files is not None
        assert overview.facts.manifests is not None
        return [
            health.files.data_files,
            load_profile(of, DEPARTURES).data_files,
            overview.facts.manifests.data_manifests,
        ]

    before = counts(catalog)
    moved = counts(moved_to_another_store(catalog))

    assert before == [3, 3, 2]
    assert moved == [2, 2, 1]
