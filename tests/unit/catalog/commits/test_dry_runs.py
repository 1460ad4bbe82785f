"""Dry runs of commits: what each part comes to, and that nothing is written."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from app.catalog.commits.dry_runs import (
    MAX_CHECKED_SNAPSHOTS,
    MAX_REFUSED_UPDATES,
    CheckedSnapshot,
    TableDryRun,
    dry_run_commit,
    dry_run_transaction,
)
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import LoadedTable
from app.engine.change.requirements import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUuid,
    Requirement,
)
from app.engine.change.updates import (
    AddSnapshot,
    RemoveSnapshots,
    SetLocation,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from app.engine.diff.schema_changes import ColumnAdded
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, SchemaId, SnapshotId
from app.errors import (
    CommitRefused,
    CorruptMetadata,
    DanglingRef,
    InvalidLocation,
    InvalidUpdate,
    MetadataFileMissing,
    NoSuchNamespace,
    NoSuchTable,
    RequirementFailed,
    ViewExists,
)
from tests.builders.catalogs import with_warehouse
from tests.builders.commits import commit_table
from tests.builders.derived_requirements import requirements_for
from tests.builders.table_files import TableFiles
from tests.builders.tables import (
    DEPARTURES,
    append,
    append_to,
    head,
    load_table,
    namespace_in,
    snapshot_on,
    table_in,
    view_in,
)
from tests.unit.catalog.commits.interference import ARRIVALS, creation_updates, files_in

OWNER = SetProperties(updates={"owner": "tower"})
NOWHERE = SetSnapshotRef(ref_name="x", snapshot_id=SnapshotId(9), type="tag")


@pytest.fixture
def table(catalog: Catalog) -> LoadedTable:
    return append_to(catalog, table_in(catalog))


def verdict_on(catalog: Catalog, requirements: list[Requirement], *updates: Update) -> TableDryRun:
    """Return the verdict on a commit to the table, after checking that it has written nothing."""
    files = files_in(catalog)
    found = catalog.server.pointers.find(catalog.warehouse.id, DEPARTURES)

    verdict = dry_run_commit(catalog, DEPARTURES, requirements, updates)

    assert files_in(catalog) == files
    assert catalog.server.pointers.find(catalog.warehouse.id, DEPARTURES) == found
    return verdict


def results(verdict: TableDryRun) -> tuple[list[str], list[str]]:
    return [item.result for item in verdict.requirements], [item.result for item in verdict.updates]


@pytest.mark.usefixtures("table")
def test_commit_that_would_land_tells_what_it_would_change(catalog: Catalog) -> None:
    needed = AssertCurrentSchemaId(current_schema_id=SchemaId(0))

    verdict = verdict_on(catalog, [needed], OWNER)

    assert (verdict.error, verdict.changes_table, verdict.has_landed_already) == (None, True, False)
    assert results(verdict) == (["passed"], ["applied"])
    assert (verdict.requirements[0].expected, verdict.requirements[0].found) == (0, 0)
    assert verdict.difference is not None
    assert verdict.difference.properties == {"owner": (None, "tower")}


def test_every_requirement_and_update_is_tried_and_the_first_error_is_the_answer(
    catalog: Catalog, table: LoadedTable
) -> None:
    head_id = head(table).snapshot_id
    needed: list[Requirement] = [
        AssertRefSnapshotId(ref="main", snapshot_id=None),
        AssertRefSnapshotId(ref="main", snapshot_id=head_id),
        AssertCurrentSchemaId(current_schema_id=SchemaId(7)),
    ]

    verdict = verdict_on(catalog, needed, NOWHERE, OWNER)

    assert results(verdict) == (["failed", "passed", "failed"], ["refused", "applied"])
    assert isinstance(verdict.error, RequirementFailed)
    assert str(verdict.error) == "Requirement failed: branch main was created concurrently"
    assert [type(item.error) for item in verdict.updates] == [InvalidUpdate, type(None)]
    assert verdict.difference is None
    standing = verdict.error.standing
    assert standing is not None
    assert (standing.metadata_location, standing.landed_count) == (table.location, 1)
    assert [item.snapshot_id for item in standing.landed or ()] == [head_id]


@pytest.mark.usefixtures("table")
def test_difference_is_told_also_where_only_a_requirement_fails(catalog: Catalog) -> None:
    verdict = verdict_on(catalog, [AssertCurrentSchemaId(current_schema_id=SchemaId(7))], OWNER)

    assert verdict.error is not None
    assert verdict.difference is not None


def test_update_that_does_not_go_with_the_rest_of_the_table_is_told_as_refused(
    catalog: Catalog, table: LoadedTable
) -> None:
    head_id = head(table).snapshot_id

    verdict = verdict_on(
        catalog,
        [],
        SetProperties(updates={"a": "b"}),
        RemoveSnapshots(snapshot_ids=(head_id,)),
        SetProperties(updates={"c": "d"}),
    )

    assert results(verdict) == ([], ["applied", "refused", "applied"])
    assert verdict.updates[1].error is verdict.error
    assert isinstance(verdict.error, DanglingRef)
    assert (verdict.error.ref, verdict.error.snapshot_id) == ("main", head_id)
    assert verdict.difference is None


@pytest.mark.usefixtures("table")
def test_location_outside_the_warehouse_is_told(catalog: Catalog) -> None:
    verdict = verdict_on(catalog, [], SetLocation(location=Location("memory://elsewhere/t")))

    assert isinstance(verdict.error, InvalidLocation)


def test_commit_without_effect_and_commit_that_has_landed_are_successes(
    catalog: Catalog, table: LoadedTable
) -> None:
    updates = append(snapshot_on(table.metadata))
    needed = list(requirements_for(table.metadata, updates))
    commit_table(catalog, DEPARTURES, needed, updates)

    same = verdict_on(catalog, [], SetLocation(location=table.metadata.location))
    again = verdict_on(catalog, needed, *updates)

    assert (same.error, same.changes_table, same.has_landed_already) == (None, False, False)
    assert (again.error, again.changes_table, again.has_landed_already) == (None, False, True)
    assert results(again) == (["not-checked"] * len(needed), ["not-tried"] * 2)
    assert again.snapshots == []


def test_after_many_refused_updates_the_rest_is_not_tried(catalog: Catalog, table: LoadedTable) -> None:
    assert table.location

    verdict = verdict_on(catalog, [], *[NOWHERE] * (MAX_REFUSED_UPDATES + 2), OWNER)

    assert results(verdict)[1] == ["refused"] * MAX_REFUSED_UPDATES + ["not-tried"] * 3


def test_creation_tells_all_that_would_be_there(catalog: Catalog) -> None:
    namespace_in(catalog)

    verdict = verdict_on(catalog, [AssertCreate()], *creation_updates())

    assert (verdict.error, verdict.location, verdict.changes_table) == (None, None, True)
    assert verdict.difference is not None
    assert verdict.difference.format_version == (None, 2)
    assert [change.name for change in verdict.difference.schema if isinstance(change, ColumnAdded)] == [
        "id",
        "carrier",
    ]


@pytest.mark.usefixtures("table")
def test_creation_of_what_is_there_has_no_difference(catalog: Catalog) -> None:
    verdict = verdict_on(catalog, [AssertCreate()], *creation_updates())

    assert str(verdict.error) == "Requirement failed: table already exists"
    assert verdict.difference is None


def test_requirements_that_contradict_each_other_are_told(catalog: Catalog, table: LoadedTable) -> None:
    verdict = verdict_on(catalog, [AssertTableUuid(uuid=table.metadata.uuid), AssertCreate()], OWNER)

    assert str(verdict.error) == (
        "Invalid create requirements: assert-create cannot stand beside assert-table-uuid"
    )


def test_creation_under_a_views_name_is_told(catalog: Catalog) -> None:
    view_in(catalog, ARRIVALS)

    verdict = dry_run_commit(catalog, ARRIVALS, [AssertCreate()], creation_updates())

    assert isinstance(verdict.error, ViewExists)


def test_what_is_not_there_is_not_found(catalog: Catalog) -> None:
    view_in(catalog, ARRIVALS)

    for identifier in (DEPARTURES, ARRIVALS):
        with pytest.raises(NoSuchTable):
            dry_run_commit(catalog, identifier, [], [OWNER])
    elsewhere = TableIdentifier(Namespace(("nope",)), "t")
    with pytest.raises(NoSuchNamespace):
        dry_run_commit(catalog, elsewhere, [AssertCreate()], creation_updates())


def test_what_does_not_work_here_is_no_verdict(catalog: Catalog, table: LoadedTable) -> None:
    assert table.location is not None
    catalog.files.delete(table.location)

    with pytest.raises(MetadataFileMissing):
        dry_run_commit(catalog, DEPARTURES, [], [OWNER])


@pytest.fixture
def files(catalog: Catalog) -> TableFiles:
    return TableFiles(catalog.files)


def test_stale_snapshot_tells_what_it_collides_with(catalog: Catalog, files: TableFiles) -> None:
    """Two writers remove one file: the second is stale, and can never be put on top of the first."""
    made = table_in(catalog)
    made = commit_table(catalog, DEPARTURES, [], append(files.snapshot(made.metadata, ["a", "b"])))
    mine = append(files.snapshot(made.metadata, ["c"], ["a"]))
    needed = list(requirements_for(made.metadata, mine))
    fine = verdict_on(catalog, needed, *mine)
    commit_table(catalog, DEPARTURES, [], append(files.snapshot(made.metadata, [], ["a"])))

    stale = verdict_on(catalog, needed, *mine)

    assert fine.error is None
    assert [item.report and item.report.conflicts for item in fine.snapshots] == [()]
    assert isinstance(stale.error, RequirementFailed)
    [checked] = stale.snapshots
    assert (checked.ref, checked.error) == ("main", None)
    assert checked.report is not None
    assert checked.report.would_conflict
    assert not checked.report.safe_to_reapply
    assert any("/a" in str(conflict.file_path) for conflict in checked.report.conflicts)


def test_snapshot_whose_files_cannot_be_read_is_no_reason_to_refuse(
    catalog: Catalog, files: TableFiles
) -> None:
    made = table_in(catalog)
    first = append(files.snapshot(made.metadata, ["a"]))
    made = commit_table(catalog, DEPARTURES, [], first)
    broken = snapshot_on(made.metadata, sequence_number=9, summary={"operation": "overwrite"})
    assert broken.manifest_list is not None
    catalog.files.write_new(broken.manifest_list, b"no manifest list")
    commit_table(catalog, DEPARTURES, [], append(files.snapshot(made.metadata, ["b"])))

    verdict = verdict_on(catalog, [], *append(broken))

    assert verdict.error is None
    assert isinstance(verdict.snapshots[0].error, CorruptMetadata)
    assert verdict.snapshots[0].report is None


def test_staged_snapshots_and_those_of_new_tables_collide_with_nothing(
    catalog: Catalog, table: LoadedTable
) -> None:
    staged = snapshot_on(table.metadata)
    verdict = verdict_on(catalog, [], AddSnapshot(snapshot=staged))
    new = dry_run_commit(catalog, ARRIVALS, [AssertCreate()], [*creation_updates(), *append(staged)])

    assert verdict.snapshots == [CheckedSnapshot(staged.snapshot_id, None, None)]
    assert new.snapshots == [CheckedSnapshot(staged.snapshot_id, "main", None)]


def test_of_many_snapshots_only_some_are_looked_at(catalog: Catalog, table: LoadedTable) -> None:
    parent = head(table)
    count = MAX_CHECKED_SNAPSHOTS + 2
    many = [
        snapshot_on(table.metadata, sequence_number=parent.sequence + number)
        for number in range(1, count + 1)
    ]
    updates = [update for snapshot in many for update in append(snapshot, f"b{snapshot.snapshot_id}")]

    verdict = verdict_on(catalog, [], *updates)

    looked_at = [item.report is not None or item.error is not None for item in verdict.snapshots]
    assert looked_at == [True] * MAX_CHECKED_SNAPSHOTS + [False] * 2


def test_guard_has_its_say_and_counts_nothing(catalog: Catalog, table: LoadedTable) -> None:
    before = REGISTRY.get_sample_value("icetower_guarded_snapshots_total", {"outcome": "found"}) or 0
    rejecting = with_warehouse(catalog, override_properties={"icetower.guard": "reject"})
    updates = append(snapshot_on(table.metadata))

    warned = verdict_on(catalog, [], *updates)
    rejected = verdict_on(rejecting, [], *updates)

    assert warned.error is None
    assert isinstance(rejected.error, CommitRefused)
    assert [item.kind.value for item in warned.findings] == ["missing-file"]
    assert warned.findings == rejected.findings
    after = REGISTRY.get_sample_value("icetower_guarded_snapshots_total", {"outcome": "found"}) or 0
    assert after == before


def test_transaction_has_a_verdict_for_each_table_and_one_for_all(
    catalog: Catalog, table: LoadedTable
) -> None:
    changes = [
        TableCommit(DEPARTURES, [], [OWNER]),
        TableCommit(ARRIVALS, [], [OWNER]),
        TableCommit(DEPARTURES, [AssertRefSnapshotId(ref="main")], [OWNER]),
    ]

    verdict = dry_run_transaction(catalog, changes)

    departures, arrivals = verdict.tables
    assert (departures.identifier, arrivals.identifier) == (DEPARTURES, ARRIVALS)
    assert [item.change for item in departures.updates] == [0, 2]
    assert isinstance(departures.error, RequirementFailed)
    assert isinstance(arrivals.error, NoSuchTable)
    assert results(arrivals) == ([], ["not-tried"])
    assert verdict.error is departures.error
    assert load_table(catalog, DEPARTURES).location == table.location


def test_later_changes_of_a_table_are_tried_on_what_the_earlier_ones_leave(
    catalog: Catalog, table: LoadedTable
) -> None:
    first = snapshot_on(table.metadata)
    changes = [
        TableCommit(DEPARTURES, [], append(first)),
        TableCommit(DEPARTURES, [AssertRefSnapshotId(ref="main", snapshot_id=first.snapshot_id)], [OWNER]),
    ]

    verdict = dry_run_transaction(catalog, changes)

    assert verdict.error is None
    assert results(verdict.tables[0]) == (["passed"], ["applied"] * 3)
