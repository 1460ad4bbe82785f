"""Commits that are sent again, and those that only look like it."""

from __future__ import annotations

from typing import Literal

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.named import unregister
from app.engine.change.requirements import (
    AssertCreate,
    AssertRefSnapshotId,
    AssertTableUuid,
)
from app.engine.change.updates import (
    AddSnapshot,
    RemoveProperties,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetLocation,
    SetProperties,
    SetSnapshotRef,
    Update,
    UpgradeFormatVersion,
)
from app.engine.model.ids import Location, TableUuid
from app.errors import (
    CommitStateUnknown,
    NotAllowed,
    RequirementFailed,
)
from tests.builders.commits import commit_table
from tests.builders.derived_requirements import requirements_for
from tests.builders.tables import (
    DEPARTURES,
    append,
    append_to,
    head,
    load_table,
    namespace_in,
    snapshot_on,
    table_in,
)
from tests.unit.catalog.commits.interference import ARRIVALS, creation_updates

NO_MAIN = AssertRefSnapshotId(ref="main", snapshot_id=None)


def test_repeated_commit_of_a_snapshot_is_answered_with_the_table_as_it_is(catalog: Catalog) -> None:
    created = table_in(catalog)
    updates = append(snapshot_on(created.metadata))
    requirements = requirements_for(created.metadata, updates)
    first = commit_table(catalog, DEPARTURES, requirements, updates)

    again = commit_table(catalog, DEPARTURES, requirements, updates)

    assert again.location == first.location


@pytest.mark.parametrize("end", [None, "renamed", "dropped", "unregistered"])
def test_repeated_commit_may_spell_the_uuid_in_another_case(catalog: Catalog, end: str | None) -> None:
    """As clients do that parse it and print it, where the table has it in upper case."""
    namespace_in(catalog)
    new = creation_updates("ABCDEFAB-1111-1111-1111-111111111111")
    created = commit_table(catalog, DEPARTURES, [AssertCreate()], new)
    requirements = AssertTableUuid(uuid=TableUuid(created.metadata.uuid.lower())), NO_MAIN
    updates = append(snapshot_on(created.metadata))
    first = commit_table(catalog, DEPARTURES, requirements, updates)

    if end is None:
        assert commit_table(catalog, DEPARTURES, requirements, updates).location == first.location
        return
    if end == "renamed":
        named.rename(catalog, TABLES, DEPARTURES, ARRIVALS)
    elif end == "dropped":
        named.drop(catalog, TABLES, DEPARTURES)
    else:
        unregister(catalog, TABLES, DEPARTURES)
    with pytest.raises(CommitStateUnknown, match="has landed before"):
        commit_table(catalog, DEPARTURES, requirements, updates)


def test_repeated_commit_of_a_snapshot_that_lists_its_manifests_itself_is_known(catalog: Catalog) -> None:
    """As old writers of version 1 do. On a refusal the client would delete these manifests."""
    created = table_in(catalog, properties={"format-version": "1"})
    made = snapshot_on(created.metadata).replace(
        manifest_list=None, manifests=("memory://wh/t/metadata/m.avro",)
    )
    requirements = requirements_for(created.metadata, append(made))
    first = commit_table(catalog, DEPARTURES, requirements, append(made))

    assert commit_table(catalog, DEPARTURES, requirements, append(made)).location == first.location
    other = made.replace(manifests=("memory://wh/t/metadata/n.avro",))
    with pytest.raises(RequirementFailed):
        commit_table(catalog, DEPARTURES, requirements, append(other))


@pytest.mark.parametrize("is_gone", [False, True])
def test_repeated_commit_to_a_table_that_is_only_looked_at_by_now_is_not_refused(
    catalog: Catalog, *, is_gone: bool
) -> None:
    """On a refusal the client would delete files that the table uses in the catalog that it was moved to."""
    created = append_to(catalog, table_in(catalog))
    updates, rival = (append(snapshot_on(created.metadata)) for _ in range(2))
    now = commit_table(catalog, DEPARTURES, [], updates)
    if is_gone:
        landed = head(now).snapshot_id
        append_to(catalog, now)
        now = commit_table(catalog, DEPARTURES, [], [RemoveSnapshots(snapshot_ids=(landed,))])
    assert now.location is not None
    named.register(catalog, TABLES, DEPARTURES, now.location, overwrite=True, read_only=True)

    if is_gone:
        with pytest.raises(CommitStateUnknown):
            commit_table(catalog, DEPARTURES, [], updates)
    else:
        assert commit_table(catalog, DEPARTURES, [], updates).location == now.location
    with pytest.raises(NotAllowed):
        commit_table(catalog, DEPARTURES, [], rival)


