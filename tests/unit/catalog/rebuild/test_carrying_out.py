"""Commits that are sent again after their table was rebuilt."""

from __future__ import annotations

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots
from app.engine.change.requirements import AssertRefSnapshotId, AssertTableUuid, Requirement
from app.engine.change.updates import AddSnapshot, RemoveSnapshots, SetSnapshotRef, Update
from app.engine.retention.expired_snapshots import ExpiryWish
from app.errors import CommitStateUnknown
from tests.builders.catalogs import START_MS
from tests.builders.commits import commit_table
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, append, commit_to, head, load_table, table_in
from tests.unit.catalog.rebuild.rebuilding import rebuild


def added(catalog: Catalog) -> list[Update]:
    """Return the updates of an append, whose files are written."""
    metadata = load_table(catalog).metadata
    return append(TableFiles(catalog.files).snapshot(metadata, [f"a-{metadata.last_sequence}"]))


@pytest.mark.parametrize("commits_since", [0, 1])
def test_a_commit_that_landed_before_the_loss_is_not_refused(
    lost: Catalog, found: Catalog, commits_since: int
) -> None:
    """On a refusal the client would delete manifests that the table has."""
    table_in(lost)
    first = commit_to(lost, *added(lost))
    requirements: list[Requirement] = [
        AssertTableUuid(uuid=first.metadata.uuid),
        AssertRefSnapshotId(ref="main", snapshot_id=head(first).snapshot_id),
    ]
    updates = added(lost)
    commit_table(lost, DEPARTURES, requirements, updates)
    for _ in range(commits_since):
        commit_to(lost, *added(lost))
    rebuild(found)

    assert commit_table(found, DEPARTURES, requirements, updates) == load_table(found)


def test_one_whose_snapshot_had_expired_is_unknown_while_a_snapshot_is_built_on_it(
    lost: Catalog, found: Catalog
) -> None:
    """What an expiry took out is not in any file: the records are lost with the database."""
    table_in(lost)
    commit_to(lost, *added(lost))
    updates = added(lost)
    commit_to(lost, *updates)
    commit_to(lost, *added(lost))
    expire_snapshots(lost, DEPARTURES, ExpiryRequest(ExpiryWish(older_than_ms=START_MS * 2, retain_last=1)))
    rebuild(found)

    with pytest.raises(CommitStateUnknown, match="which has expired"):
        commit_table(found, DEPARTURES, [AssertRefSnapshotId(ref="main", snapshot_id=None)], updates)


def test_a_pointer_that_is_moved_forward_leaves_a_record(lost: Catalog, found: Catalog) -> None:
    """An old backup of the database has a snapshot that was removed since."""
    table_in(lost)
    first = commit_to(lost, *added(lost))
    updates = added(lost)
    commit_to(lost, *updates)
    rebuild(found)
    back = SetSnapshotRef(ref_name="main", snapshot_id=head(first).snapshot_id, type="branch")
    (gone,) = [each.snapshot.snapshot_id for each in updates if isinstance(each, AddSnapshot)]
    commit_to(lost, back)
    commit_to(lost, RemoveSnapshots(snapshot_ids=(gone,)))
    rebuild(found)

    with pytest.raises(CommitStateUnknown, match="which has expired"):
        commit_table(found, DEPARTURES, [AssertRefSnapshotId(ref="main", snapshot_id=None)], updates)
