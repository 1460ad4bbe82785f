from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine.guard.findings import Report
from app.engine.guard.look import look_at
from app.engine.model.files.manifests import FileContent
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.settings.guard_settings import FindingKind
from app.engine.model.snapshot import Snapshot
from app.errors import FilesUnavailable
from tests.builders.guarded import ROOT, TABLE, Manifests, arrival, is_inside, snapshot, without_counts


@pytest.fixture
def source() -> Manifests:
    return Manifests()


def looked_at(source: Manifests, made: Snapshot, parent: Snapshot | None = None) -> Report:
    return look_at(arrival(made, parent), TABLE, source, is_inside)


def kinds(report: Report) -> list[FindingKind]:
    return [finding.kind for finding in report.findings]


def first_append(source: Manifests, *names: str, **summary: int) -> Snapshot:
    return source.commit(snapshot(1, **summary), source.manifest("m1", 1, names or ("a", "b")))


CLEAN = Report()


class TestSoundSnapshots:
    def test_first_append(self, source: Manifests) -> None:
        made = first_append(source, total_data_files=2, total_records=20, total_delete_files=0)

        assert looked_at(source, made) == CLEAN

    def test_append_that_keeps_every_manifest_opens_only_its_own(self, source: Manifests) -> None:
        parent = first_append(source, total_data_files=2, total_records=20)
        made = source.commit(
            snapshot(2, 1, total_data_files=3, total_records=30),
            source.manifest("m2", 2, ["c"]),
            *source.lists[SnapshotId(1)],
        )

        assert looked_at(source, made, parent) == CLEAN
        assert [path.rpartition("/")[2] for path in source.opened] == [
            "list-2.avro",
            "list-1.avro",
            "m2.avro",
        ]

    def test_append_that_merges_manifests_is_cleared_without_opening_those_it_merged(
        self, source: Manifests
    ) -> None:
        parent = first_append(source, total_data_files=2, total_records=20)
        made = source.commit(
            snapshot(2, 1, total_data_files=3, total_records=30), source.manifest("m2", 2, ["c"], ["a", "b"])
        )

        assert looked_at(source, made, parent) == CLEAN
        assert f"{ROOT}/metadata/m1.avro" not in source.opened

    def test_manifests_without_counts_are_compared_by_their_files(self, source: Manifests) -> None:
        old = without_counts(source.manifest("m1", 1, ["a", "b"]))
        parent = source.commit(snapshot(1, total_data_files=2, total_records=20), old)
        merged = without_counts(source.manifest("m2", 2, ["c"], ["a", "b"]))
        made = source.commit(snapshot(2, 1, total_data_files=3, total_records=30), merged)

        assert looked_at(source, made, parent) == CLEAN

    def test_overwrite_and_delete_may_drop_files(self, source: Manifests) -> None:
        parent = first_append(source, total_data_files=2, total_records=20)
        for operation in ("overwrite", "delete", "replace"):
            made = source.commit(
                snapshot(2, 1, operation, total_data_files=1, total_records=10),
                source.manifest("m2", 2, [], ["a"], ["b"]),
            )

            assert looked_at(source, made, parent) == CLEAN

    def test_snapshot_without_summary_claims_nothing(self, source: Manifests) -> None:
        parent = first_append(source)
        made = source.commit(snapshot(2, 1, None))

        assert looked_at(source, made, parent) == CLEAN

    def test_snapshot_without_files(self, source: Manifests) -> None:
        assert looked_at(source, source.commit(snapshot(1, total_records=0, total_data_files=0))) == CLEAN

    def test_manifests_with_nothing_alive_may_be_left_out(self, source: Manifests) -> None:
        parent = source.commit(snapshot(1), source.manifest("m1", 1, [], [], ["a"]))
        made = source.commit(snapshot(2, 1), source.manifest("m2", 2, ["b"]))

        assert looked_at(source, made, parent) == CLEAN

    def test_delete_files_older_than_every_data_file_may_be_left_out(self, source: Manifests) -> None:
        deletes = source.manifest("d1", 1, ["d"], content=FileContent.POSITION_DELETES)
        parent = source.commit(snapshot(2, 1, "delete"), deletes, source.manifest("m2", 2, ["a"]))
        made = source.commit(snapshot(3, 2), source.manifest("m3", 3, ["b"]), source.manifest("m2", 2, ["a"]))

        assert looked_at(source, made, parent) == CLEAN

    def test_files_that_merged_manifests_carry_over_may_lie_anywhere(self, source: Manifests) -> None:
        elsewhere = "memory://wh/imported/a.parquet"
        parent = source.commit(snapshot(1), source.manifest("m1", 1, [elsewhere]))
        made = source.commit(snapshot(2, 1), source.manifest("m2", 2, ["c"], [elsewhere]))

        assert looked_at(source, made, parent) == CLEAN

    def test_wrong_totals_that_were_there_before_are_not_this_writers(self, source: Manifests) -> None:
        parent = first_append(source, total_data_files=77, total_records=7)
        made = source.commit(
            snapshot(2, 1, total_data_files=78, total_records=17),
            source.manifest("m2", 2, ["c"]),
            *source.lists[SnapshotId(1)],
        )

        assert looked_at(source, made, parent) == CLEAN

    def test_wrong_counts_in_a_list_are_no_contradiction_while_the_manifests_agree(
        self, source: Manifests
    ) -> None:
        one_for_all = replace(source.manifest("m1", 1, ["a", "b", "c"]), added_files_count=1)
        made = source.commit(snapshot(1, total_data_files=3, total_records=30), one_for_all)

        assert looked_at(source, made) == CLEAN

    def test_duplicates_that_a_delete_removed_at_once_are_not_counted_again(self, source: Manifests) -> None:
        parent = source.commit(
            snapshot(1, total_data_files=2, total_records=20), source.manifest("m1", 1, ["a", "a"])
        )
        made = source.commit(
            snapshot(2, 1, "delete", total_data_files=1, total_records=10, deleted_duplicate_files=1),
            source.manifest("m2", 2, [], [], ["a", "a"]),
        )

        assert looked_at(source, made, parent) == CLEAN

    def test_version_1_has_no_sequence_numbers(self, source: Manifests) -> None:
        old = replace(source.manifest("m1", 1, ["a"]), sequence_number=0, min_sequence_number=0)
        source.contents[old.manifest_path] = [
            replace(entry, data_sequence_number=0, file_sequence_number=0)
            for entry in source.contents[old.manifest_path]
        ]
        parent = source.commit(snapshot(1).replace(sequence_number=None), old)
        made = source.commit(snapshot(2, 1).replace(sequence_number=None), old)

        assert looked_at(source, made, parent) == CLEAN

    def test_parent_that_was_expired_leaves_only_the_own_manifests_to_look_at(
        self, source: Manifests
    ) -> None:
        old = source.manifest("m1", 1, ["a"])
        made = source.commit(snapshot(2, 1, total_data_files=9), source.manifest("m2", 2, ["b"]), old)

        assert looked_at(source, made, None) == CLEAN
        assert f"{ROOT}/metadata/m1.avro" not in source.opened


