from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.manifests.table_manifests import TableManifests
from app.catalog.upkeep.dangling_deletes import remove_dangling_deletes
from app.catalog.upkeep.manifest_rewrites import (
    ManifestRewrite,
    ManifestRewriteRequest,
    preview_manifest_rewrite,
    rewrite_manifests,
)
from app.catalog.upkeep.partition_statistics import write_statistics_of_partitions
from app.engine.change.updates import (
    AddSpec,
    RemoveSnapshotRef,
    SetDefaultSpec,
    SetProperties,
    SetSnapshotRef,
    UpgradeFormatVersion,
)
from app.engine.manifest_rewrite.wishes import RewriteWish
from app.engine.model.files.manifests import DataFile, ManifestContent, ManifestEntry
from app.engine.model.ids import Location, SpecId
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.errors import (
    CommitRefused,
    CommitStateUnknown,
    CorruptMetadata,
    InvalidRequest,
    ManifestsReplaced,
    NoSuchRef,
    NoSuchTable,
    NotSupported,
)
from app.formats.manifests import writer
from app.formats.manifests.source import ManifestCache
from tests.builders.catalogs import with_server
from tests.builders.partitioned_files import PartitionedFiles
from tests.builders.tables import DEPARTURES, commit_to
from tests.unit.catalog.commits.interference import files_in, interfering

ALL = ManifestRewriteRequest(RewriteWish(rewrites_all=True))
WORTH_IT = ManifestRewriteRequest()


def stepping(catalog: Catalog, name: str, *actions: Callable[[], object]) -> Catalog:
    """Return the catalog on a server that does something at a step, each time one thing more."""
    waiting = list(actions)

    def step(reached: str) -> None:
        if reached == name and waiting:
            waiting.pop(0)()

    return with_server(catalog, step=step)


def rewrite(catalog: Catalog, request: ManifestRewriteRequest = ALL) -> ManifestRewrite:
    return rewrite_manifests(catalog, DEPARTURES, request)[0]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_live_files_keep_everything_and_deleted_ones_are_forgotten(catalog: Catalog, version: int) -> None:
    table = PartitionedFiles.made(catalog, version)
    table.fill(6)
    gone = [entry.file for entry in table.entries().values()][:3]
    table.commit([], gone)
    before, head = table.entries(), table.head()

    done = rewrite(catalog)

    assert table.entries() == before
    (manifest,) = table.manifests()
    assert (manifest.existing_files_count, manifest.added_files_count, manifest.deleted_files_count) == (
        33,
        0,
        0,
    )
    assert (done.created, done.replaced, done.kept, done.entries) == (1, 6, 0, 33)
    after = table.head()
    assert (after.parent_snapshot_id, after.operation) == (head.snapshot_id, "replace")
    summary = after.summary or {}
    assert {name: summary[name] for name in summary if name.startswith("total-")} == {
        name: text for name, text in (head.summary or {}).items() if name.startswith("total-")
    }


def test_row_ids_become_explicit_and_none_is_spent(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog, 3)
    table.fill(4)
    before, next_row_id = table.entries(), table.metadata.next_row_id

    rewrite(catalog)

    assert sorted(entry.file.first_row_id or 0 for entry in before.values()) == list(range(0, 240, 10))
    assert table.entries() == before
    assert table.metadata.next_row_id == next_row_id
    assert table.head().added_rows == 0


def test_files_from_before_version_3_get_their_row_ids_with_the_rewrite(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog, 2)
    table.fill(3)
    commit_to(catalog, UpgradeFormatVersion(format_version=3))

    rewrite(catalog)

    ids = sorted(
        entry.file.first_row_id for entry in table.entries().values() if entry.file.first_row_id is not None
    )
    assert ids == list(range(0, 180, 10))
    assert table.metadata.next_row_id == 180


