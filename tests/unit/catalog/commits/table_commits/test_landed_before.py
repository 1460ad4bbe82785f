"""A commit that is sent again after its snapshot has gone is never answered as if it had failed."""

from __future__ import annotations

import pytest

from app.catalog import named
from app.catalog.commits.table_commits import TableCommit, commit_transaction
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots
from app.catalog.tables import unregister_table
from app.engine.change.apply import apply_to_new
from app.engine.change.requirements import AssertCreate, AssertRefSnapshotId, Requirement
from app.engine.change.updates import RemoveSnapshots, SetProperties, Update
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.engine.retention.expired_snapshots import ExpiryWish
from app.errors import CommitStateUnknown, RequirementFailed, StaleUpdate
from app.formats.metadata.files import MetadataFiles
from tests.builders.catalogs import START_MS, with_server
from tests.builders.commits import commit_table
from tests.builders.tables import (
    DEPARTURES,
    append,
    append_to,
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
    with pytest.raises(RequirementFailed, match="table already exists"):
        commit_table(catalog, DEPARTURES, [AssertCreate()], creation_updates())


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
        unregister_table(catalog, DEPARTURES)
    if is_made_anew and end != "expired":
        table_in(catalog)

    with pytest.raises(CommitStateUnknown):
        commit_table(catalog, DEPARTURES, [AssertCreate()], updates)