class TestDroppedFiles:
    def test_manifest_left_out(self, source: Manifests) -> None:
        parent = first_append(source, "a", "b")
        made = source.commit(snapshot(2, 1), source.manifest("m2", 2, ["c"]))

        (finding,) = looked_at(source, made, parent).findings

        assert finding.kind is FindingKind.DROPPED_FILES
        assert finding.message == (
            "snapshot 2 says append, but lacks 2 of the data files of its parent 1, "
            f"{ROOT}/data/a.parquet among them"
        )
        assert (finding.snapshot_id, finding.file) == (2, f"{ROOT}/data/a.parquet")

    def test_file_left_out_of_a_merged_manifest(self, source: Manifests) -> None:
        parent = first_append(source, "a", "b")
        made = source.commit(snapshot(2, 1), source.manifest("m2", 2, ["c"], ["b"]))

        (finding,) = looked_at(source, made, parent).findings

        assert finding.file == f"{ROOT}/data/a.parquet"

    def test_file_left_out_where_lists_count_nothing(self, source: Manifests) -> None:
        parent = source.commit(snapshot(1), without_counts(source.manifest("m1", 1, ["a", "b"])))
        made = source.commit(snapshot(2, 1), without_counts(source.manifest("m2", 2, ["c"], ["b"])))

        assert kinds(looked_at(source, made, parent)) == [FindingKind.DROPPED_FILES]

    def test_delete_file_that_still_applies(self, source: Manifests) -> None:
        data = source.manifest("m1", 1, ["a"])
        deletes = source.manifest("d2", 2, ["d"], content=FileContent.EQUALITY_DELETES)
        parent = source.commit(snapshot(2, 1, "delete"), data, deletes)
        made = source.commit(snapshot(3, 2), data, source.manifest("m3", 3, ["b"]))

        (finding,) = looked_at(source, made, parent).findings

        assert "lacks 1 of the delete files of its parent 2" in finding.message

    def test_beyond_the_budget_the_lists_are_enough_when_nothing_was_carried_over(
        self, source: Manifests
    ) -> None:
        source.left_bytes = 1300  # two lists and the new manifest, but not the one that is gone
        parent = first_append(source, "a", "b")
        made = source.commit(snapshot(2, 1), source.manifest("m2", 2, ["c"]))

        (finding,) = looked_at(source, made, parent).findings

        assert finding.kind is FindingKind.DROPPED_FILES
        assert "lacks 2 of the data files" in finding.message
        assert finding.file == f"{ROOT}/metadata/m1.avro"

    def test_beyond_the_budget_a_doubt_is_no_finding(self, source: Manifests) -> None:
        source.left_bytes = 1300
        parent = first_append(source, "a", "b")
        made = source.commit(snapshot(2, 1), source.manifest("m2", 2, ["c"], ["b"]))

        report = looked_at(source, made, parent)

        assert report.findings == ()
        assert "takes more reading than is allowed" in report.unchecked[0].reason