def test_repeated_commit_is_one_also_when_others_came_after_it_or_main_was_moved_back(
    catalog: Catalog,
) -> None:
    first = append_to(catalog, table_in(catalog))
    updates = append(snapshot_on(first.metadata))
    landed = commit_table(catalog, DEPARTURES, [], updates)
    on_top = append_to(catalog, landed)

    assert (
        commit_table(catalog, DEPARTURES, [AssertRefSnapshotId(ref="main")], updates).location
        == on_top.location
    )

    back = SetSnapshotRef(ref_name="main", snapshot_id=head(first).snapshot_id, type="branch")
    moved = commit_table(catalog, DEPARTURES, [], [back])
    assert (
        commit_table(catalog, DEPARTURES, [AssertRefSnapshotId(ref="main")], updates).location
        == moved.location
    )


def test_repeated_commit_is_one_if_all_else_that_it_asks_for_is_there(catalog: Catalog) -> None:
    created = table_in(catalog)
    updates = [SetProperties(updates={"a": "1"}), *append(snapshot_on(created.metadata))]
    first = commit_table(catalog, DEPARTURES, [], updates)

    assert commit_table(catalog, DEPARTURES, [], updates).location == first.location


@pytest.mark.parametrize(
    "more",
    [
        SetProperties(updates={"a": "1"}),
        RemoveProperties(removals=("kept",)),
        SetLocation(location=Location("memory://wh/flights/elsewhere")),
        UpgradeFormatVersion(format_version=3),
    ],
)
def test_commit_that_asks_for_more_than_has_landed_is_not_answered_as_done(
    catalog: Catalog, more: Update
) -> None:
    created = table_in(catalog, properties={"kept": "1"})
    updates = append(snapshot_on(created.metadata))
    landed = commit_table(catalog, DEPARTURES, [], updates)

    with pytest.raises(CommitStateUnknown, match="but not all else that the commit asks for"):
        commit_table(catalog, DEPARTURES, [], [*updates, more])

    assert load_table(catalog, DEPARTURES).location == landed.location


def test_commit_to_another_table_is_no_repetition(catalog: Catalog) -> None:
    updates = append(snapshot_on(table_in(catalog).metadata))
    landed = commit_table(catalog, DEPARTURES, [], updates)
    other = AssertTableUuid(uuid=TableUuid("11111111-1111-4111-8111-111111111111"))

    with pytest.raises((RequirementFailed, CommitStateUnknown)):
        commit_table(catalog, DEPARTURES, [other], updates)

    assert load_table(catalog, DEPARTURES).location == landed.location


@pytest.mark.parametrize("rebase", [{}, {"icetower.rebase": "appends"}])
@pytest.mark.parametrize("has_main", [False, True])
def test_snapshot_that_was_only_staged_can_be_sent_again_with_main(
    catalog: Catalog, has_main: bool, rebase: dict[str, str]
) -> None:
    before = table_in(catalog, properties=rebase)
    if has_main:
        before = append_to(catalog, before)
    updates = append(snapshot_on(before.metadata))
    staged = commit_table(catalog, DEPARTURES, [], updates[:1])
    requirements = requirements_for(before.metadata, updates)

    landed = commit_table(catalog, DEPARTURES, requirements, updates)

    assert head(landed).snapshot_id == staged.metadata.snapshots[-1].snapshot_id
    assert landed.metadata.snapshots == staged.metadata.snapshots
    assert commit_table(catalog, DEPARTURES, requirements, updates).location == landed.location


def test_staged_snapshot_that_comes_too_late_for_main_is_refused_as_any_other(catalog: Catalog) -> None:
    before = append_to(catalog, table_in(catalog))
    updates = append(snapshot_on(before.metadata))
    staged = commit_table(catalog, DEPARTURES, [], updates[:1])
    others = append_to(catalog, staged)

    with pytest.raises(RequirementFailed):
        commit_table(catalog, DEPARTURES, requirements_for(before.metadata, updates), updates)

    assert load_table(catalog, DEPARTURES).location == others.location


