"""A commit that is sent again after its snapshot has gone is never answered as if it had failed."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.adoptions import adopt_table
from app.catalog.commits.table_commits import TableCommit, commit_transaction
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, LoadedTable
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots
from app.catalog.named import unregister
from app.catalog.past.dropped import Wanted, undrop
from app.catalog.past.restore import restore_tables
from app.catalog.tables import purge_table
from app.engine.change.apply import apply_to_new
from app.engine.change.requirements import AssertCreate, AssertRefSnapshotId, AssertTableUuid, Requirement
from app.engine.change.updates import (
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.engine.retention.expired_snapshots import ExpiryWish
from app.errors import CommitStateUnknown, NoSuchTable, RequirementFailed, StaleUpdate
from app.formats.metadata.files import MetadataFiles
from tests.builders.catalogs import START_MS, new_warehouse, with_server
from tests.builders.commits import commit_table
from tests.builders.file_system import tree_on
from tests.builders.tables import (
    DEPARTURES,
    FLIGHTS,
    append,
    append_to,
    commit_to,
    head,
    load_table,
    namespace_in,
    snapshot_on,
    table_in,
)
from tests.unit.catalog.commits.interference import ARRIVALS, creation_updates

Sent = tuple[list[Requirement], list[Update], Snapshot]


def first_commit(catalog: Catalog, *, demanding: bool) -> Sent:
    """Commit as clients do, and return what was sent; then build on it."""
    created = table_in(catalog)
    snapshot = snapshot_on(created.metadata)
    demands: list[Requirement] = [AssertRefSnapshotId(ref="main", snapshot_id=None)] if demanding else []
    sent = demands, append(snapshot), snapshot
    append_to(catalog, commit_table(catalog, DEPARTURES, *sent[:2]))
    return sent


def expire_all_but(catalog: Catalog, last: int = 1) -> None:
    expire_snapshots(
        catalog, DEPARTURES, ExpiryRequest(ExpiryWish(older_than_ms=START_MS * 2, retain_last=last))
    )


@pytest.mark.parametrize("commits_since", [0, 2])
def test_after_an_expiry_it_is_unknown(catalog: Catalog, commits_since: int) -> None:
    requirements, updates, _ = first_commit(catalog, demanding=True)
    for _ in range(commits_since):
        append_to(catalog, load_table(catalog))
    expire_all_but(catalog)
    before = load_table(catalog)

    with pytest.raises(CommitStateUnknown, match="which has expired"):
        commit_table(catalog, DEPARTURES, requirements, updates)

    assert load_table(catalog) == before


def test_after_a_client_removed_the_snapshot_it_is_unknown(catalog: Catalog) -> None:
    requirements, updates, snapshot = first_commit(catalog, demanding=True)
    second = append_to(catalog, load_table(catalog)).metadata.current_snapshot
    assert second is not None
    gone = [item.snapshot_id for item in load_table(catalog).metadata.snapshots if item != second]
    removals = [
        TableCommit(DEPARTURES, [], [RemoveSnapshots(snapshot_ids=(snapshot_id,))]) for snapshot_id in gone
    ]
    commit_transaction(catalog, removals)
    assert snapshot.snapshot_id in gone

    with pytest.raises(CommitStateUnknown, match="which has expired"):
        commit_table(catalog, DEPARTURES, requirements, updates)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_after_older_metadata_was_registered_over_it_it_is_unknown(
    catalog: Catalog, *, is_damaged: bool
) -> None:
    catalog = with_server(catalog, metadata_files=MetadataFiles(64 << 20, 0))
    older = Location(str(table_in(catalog).location))
    requirements = [AssertRefSnapshotId(ref="main", snapshot_id=None)]
    updates = append(snapshot_on(load_table(catalog).metadata))
    landed = commit_table(catalog, DEPARTURES, requirements, updates)
    if is_damaged:
        catalog.files.delete(Location(str(landed.location)))

    named.register(catalog, TABLES, DEPARTURES, older, overwrite=True)
    append_to(catalog, load_table(catalog))

    # What the damaged file held, no record can say.
    with pytest.raises(RequirementFailed if is_damaged else CommitStateUnknown):
        commit_table(catalog, DEPARTURES, requirements, updates)


def test_another_table_that_is_registered_over_it_leaves_no_record(catalog: Catalog) -> None:
    first_commit(catalog, demanding=True)
    other = commit_table(catalog, ARRIVALS, [AssertCreate()], creation_updates()).location
    named.drop(catalog, TABLES, ARRIVALS)

    named.register(catalog, TABLES, DEPARTURES, Location(str(other)), overwrite=True)

    assert catalog.server.file_deletions.counts() == {}


def second_commit(catalog: Catalog) -> tuple[LoadedTable, list[Requirement], list[Update], Snapshot]:
    """Land a commit on a table with one snapshot; return the table before it, and what was sent."""
    table_in(catalog)
    first = append_to(catalog, load_table(catalog))
    snapshot = snapshot_on(first.metadata)
    demands: list[Requirement] = [
        AssertTableUuid(uuid=first.metadata.uuid),
        AssertRefSnapshotId(ref="main", snapshot_id=head(first).snapshot_id),
    ]
    commit_table(catalog, DEPARTURES, demands, append(snapshot))
    return first, demands, append(snapshot), snapshot


def check_not_refused(catalog: Catalog, requirements: list[Requirement], updates: list[Update]) -> None:
    """Send a commit again, as clients that require more or less do: on a refusal they would delete its files."""
    before = load_table(catalog)
    for some in (requirements, requirements[:1], []):
        with contextlib.suppress(CommitStateUnknown):
            assert commit_table(catalog, DEPARTURES, some, updates) == before
    assert load_table(catalog) == before


def set_main(catalog: Catalog, snapshot: Snapshot) -> None:
    commit_to(catalog, SetSnapshotRef(ref_name="main", snapshot_id=snapshot.snapshot_id, type="branch"))


@pytest.mark.parametrize("moved_on", [False, True])
@pytest.mark.parametrize("how", ["restored", "rolled back", "main removed", "replaced", "dropped and back"])
def test_what_takes_a_table_back_does_not_refuse_it(catalog: Catalog, *, how: str, moved_on: bool) -> None:
    first, requirements, updates, _ = second_commit(catalog)
    if how == "restored":
        at = str(load_table(catalog).metadata.last_updated_ms - 1)
        restore_tables(catalog, [DEPARTURES], at, dry_run=False)
    elif how == "rolled back":
        set_main(catalog, head(first))
    elif how == "dropped and back":
        named.drop(catalog, TABLES, DEPARTURES)
        undrop(catalog, Wanted(namespace=FLIGHTS, name=DEPARTURES.name))
    else:
        commit_to(catalog, RemoveSnapshotRef(ref_name="main"))
    if how == "replaced":
        append_to(catalog, load_table(catalog))
    if moved_on:
        append_to(catalog, load_table(catalog))

    check_not_refused(catalog, requirements, updates)


@pytest.mark.parametrize("how", ["rolled back", "replaced"])
def test_a_log_that_was_cut_since_does_not_refuse_it(catalog: Catalog, *, how: str) -> None:
    """Main is not on the snapshot, which a tag keeps, and its log begins later."""
    first, requirements, updates, snapshot = second_commit(catalog)
    commit_to(catalog, SetSnapshotRef(ref_name="kept", snapshot_id=snapshot.snapshot_id, type="tag"))
    if how == "rolled back":
        set_main(catalog, head(first))
    else:
        commit_to(catalog, RemoveSnapshotRef(ref_name="main"))
    for _ in range(2):
        append_to(catalog, load_table(catalog))
    expire_all_but(catalog)
    left = load_table(catalog).metadata
    assert snapshot in left.snapshots
    assert snapshot.snapshot_id not in {entry.snapshot_id for entry in left.snapshot_log}

    check_not_refused(catalog, requirements, updates)


@pytest.mark.parametrize("end", ["registered over", "dropped", "unregistered", "purged"])
@pytest.mark.parametrize("commits_since", [1, 2])
def test_older_metadata_that_has_moved_on_does_not_refuse_it(
    catalog: Catalog, *, end: str, commits_since: int
) -> None:
    """Its numbers are given a second time, so they do not say that nothing has gone."""
    first, requirements, updates, _ = second_commit(catalog)
    if end == "dropped":
        named.drop(catalog, TABLES, DEPARTURES)
    elif end == "unregistered":
        unregister(catalog, TABLES, DEPARTURES)
    elif end == "purged":
        purge_table(catalog, DEPARTURES)
    named.register(catalog, TABLES, DEPARTURES, str(first.location), overwrite=end == "registered over")
    for _ in range(commits_since):
        append_to(catalog, load_table(catalog))

    check_not_refused(catalog, requirements, updates)
    late = append(snapshot_on(first.metadata))
    with pytest.raises(RequirementFailed):
        commit_table(catalog, DEPARTURES, requirements, late)


@pytest.mark.parametrize("has_expired", [False, True])
def test_a_table_that_another_warehouse_took_over_is_looked_at(
    catalog: Catalog, *, has_expired: bool
) -> None:
    first, requirements, updates, _ = second_commit(catalog)
    let_go = unregister(catalog, TABLES, DEPARTURES)
    other = new_warehouse(catalog.server, "other", catalog.warehouse.root_location)
    namespace_in(other)
    named.register(other, TABLES, DEPARTURES, str(let_go.location))
    if has_expired:
        append_to(other, load_table(other))
        expire_all_but(other)
        catalog.files.delete(Location(str(let_go.location)))

    with pytest.raises(CommitStateUnknown, match="another warehouse"):
        commit_table(catalog, DEPARTURES, requirements, updates)
    with pytest.raises(NoSuchTable):
        commit_table(catalog, DEPARTURES, requirements, append(snapshot_on(first.metadata)))


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_file_system_table_that_was_adopted_is_looked_at(tmp_path: Path, *, is_forgotten: bool) -> None:
    tree = tree_on(tmp_path)
    table_in(tree)
    first = load_table(tree)
    beside = new_warehouse(tree.server, "rows", tree.warehouse.root_location)
    requirements = (AssertTableUuid(uuid=first.metadata.uuid), AssertRefSnapshotId(ref="main"))
    updates = append(snapshot_on(first.metadata))
    commit_table(tree, DEPARTURES, requirements, updates)
    namespace_in(beside)
    adopt_table(beside, DEPARTURES, first.metadata.location)
    if not is_forgotten:
        assert commit_table(tree, DEPARTURES, requirements, updates) == load_table(tree)
        return
    commit_to(beside, SetProperties(updates={"two": "here"}))
    for file in list(tree.files.list_files(Location(f"{first.metadata.location}/metadata"))):
        if file.location.rpartition("/")[2].startswith("v"):
            tree.files.delete(file.location)

    with pytest.raises(CommitStateUnknown, match="another warehouse"):
        commit_table(tree, DEPARTURES, requirements, updates)


def test_without_requirements_it_is_unknown_too(catalog: Catalog) -> None:
    _, updates, _ = first_commit(catalog, demanding=False)
    append_to(catalog, load_table(catalog))
    expire_all_but(catalog)

    with pytest.raises(CommitStateUnknown, match="which has expired"):
        commit_table(catalog, DEPARTURES, [], updates)


def test_a_commit_that_never_landed_is_refused_as_ever(catalog: Catalog) -> None:
    first_commit(catalog, demanding=True)
    expire_all_but(catalog)
    late = snapshot_on(load_table(catalog).metadata)
    append_to(catalog, load_table(catalog))

    with pytest.raises(RequirementFailed):
        commit_table(catalog, DEPARTURES, [AssertRefSnapshotId(ref="main", snapshot_id=None)], append(late))
    with pytest.raises(StaleUpdate):
        commit_table(catalog, DEPARTURES, [], append(late))


def test_removals_leave_a_record_and_no_work(catalog: Catalog) -> None:
    first_commit(catalog, demanding=True)
    first = load_table(catalog).metadata.snapshots[0]

    commit_table(catalog, DEPARTURES, [], [RemoveSnapshots(snapshot_ids=(first.snapshot_id,))])
    commit_table(catalog, DEPARTURES, [], [SetProperties(updates={"a": "b"})])

    assert catalog.server.file_deletions.counts() == {"done": 1}


def creation_with_rows(catalog: Catalog) -> list[Update]:
    """Return what CREATE TABLE … AS SELECT sends: the table and its first snapshot, at once."""
    namespace_in(catalog)
    updates = creation_updates()
    draft = apply_to_new(updates, START_MS).finish(None)
    return [*updates, *append(snapshot_on(draft))]


def test_a_creation_with_rows_that_is_sent_again_has_landed(catalog: Catalog) -> None:
    """On a refusal the client would delete what the table is made of."""
    updates = creation_with_rows(catalog)
    made = commit_table(catalog, DEPARTURES, [AssertCreate()], updates)
    moved_on = append_to(catalog, made)

    again = commit_table(catalog, DEPARTURES, [AssertCreate()], updates)

    assert again.location == moved_on.location


def test_a_creation_without_rows_that_is_sent_again_has_landed(catalog: Catalog) -> None:
    """A uuid is given once: only this very creation can have made the table."""
    namespace_in(catalog)
    commit_table(catalog, DEPARTURES, [AssertCreate()], creation_updates())
    moved_on = commit_table(catalog, DEPARTURES, [], [SetProperties(updates={"a": "b"})])

    again = commit_table(catalog, DEPARTURES, [AssertCreate()], creation_updates())

    assert again.location == moved_on.location


def test_a_creation_without_rows_that_is_sent_again_after_other_changes_is_unknown(catalog: Catalog) -> None:
    namespace_in(catalog)
    updates = [*creation_updates(), SetProperties(updates={"a": "b"})]
    commit_table(catalog, DEPARTURES, [AssertCreate()], updates)
    moved_on = commit_table(catalog, DEPARTURES, [], [SetProperties(updates={"a": "c"})])

    with pytest.raises(CommitStateUnknown, match="the table has the uuid"):
        commit_table(catalog, DEPARTURES, [AssertCreate()], updates)

    assert load_table(catalog, DEPARTURES).location == moved_on.location


@pytest.mark.parametrize("end", ["renamed", "dropped", "unregistered", "expired"])
@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_creation_with_rows_whose_table_is_elsewhere_now_is_unknown(
    catalog: Catalog, *, end: str, is_made_anew: bool
) -> None:
    updates = creation_with_rows(catalog)
    append_to(catalog, commit_table(catalog, DEPARTURES, [AssertCreate()], updates))
    if end == "expired":
        expire_all_but(catalog)
    elif end == "renamed":
        named.rename(catalog, TABLES, DEPARTURES, ARRIVALS)
    elif end == "dropped":
        named.drop(catalog, TABLES, DEPARTURES)
    else:
        unregister(catalog, TABLES, DEPARTURES)
    if is_made_anew and end != "expired":
        table_in(catalog)

    with pytest.raises(CommitStateUnknown):
        commit_table(catalog, DEPARTURES, [AssertCreate()], updates)