class TestSummaryTotals:
    @pytest.mark.parametrize("key", ["total_data_files", "total_records", "total_delete_files"])
    def test_total_that_the_manifests_contradict(self, source: Manifests, key: str) -> None:
        sound = {"total_data_files": 2, "total_records": 20, "total_delete_files": 0}
        made = first_append(source, **{**sound, key: sound[key] + 5})

        (finding,) = looked_at(source, made).findings

        assert finding.kind is FindingKind.SUMMARY_TOTALS
        told, true = sound[key] + 5, sound[key]
        assert finding.message == (
            f"snapshot 1 says {key.replace('_', '-')} {told} after 0, but its manifests change that by {true}, "
            f"to {true}"
        )

    def test_total_that_falls_though_files_were_only_added(self, source: Manifests) -> None:
        parent = first_append(source, total_data_files=2)
        made = source.commit(
            snapshot(2, 1, total_data_files=1), source.manifest("m2", 2, ["c"]), *source.lists[SnapshotId(1)]
        )

        assert kinds(looked_at(source, made, parent)) == [FindingKind.SUMMARY_TOTALS]

    def test_beyond_the_budget_lists_alone_convict_nobody(self, source: Manifests) -> None:
        source.left_bytes = 100
        made = first_append(source, total_data_files=9)

        report = looked_at(source, made)

        assert report.findings == ()
        assert any("totals could not be compared" in item.reason for item in report.unchecked)

    @pytest.mark.parametrize("text", ["", "-1", "two", "1e3", "٣"])
    def test_total_that_is_no_number_is_passed_over(self, source: Manifests, text: str) -> None:
        made = first_append(source)
        made = made.replace(summary={"operation": "append", "total-data-files": text})

        assert looked_at(source, made) == CLEAN


class TestMissingFiles:
    def test_manifest_list(self, source: Manifests) -> None:
        made = first_append(source)
        assert made.manifest_list is not None
        source.gone.add(made.manifest_list)

        (finding,) = looked_at(source, made).findings

        assert finding.kind is FindingKind.MISSING_FILE
        assert finding.file == made.manifest_list

    @pytest.mark.parametrize("budget", [1_000_000, 150])
    def test_new_manifest_whether_it_would_be_read_or_only_looked_for(
        self, source: Manifests, budget: int
    ) -> None:
        made = first_append(source)
        source.left_bytes = budget
        source.gone.add(f"{ROOT}/metadata/m1.avro")

        (finding,) = looked_at(source, made).findings

        assert finding.kind is FindingKind.MISSING_FILE
        assert finding.file == f"{ROOT}/metadata/m1.avro"

    def test_stores_are_asked_only_so_often(self, source: Manifests) -> None:
        made = first_append(source)
        source.left_bytes, source.looks = 150, 0
        source.gone.add(f"{ROOT}/metadata/m1.avro")

        assert looked_at(source, made).findings == ()

    @pytest.mark.parametrize("name", ["list-1", "m1"])
    def test_what_went_missing_before_is_not_this_writers(self, source: Manifests, name: str) -> None:
        parent = first_append(source)
        made = source.commit(
            snapshot(2, 1), source.manifest("m2", 2, ["c"]), source.manifest("m1", 1, ["a", "b"])
        )
        source.gone.add(f"{ROOT}/metadata/{name}.avro")

        assert looked_at(source, made, parent).findings == ()