def test_entries_are_in_the_order_of_partitions_and_a_filter_reads_fewer_manifests(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    carriers = [f"carrier {number:03}" for number in range(40)]
    for _ in range(12):
        table.commit(table.file((carrier, 0)) for carrier in carriers for _ in range(8))
    before = table.entries()

    def holding(carrier: str) -> int:
        text, found = carrier.encode(), 0
        for manifest in table.manifests():
            (by_carrier, _) = manifest.partitions or ()
            assert by_carrier.lower_bound is not None
            assert by_carrier.upper_bound is not None
            found += by_carrier.lower_bound <= text <= by_carrier.upper_bound
        return found

    assert holding("carrier 007") == 12
    done = rewrite(catalog, ManifestRewriteRequest(RewriteWish(target_bytes=50_000)))

    assert table.entries() == before
    assert done.created >= 2
    assert holding("carrier 007") <= 2
    assert all(manifest.manifest_length <= 50_000 for manifest in table.manifests())
    assert rewrite(catalog, ManifestRewriteRequest(RewriteWish(target_bytes=50_000))).snapshot_id is None


def test_what_is_not_worth_it_is_left_alone(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(1)
    location = table.metadata.last_updated_ms, table.head()
    files = files_in(catalog)

    assert rewrite(catalog, WORTH_IT).snapshot_id is None
    assert rewrite(catalog, ALL).snapshot_id is None

    assert (table.metadata.last_updated_ms, table.head()) == location
    assert files_in(catalog) == files


def test_manifests_without_live_files_go(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(1)
    table.commit([], [entry.file for entry in table.entries().values()])

    done = rewrite(catalog, WORTH_IT)

    assert (done.created, done.replaced) == (0, 1)
    assert table.manifests() == ()


def test_specs_and_contents_stay_apart(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(2)
    delete = table.file(("AA", 0), content=1, lower_bounds=None, upper_bounds=None)
    table.commit([delete])
    table.commit([replace(delete, file_path=Location(f"{delete.file_path}2"))])
    spec = UnboundPartitionSpec.from_object(
        {"fields": [{"name": "c", "transform": "identity", "source-id": 2}]}
    )
    commit_to(catalog, AddSpec(spec=spec), SetDefaultSpec(spec_id=SpecId(-1)))
    for _ in range(2):
        table.commit([table.file(("AA",), spec_id=SpecId(1))])
    before = table.entries()

    only_new = rewrite(catalog, ManifestRewriteRequest(RewriteWish(spec_id=SpecId(1))))
    assert (only_new.created, only_new.replaced, only_new.kept) == (1, 2, 4)
    done = rewrite(catalog, WORTH_IT)

    assert [(group.content, group.spec_id) for group in done.groups] == [
        (ManifestContent.DATA, 0),
        (ManifestContent.DELETES, 0),
    ]
    assert table.entries() == before
    assert len(table.manifests()) == 3


def test_a_branch_is_rewritten_by_itself(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(2)
    commit_to(catalog, SetSnapshotRef(ref_name="audit", snapshot_id=table.head().snapshot_id, type="branch"))
    main = table.head()

    rewrite(catalog, replace(ALL, branch="audit"))

    assert len(table.manifests("audit")) == 1
    assert table.head() == main


def test_what_others_append_meanwhile_stays_and_nothing_is_written_again(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(3)
    before = table.entries()
    meanwhile = stepping(catalog, "manifests_stored", lambda: table.fill(1))

    done = rewrite(meanwhile)

    assert (done.created, done.replaced, done.kept, done.uses_prepared) == (1, 3, 1, True)
    entries = table.entries()
    assert {key: entries[key] for key in before} == before
    assert len(entries) == 24


def test_manifests_that_others_replaced_are_planned_anew(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(3)
    first = next(iter(table.entries().values())).file
    meanwhile = stepping(catalog, "manifests_stored", lambda: table.commit([], [first]))

    done = rewrite(meanwhile)

    entries = table.entries()
    assert first.key not in entries
    assert len(entries) == 17
    assert (done.created, done.replaced, done.entries) == (1, 3, 17)
    # What the first attempt had stored is gone.
    source = TableManifests(catalog, table.metadata)
    listed = {
        manifest.manifest_path
        for snapshot in table.metadata.snapshots
        for manifest in source.manifests(snapshot)
    }
    assert {path for path in files_in(catalog) if path.endswith("-m0.avro")} == listed


def test_last_attempt_is_planned_in_its_turn_and_lands(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(3)

    def remove_one() -> None:
        table.commit([], [next(iter(table.entries().values())).file])

    done = rewrite(stepping(catalog, "manifests_stored", *[remove_one] * 5))

    assert not done.uses_prepared
    assert len(table.entries()) == 13
    assert len(table.manifests()) == 1


def test_a_rewrite_that_is_outrun_each_time_is_a_conflict(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.catalog.upkeep.manifest_rewrites._MOST_FILES_IN_LINE", 0)
    table = PartitionedFiles.made(catalog)
    table.fill(3)

    def remove_one() -> None:
        table.commit([], [next(iter(table.entries().values())).file])

    with pytest.raises(ManifestsReplaced, match="other commits replaced some of them each time"):
        rewrite(stepping(catalog, "manifests_stored", *[remove_one] * 5))

    assert len(table.entries()) == 13
    assert (table.head().summary or {})["operation"] == "overwrite"


def test_an_upgrade_meanwhile_is_planned_anew_so_that_no_row_id_is_lost(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(3)

    def upgrade() -> None:
        commit_to(catalog, UpgradeFormatVersion(format_version=3))
        table.fill(1)

    rewrite(stepping(catalog, "manifests_stored", upgrade))

    ids = [entry.file.first_row_id for entry in table.entries().values()]
    assert sorted(value for value in ids if value is not None) == list(range(0, 240, 10))


def test_after_an_unknown_outcome_every_file_stays(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(3)
    unsure, pointers = interfering(catalog)
    pointers.lose_reply = pointers.blind = True

    with pytest.raises(CommitStateUnknown):
        rewrite(unsure)

    assert len(table.entries()) == 18
    assert len(table.manifests()) == 1


def test_new_manifests_that_are_not_worth_the_old_ones_are_refused(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(3)
    head, files = table.head(), files_in(catalog)
    values = writer._values

    def spoiled(entry: ManifestEntry, *others: Any) -> Mapping[int, Any]:
        found = values(entry, *others)
        return {**found, 2: {**found[2], 103: 9}}

    monkeypatch.setattr(writer, "_values", spoiled)
    with pytest.raises(CorruptMetadata, match="nothing was changed"):
        rewrite(catalog)

    assert table.head() == head
    assert files_in(catalog) == files


def test_a_rewrite_of_manifests_that_cannot_be_read_is_refused(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(3)
    damaged = table.head().manifest_list
    assert damaged is not None
    catalog.files.delete(damaged)
    fresh = with_server(catalog, manifest_cache=ManifestCache(1 << 20))
    before = files_in(catalog)

    for change in (
        lambda: rewrite(fresh),
        lambda: remove_dangling_deletes(fresh, DEPARTURES, "main"),
        lambda: write_statistics_of_partitions(fresh, DEPARTURES, None),
    ):
        with pytest.raises(CommitRefused, match=f"{damaged}. Nothing was changed"):
            change()

    assert files_in(catalog) == before


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        (ManifestRewriteRequest(branch="nope"), NoSuchRef, "nope"),
        (ManifestRewriteRequest(branch="v1"), InvalidRequest, "Cannot rewrite manifests of v1: it is a tag"),
        (ManifestRewriteRequest(RewriteWish(spec_id=SpecId(7))), InvalidRequest, "spec-id 7"),
        (ManifestRewriteRequest(RewriteWish(cluster_by="weight")), InvalidRequest, "cluster-by 'weight'"),
    ],
)
def test_wishes_that_do_not_fit_are_refused(
    catalog: Catalog, request_: ManifestRewriteRequest, error: type[Exception], message: str
) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(2)
    commit_to(catalog, SetSnapshotRef(ref_name="v1", snapshot_id=table.head().snapshot_id, type="tag"))
    files = files_in(catalog)

    for act in (rewrite_manifests, preview_manifest_rewrite):
        with pytest.raises(error, match=message):
            act(catalog, DEPARTURES, request_)

    assert files_in(catalog) == files


def test_encrypted_tables_and_missing_ones_are_refused(catalog: Catalog) -> None:
    with pytest.raises(NoSuchTable):
        rewrite(catalog)
    table = PartitionedFiles.made(catalog, 3)
    table.fill(2)
    commit_to(
        catalog, UpgradeFormatVersion(format_version=3), SetProperties(updates={"encryption.key-id": "k"})
    )
    with pytest.raises(NotSupported, match="encrypted"):
        rewrite(catalog)


def test_preview_says_what_is_done_then_and_changes_nothing(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(3)
    files = files_in(catalog)

    would, location = preview_manifest_rewrite(catalog, DEPARTURES, WORTH_IT)

    assert files_in(catalog) == files
    done = rewrite(catalog, WORTH_IT)
    assert replace(done, snapshot_id=None) == would
    assert would.facts(location, dry_run=True)["groups"] == [
        {
            "content": "data",
            "spec-id": 0,
            "manifests": 3,
            "manifest-bytes": sum(stock.manifest.manifest_length for stock in would.groups[0].replaced),
            "files": 18,
            "new-manifests": 1,
        }
    ]


def test_cluster_by_leads_with_a_field_or_a_column(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(2, ("B", "A"))

    def paths(name: str) -> list[tuple[object, ...]]:
        rewrite(catalog, ManifestRewriteRequest(RewriteWish(cluster_by=name, rewrites_all=True)))
        return [file.partition for file in files_of(table)]

    assert paths("id") == [("A", 0), ("A", 0), ("B", 0), ("B", 0), ("A", 1), ("A", 1), ("B", 1), ("B", 1)]
    table.fill(1, ("A",))
    by_carrier = paths("carrier")
    assert by_carrier == sorted(by_carrier, key=str)


def files_of(table: PartitionedFiles) -> list[DataFile]:
    return [entry.file for entry in table.entries().values()]


def test_a_table_without_snapshots_has_nothing_to_rewrite(catalog: Catalog) -> None:
    PartitionedFiles.made(catalog)

    assert rewrite(catalog).snapshot_id is None


def test_a_branch_that_goes_meanwhile_is_missed(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(2)
    commit_to(catalog, SetSnapshotRef(ref_name="audit", snapshot_id=table.head().snapshot_id, type="branch"))
    files = files_in(catalog)
    meanwhile = stepping(
        catalog, "manifests_stored", lambda: commit_to(catalog, RemoveSnapshotRef(ref_name="audit"))
    )

    with pytest.raises(NoSuchRef):
        rewrite(meanwhile, replace(ALL, branch="audit"))

    assert {path for path in files_in(catalog) - files if "metadata.json" not in path} == set()
