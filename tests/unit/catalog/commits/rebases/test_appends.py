"""Appends that lost a race, on a table that asks for rebases."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from app.catalog.commits.door import land_all
from app.catalog.commits.wishes import Wish
from app.catalog.context.catalog import Catalog
from app.catalog.manifests.table_manifests import TableManifests
from app.engine.change.updates import SetSnapshotRef
from app.engine.rebase.late_commits import REBASED_FROM
from app.errors import RequirementFailed
from tests.builders.racing_writers import added_by, commit, live_files, rebasing_table, recount, sent, writer
from tests.builders.tables import commit_to, load_table, table_in
from tests.builders.writing_engine import Made
from tests.unit.catalog.commits.interference import files_in


@pytest.fixture(params=[2, 3])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_append_that_lost_its_race_lands_on_the_head(catalog: Catalog, version: int) -> None:
    rebasing_table(catalog, version=version)
    commit(catalog, writer(catalog).append(["first"]))
    one, two = writer(catalog), writer(catalog)
    made, late = one.append(["a", "b"]), two.append(["c"])
    commit(catalog, made)
    before = live_files(catalog)

    landed = commit(catalog, late)

    assert landed.rebased
    after = load_table(catalog).metadata
    snapshot = after.current_snapshot
    assert snapshot is not None
    assert (snapshot.snapshot_id, snapshot.parent_snapshot_id) == (
        late.snapshot.snapshot_id,
        made.snapshot.snapshot_id,
    )
    assert snapshot.sequence == made.snapshot.sequence + 1 == after.last_sequence
    assert live_files(catalog).keys() == before.keys() | added_by(late, two)
    assert (snapshot.summary or {})[REBASED_FROM] == late.snapshot.manifest_list


def test_totals_are_those_of_the_manifests(catalog: Catalog, version: int) -> None:
    rebasing_table(catalog, version=version)
    commit(catalog, writer(catalog).append(["first"]))
    made = [writer(catalog).append([name, f"{name}{name}"]) for name in "abc"]

    for each in made:
        commit(catalog, each)

    tally, snapshot = recount(catalog), load_table(catalog).metadata.current_snapshot
    assert snapshot is not None
    assert {key: (snapshot.summary or {})[key] for key in ("total-data-files", "total-records")} == {
        "total-data-files": str(tally.data_files),
        "total-records": str(tally.records),
    }
    assert tally.data_files == 7


def test_on_a_table_that_does_not_ask_for_it_the_append_is_refused(catalog: Catalog) -> None:
    table_in(catalog)
    one, two = writer(catalog).append(["a"]), writer(catalog).append(["b"])
    commit(catalog, one)
    files = files_in(catalog)

    with pytest.raises(RequirementFailed) as refused:
        commit(catalog, two)

    assert refused.value.not_rebased is None
    assert files_in(catalog) == files


def test_appends_that_arrive_together_land_as_one_file_each_with_its_own_list(
    catalog: Catalog, version: int
) -> None:
    rebasing_table(catalog, version=version)
    made = [writer(catalog).append([name]) for name in "abcd"]
    files = files_in(catalog)
    wishes = [Wish(catalog, [sent(each)]) for each in made]

    land_all(wishes)

    metadata_files = [name for name in files_in(catalog) - files if name.endswith(".metadata.json")]
    assert len(metadata_files) == 1
    assert [wish.results()[0].rebased for wish in wishes] == [False, True, True, True]
    assert len(live_files(catalog)) == 4
    after = load_table(catalog).metadata
    assert len({item.manifest_list for item in after.snapshots}) == 4
    assert [item.parent_snapshot_id for item in after.snapshots] == [
        None,
        *(item.snapshot_id for item in after.snapshots[:-1]),
    ]


def test_commit_that_was_rebased_and_is_sent_again_is_a_success(catalog: Catalog) -> None:
    rebasing_table(catalog)
    one, two = writer(catalog).append(["a"]), writer(catalog).append(["b"])
    commit(catalog, one)
    commit(catalog, two)
    before = load_table(catalog).location

    again = commit(catalog, two)

    assert not again.changed
    assert load_table(catalog).location == before


def test_append_to_a_table_of_version_1_is_refused(catalog: Catalog) -> None:
    rebasing_table(catalog, version=1)
    one, two = writer(catalog).append(["a"]), writer(catalog).append(["b"])
    commit(catalog, one)

    with pytest.raises(RequirementFailed) as refused:
        commit(catalog, two)

    assert refused.value.not_rebased is not None
    assert refused.value.not_rebased.reason == "format"


def test_append_to_a_branch_that_stands_still_lands_though_the_tables_numbers_moved(
    catalog: Catalog, version: int
) -> None:
    rebasing_table(catalog, version=version)
    commit(catalog, writer(catalog).append(["first"]))
    commit(catalog, writer(catalog).append(["on b"], branch="b"))
    late = writer(catalog).append(["late on b"], branch="b")
    commit(catalog, writer(catalog).append(["rival on main"]))

    landed = commit(catalog, late)

    assert landed.rebase is not None
    assert landed.rebase.onto == late.snapshot.parent_snapshot_id
    assert (len(live_files(catalog)), len(live_files(catalog, "b"))) == (2, 2)


def test_branch_keeps_its_settings(catalog: Catalog) -> None:
    rebasing_table(catalog)
    commit(catalog, writer(catalog).append(["first"]))
    late = writer(catalog).append(["late"])
    rival = writer(catalog).append(["rival"])
    commit(catalog, rival)
    kept = SetSnapshotRef(
        ref_name="main", snapshot_id=rival.snapshot.snapshot_id, type="branch", min_snapshots_to_keep=7
    )
    commit_to(catalog, kept)

    commit(catalog, late)

    assert load_table(catalog).metadata.snapshot_refs["main"].min_snapshots_to_keep == 7


def test_list_may_leave_out_manifests_without_live_files(catalog: Catalog) -> None:
    """PyIceberg does."""

    def leave_out(made: Made) -> None:
        made.manifests[:] = [item for item in made.manifests if item.may_have_live_files]

    rebasing_table(catalog)
    commit(catalog, writer(catalog).append(["gone"]))
    commit(catalog, writer(catalog).delete(live_files(catalog)))
    late = writer(catalog).append(["late"], falsify=leave_out)
    commit(catalog, writer(catalog).append(["rival"]))

    assert commit(catalog, late).rebased

    assert len(live_files(catalog)) == 2


def test_what_is_kept_in_memory_is_what_a_reader_finds_in_the_files(catalog: Catalog, version: int) -> None:
    rebasing_table(catalog, version=version)
    commit(catalog, writer(catalog).append(["first"]))
    made = [writer(catalog).append([name, name]) for name in "ab"]
    for each in made:
        commit(catalog, each)
    metadata = load_table(catalog).metadata
    snapshot = metadata.current_snapshot
    assert snapshot is not None

    kept, fresh = TableManifests(catalog, metadata), writer(catalog)

    assert list(kept.manifests(snapshot)) == fresh.manifests(snapshot)
    for manifest in fresh.manifests(snapshot):
        entries = list(fresh.source.entries(manifest))
        assert list(kept.entries(manifest)) == entries
        assert all(entry.data_sequence_number == manifest.sequence_number for entry in entries)
        assert all((entry.file.first_row_id is not None) is (version > 2) for entry in entries)


def test_rebases_are_counted(catalog: Catalog) -> None:
    rebasing_table(catalog)
    commit(catalog, writer(catalog).append(["first"]))
    made = [
        writer(catalog).append(["a"]),
        writer(catalog).append(["b"]),
        writer(catalog).append(["c"], merge=True),
    ]
    commit(catalog, made[0])
    before = counted("landed", ""), counted("refused", "manifests")

    commit(catalog, made[1])
    with pytest.raises(RequirementFailed):
        commit(catalog, made[2])

    assert (counted("landed", ""), counted("refused", "manifests")) == (before[0] + 1, before[1] + 1)


def counted(outcome: str, reason: str) -> float:
    return REGISTRY.get_sample_value("icetower_rebases_total", {"outcome": outcome, "reason": reason}) or 0