class TestOutsideLocations:
    def test_added_files(self, source: Manifests) -> None:
        made = first_append(source, "a", "memory://wh/other/b.parquet", "s3://x/c.parquet")

        (finding,) = looked_at(source, made).findings

        assert finding.kind is FindingKind.OUTSIDE_LOCATION
        assert finding.file == "memory://wh/other/b.parquet"
        assert finding.message.endswith("memory://wh/other/b.parquet and 1 more")

    def test_manifest(self, source: Manifests) -> None:
        manifest = replace(source.manifest("m1", 1, ["a"]), manifest_path=Location("memory://wh/x/m1.avro"))
        source.contents[manifest.manifest_path] = source.contents[Location(f"{ROOT}/metadata/m1.avro")]

        assert kinds(looked_at(source, source.commit(snapshot(1), manifest))) == [
            FindingKind.OUTSIDE_LOCATION
        ]

    def test_manifest_list(self, source: Manifests) -> None:
        made = first_append(source).replace(manifest_list="memory://wh/x/list.avro")

        assert kinds(looked_at(source, made)) == [FindingKind.OUTSIDE_LOCATION]


class TestSequenceNumbers:
    @pytest.mark.parametrize(
        ("number", "lowest"),
        [(3, 2), (2, 3), (-1, -1), (1, 1)],
        ids=["above the snapshot's", "lowest above its own", "not assigned", "new, but with an older number"],
    )
    def test_new_manifest(self, source: Manifests, number: int, lowest: int) -> None:
        manifest = replace(
            source.manifest("m2", 2, ["a"]), sequence_number=number, min_sequence_number=lowest
        )
        source.contents[manifest.manifest_path] = ()

        found = looked_at(source, source.commit(snapshot(2), manifest))

        assert kinds(found) == [FindingKind.SEQUENCE_NUMBERS]
        assert found.findings[0].file == manifest.manifest_path

    def test_inherited_manifest_with_another_number_than_before(self, source: Manifests) -> None:
        parent = first_append(source)
        (old,) = source.lists[SnapshotId(1)]
        made = source.commit(snapshot(2, 1), replace(old, sequence_number=2, min_sequence_number=2))

        assert kinds(looked_at(source, made, parent)) == [FindingKind.SEQUENCE_NUMBERS]

    def test_inherited_manifest_above_the_snapshot_of_a_forgotten_parent(self, source: Manifests) -> None:
        made = source.commit(snapshot(2, 1), source.manifest("m5", 5, ["a"]))

        assert kinds(looked_at(source, made, None)) == [FindingKind.SEQUENCE_NUMBERS]

    def test_snapshot_not_above_its_parent(self, source: Manifests) -> None:
        parent = first_append(source)
        made = source.commit(snapshot(2, 1).replace(sequence_number=1), *source.lists[SnapshotId(1)])

        assert kinds(looked_at(source, made, parent)) == [FindingKind.SEQUENCE_NUMBERS]

    @pytest.mark.parametrize(("data", "file"), [(3, 2), (2, 3), (-1, 2), (1, 2)])
    def test_entry(self, source: Manifests, data: int, file: int) -> None:
        manifest = source.manifest("m2", 2, ["a", "b"])
        entries = source.contents[manifest.manifest_path]
        source.contents[manifest.manifest_path] = [
            entries[0],
            replace(entries[1], data_sequence_number=data, file_sequence_number=file),
        ]

        found = looked_at(source, source.commit(snapshot(2), manifest))

        assert kinds(found) == [FindingKind.SEQUENCE_NUMBERS]
        assert f"{ROOT}/data/b.parquet" in found.findings[0].message