def test_staged_snapshot_may_have_been_on_a_main_that_has_no_log_any_more(catalog: Catalog) -> None:
    """The log is empty because the last entry's snapshot is gone, not because main never was."""
    updates = append(snapshot_on(table_in(catalog).metadata))
    first = commit_table(catalog, DEPARTURES, [], updates)
    tag = SetSnapshotRef(ref_name="kept", snapshot_id=head(first).snapshot_id, type="tag")
    second = append_to(catalog, commit_table(catalog, DEPARTURES, [], [tag]))
    gone: list[Update] = [
        RemoveSnapshotRef(ref_name="main"),
        RemoveSnapshots(snapshot_ids=(head(second).snapshot_id,)),
    ]
    without_main = commit_table(catalog, DEPARTURES, [], gone)
    assert without_main.metadata.snapshot_log == ()

    with pytest.raises(CommitStateUnknown):
        commit_table(catalog, DEPARTURES, [NO_MAIN], updates)

    assert load_table(catalog, DEPARTURES).location == without_main.location


@pytest.mark.parametrize("kind", ["branch", "tag"])
@pytest.mark.parametrize("others", [0, 3])
def test_snapshot_that_was_only_staged_can_be_sent_again_with_a_new_ref(
    catalog: Catalog, kind: Literal["branch", "tag"], others: int
) -> None:
    before = append_to(catalog, table_in(catalog))
    snapshot = snapshot_on(before.metadata)
    staged = commit_table(catalog, DEPARTURES, [], [AddSnapshot(snapshot=snapshot)])
    for _ in range(others):
        staged = append_to(catalog, staged)
    move = SetSnapshotRef(ref_name="audit", snapshot_id=snapshot.snapshot_id, type=kind)
    free = AssertRefSnapshotId(ref="audit")
    updates: list[Update] = [AddSnapshot(snapshot=snapshot), move]

    landed = commit_table(catalog, DEPARTURES, [free], updates)

    assert landed.metadata.snapshot_refs["audit"].snapshot_id == snapshot.snapshot_id
    assert landed.metadata.snapshots == staged.metadata.snapshots
    assert head(landed) == head(staged)
    assert commit_table(catalog, DEPARTURES, [free], updates).location == landed.location
    commit_table(catalog, DEPARTURES, [], [RemoveSnapshotRef(ref_name="audit")])
    with pytest.raises(CommitStateUnknown):
        commit_table(catalog, DEPARTURES, [free], updates)


def test_staged_snapshot_can_be_sent_again_with_a_branch_that_is_elsewhere(catalog: Catalog) -> None:
    before = append_to(catalog, table_in(catalog))
    audit = SetSnapshotRef(ref_name="audit", snapshot_id=head(before).snapshot_id, type="branch")
    before = commit_table(catalog, DEPARTURES, [], [audit])
    updates = append(snapshot_on(before.metadata), "audit")
    commit_table(catalog, DEPARTURES, [], updates[:1])

    with pytest.raises(RequirementFailed):
        commit_table(catalog, DEPARTURES, [AssertRefSnapshotId(ref="audit")], updates)
    is_there = AssertRefSnapshotId(ref="audit", snapshot_id=head(before).snapshot_id)
    landed = commit_table(catalog, DEPARTURES, [is_there], updates)

    assert landed.metadata.snapshot_refs["audit"].snapshot_id == landed.metadata.snapshots[-1].snapshot_id


@pytest.mark.parametrize("how", ["deleted", "cut off", "registered"])
def test_what_older_metadata_does_not_tell_of_a_staged_snapshot_is_unknown(
    catalog: Catalog, how: str
) -> None:
    before = append_to(catalog, table_in(catalog))
    updates = append(snapshot_on(before.metadata), "audit")
    staged = append_to(catalog, commit_table(catalog, DEPARTURES, [], updates[:1]))
    if how == "deleted":
        catalog.files.delete(staged.metadata.metadata_log[-1].metadata_file)
    elif how == "cut off":
        few = SetProperties(updates={"write.metadata.previous-versions-max": "1"})
        commit_table(catalog, DEPARTURES, [], [few])
    else:
        unregister(catalog, TABLES, DEPARTURES)
        named.register(catalog, TABLES, DEPARTURES, staged.location or "")

    with pytest.raises(CommitStateUnknown):
        commit_table(catalog, DEPARTURES, [AssertRefSnapshotId(ref="audit")], updates)

    assert "audit" not in load_table(catalog, DEPARTURES).metadata.snapshot_refs
