from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine.guard.lists import (
    Claim,
    Tally,
    claims,
    compare_lists,
    tally_of_entries,
    tally_of_lists,
)
from app.engine.model.files.manifests import FileContent, ManifestFile
from app.engine.model.ids import SnapshotId
from tests.builders.guarded import Manifests, snapshot

SOURCE = Manifests()
OLD, MERGED, NEW = (
    SOURCE.manifest("old", 1, ["a", "b"]),
    SOURCE.manifest("merged", 2, [], ["a"], ["b"]),
    SOURCE.manifest("new", 2, ["c"]),
)
DELETES = SOURCE.manifest("deletes", 2, ["d"], content=FileContent.POSITION_DELETES)


def test_manifests_are_told_apart_by_their_paths() -> None:
    renumbered = replace(OLD, sequence_number=9)

    lists = compare_lists(SnapshotId(2), [NEW, renumbered], [OLD, DELETES])

    assert lists.new == (NEW,)
    assert lists.kept == ((OLD, renumbered),)
    assert lists.gone == (DELETES,)
    assert lists.is_whole
    assert list(lists.listed) == [NEW, renumbered]


def test_without_the_parent_s_list_only_what_a_snapshot_says_it_wrote_is_new() -> None:
    lists = compare_lists(SnapshotId(2), [NEW, OLD], None)

    assert (lists.new, lists.kept, lists.gone, lists.is_whole) == ((NEW,), ((None, OLD),), (), False)


def test_lists_and_entries_tally_alike() -> None:
    manifests = (OLD, MERGED, NEW, DELETES)
    entries = [entry for item in manifests for entry in SOURCE.contents[item.manifest_path]]

    assert tally_of_lists(manifests) == tally_of_entries(entries) == Tally(4, 1, 40)


@pytest.mark.parametrize(
    "manifest", [replace(OLD, added_files_count=None), replace(OLD, existing_rows_count=None)]
)
def test_lists_without_counts_tally_nothing(manifest: ManifestFile) -> None:
    assert tally_of_lists([NEW, manifest]) is None


def test_delete_files_need_no_count_of_rows() -> None:
    assert tally_of_lists([replace(DELETES, added_rows_count=None)]) == Tally(delete_files=1)


def test_claims_are_changes_of_what_the_parent_tells() -> None:
    parent = snapshot(1, total_data_files=2, total_records=20)
    made = snapshot(2, 1, total_data_files=3, total_records=31, total_delete_files=1)

    found = claims(made, parent)

    assert found == [Claim("total-data-files", 2, 3), Claim("total-records", 20, 31)]
    come, gone = Tally(data_files=1, records=10), Tally()
    assert [claim.holds(come, gone) for claim in found] == [True, False]


def test_claims_without_a_parent_start_at_nothing() -> None:
    assert claims(snapshot(1, total_delete_files=0), None) == [Claim("total-delete-files", 0, 0)]


def test_claims_of_parents_and_snapshots_without_summaries_are_none() -> None:
    silent = snapshot(1, None, None)

    assert claims(snapshot(2, 1, total_records=1), silent) == []
    assert claims(silent, None) == []