class TestWhatCannotBeLookedAt:
    @pytest.mark.parametrize("name", ["list-2", "list-1", "m2"])
    def test_unreadable_file_is_no_finding(self, source: Manifests, name: str) -> None:
        parent = first_append(source, total_data_files=2)
        made = source.commit(
            snapshot(2, 1, total_data_files=9),
            source.manifest("m2", 2, ["c"]),
            *source.lists[SnapshotId(1)],
        )
        source.broken.add(f"{ROOT}/metadata/{name}.avro")

        report = looked_at(source, made, parent)

        assert report.findings == ()
        assert f"{name}.avro" in report.unchecked[0].reason

    def test_unreadable_manifest_that_is_gone_from_the_list(self, source: Manifests) -> None:
        parent = first_append(source, "a", "b", total_data_files=2)
        made = source.commit(snapshot(2, 1, total_data_files=9), source.manifest("m2", 2, ["c"], ["b"]))
        source.broken.add(f"{ROOT}/metadata/m1.avro")

        report = looked_at(source, made, parent)

        assert report.findings == ()
        assert len(report.unchecked) == 3  # the manifest, the totals, the files

    @pytest.mark.parametrize("trouble", ["gone", "broken", "late"])
    def test_totals_are_no_finding_while_a_manifest_that_went_cannot_be_read(
        self, source: Manifests, trouble: str
    ) -> None:
        parent = source.commit(
            snapshot(1, total_data_files=2), without_counts(source.manifest("m1", 1, ["a", "b"]))
        )
        made = source.commit(snapshot(2, 1, "overwrite", total_data_files=9), source.manifest("m2", 2, ["c"]))
        getattr(source, trouble).add(f"{ROOT}/metadata/m1.avro")

        report = looked_at(source, made, parent)

        assert report.findings == ()
        assert [item.reason for item in report.unchecked][1:] == [
            "its summary's totals could not be compared with all manifests"
        ]

    def test_new_manifest_that_turns_out_unreadable_half_way(self, source: Manifests) -> None:
        made = first_append(source, "s3://x/outside.parquet", "b", total_data_files=9)
        source.late.add(f"{ROOT}/metadata/m1.avro")

        report = looked_at(source, made)

        assert kinds(report) == [FindingKind.OUTSIDE_LOCATION]
        assert "breaks off" in report.unchecked[0].reason

    def test_lost_delete_files_are_not_told_from_lists_alone(self, source: Manifests) -> None:
        data = source.manifest("m1", 1, ["a"])
        deletes = source.manifest("d2", 2, ["d"], content=FileContent.EQUALITY_DELETES)
        parent = source.commit(snapshot(2, 1, "delete"), data, deletes)
        made = source.commit(snapshot(3, 2), data)
        source.left_bytes = 200

        report = looked_at(source, made, parent)

        assert report.findings == ()
        assert "takes more reading than is allowed" in report.unchecked[0].reason

    def test_no_budget_at_all(self, source: Manifests) -> None:
        made = first_append(source)
        source.left_bytes = 0

        report = looked_at(source, made)

        assert report.findings == ()
        assert source.opened == []
        assert "larger than may be read" in report.unchecked[0].reason

    def test_budget_for_one_list_only(self, source: Manifests) -> None:
        parent = first_append(source)
        made = source.commit(snapshot(2, 1))
        source.left_bytes = 100

        report = looked_at(source, made, parent)

        assert report.findings == ()
        assert "parent's manifest list is larger" in report.unchecked[0].reason

    def test_encrypted_manifest_lists_are_left_alone(self, source: Manifests) -> None:
        parent = first_append(source)
        made = source.commit(snapshot(2, 1))

        own = looked_at(source, made.replace(key_id="k"), parent)
        parents = looked_at(source, made, parent.replace(key_id="k"))

        assert own.findings == parents.findings == ()
        assert "encrypted" in own.unchecked[0].reason
        assert "encrypted" in parents.unchecked[0].reason

    def test_store_that_does_not_answer(self, source: Manifests) -> None:
        made = first_append(source)
        assert made.manifest_list is not None
        source.unavailable.add(made.manifest_list)

        with pytest.raises(FilesUnavailable):
            looked_at(source, made)
