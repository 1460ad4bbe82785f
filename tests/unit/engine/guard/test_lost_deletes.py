"""Rewrites that move files to another partition spec, while equality deletes of the old one came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.engine.guard.arrivals import Arrival
from app.engine.guard.findings import Report
from app.engine.guard.look import look_at
from app.engine.model.files.manifests import DataFile, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.settings.guard_settings import FindingKind
from app.errors import FileMissing
from tests.builders.branches import (
    BY_KIND,
    UNPARTITIONED,
    Branch,
    data_file,
    equality_deletes,
    position_deletes,
)

OLD = data_file("old", "a", (1, 10))
DELETES = equality_deletes("deletes", "a", (5, 5))
NEW = data_file("new", "a", (1, 10), spec_id=1)


class Table(Branch):
    """A branch of a table with two partition specs; all its manifests can be read."""

    missing: str | None = None

    def __init__(self, first: dict[str, Any] = BY_KIND, second: dict[str, Any] = UNPARTITIONED) -> None:
        super().__init__(first)
        specs = (*self.metadata.partition_specs, PartitionSpec.from_object({**second, "spec-id": 1}))
        self.metadata = self.metadata.replace(partition_specs=specs, default_spec_id=SpecId(1))

    def entries(self, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        found = super().entries(manifest)
        if any(entry.file.file_path == self.missing for entry in found):
            raise FileMissing(manifest.manifest_path)
        return found

    def exists(self, location: Location) -> bool:
        return location in self._entries

    def guarded(self, made: SnapshotId) -> Report:
        snapshot = self.metadata.snapshots_by_id[made]
        assert snapshot.parent_snapshot_id is not None
        parent = self.metadata.snapshots_by_id[snapshot.parent_snapshot_id]
        return look_at(Arrival(snapshot, parent, is_root=False), self.metadata, self, lambda _: True)


def after_deletes(*deletes: DataFile) -> Table:
    """Return a table with one data file, and deletes that came since it was read."""
    table = Table()
    table.commit("append", [OLD])
    table.commit("overwrite", deletes)
    return table


def kinds(report: Report) -> list[FindingKind]:
    assert report.unchecked == ()
    return [finding.kind for finding in report.findings]


def test_rows_that_came_back_are_named_with_the_deletes() -> None:
    table = after_deletes(DELETES)

    report = table.guarded(table.commit("replace", [NEW], [OLD], sequence_number=1))

    (finding,) = report.findings
    assert finding.kind is FindingKind.LOST_DELETES
    assert finding.file == OLD.file_path
    assert finding.message == (
        "snapshot 102 moves the rows of old to another partition spec with sequence number 1, where equality deletes "
        "of sequence number 2 do not apply to them any more, deletes among them; a rewrite that gives them a new "
        "number keeps the deletes (Spark's option use-starting-sequence-number=false), and so does any rewrite while "
        "the writer of these deletes is stopped"
    )


@pytest.mark.parametrize(
    ("new", "age", "why"),
    [
        (NEW, None, "rows with a new age were read with all deletes"),
        (NEW, 2, "so were these"),
        (replace(NEW, spec_id=SpecId(0)), 1, "in their own spec the deletes still apply"),
    ],
)
def test_sound_rewrites(new: DataFile, age: int | None, why: str) -> None:
    table = after_deletes(DELETES)

    assert kinds(table.guarded(table.commit("replace", [new], [OLD], sequence_number=age))) == [], why


@pytest.mark.parametrize(
    "deletes",
    [
        equality_deletes("elsewhere", "b", (5, 5)),
        equality_deletes("other ids", "a", (50, 60)),
        replace(DELETES, spec_id=SpecId(1), partition=()),
        position_deletes("positions", "a", of="old"),
    ],
    ids=lambda file: file.file_path,
)
def test_deletes_that_are_not_lost(deletes: DataFile) -> None:
    """Position deletes name their file: Iceberg itself refuses to rewrite it then."""
    table = after_deletes(deletes)

    assert kinds(table.guarded(table.commit("replace", [NEW], [OLD], sequence_number=1))) == []


def test_deletes_of_an_unpartitioned_spec_apply_everywhere() -> None:
    table = Table(UNPARTITIONED, BY_KIND)
    old = replace(OLD, partition=())
    table.commit("append", [old])
    table.commit("overwrite", [replace(DELETES, partition=())])

    assert kinds(table.guarded(table.commit("replace", [NEW], [old], sequence_number=1))) == []


def test_where_some_files_stay_in_the_spec_it_is_not_sure() -> None:
    table = after_deletes(DELETES)
    stays = replace(NEW, file_path=Location("stays"), spec_id=SpecId(0))

    assert kinds(table.guarded(table.commit("replace", [NEW, stays], [OLD], sequence_number=1))) == []


def test_only_a_rewrite_says_that_no_rows_change() -> None:
    table = after_deletes(DELETES)

    assert kinds(table.guarded(table.commit("overwrite", [NEW], [OLD], sequence_number=1))) == []


def test_deletes_that_the_rewrite_itself_removes_are_lost_just_so() -> None:
    table = after_deletes(DELETES)

    made = table.commit("replace", [NEW], [OLD, DELETES], sequence_number=1)

    assert kinds(table.guarded(made)) == [FindingKind.LOST_DELETES]


def test_deletes_that_may_have_moved_with_the_rows_are_not_lost() -> None:
    table = after_deletes(DELETES)
    moved = replace(DELETES, file_path=Location("moved"), spec_id=SpecId(1))

    made = table.commit("replace", [NEW, moved], [OLD, DELETES], sequence_number=1)

    assert kinds(table.guarded(made)) == []


def test_deletes_that_cannot_be_read_leave_it_open() -> None:
    table = after_deletes(DELETES)
    made = table.commit("replace", [NEW], [OLD], sequence_number=1)
    table.missing = DELETES.file_path

    report = table.guarded(made)

    assert report.findings == ()
    assert [skipped.snapshot_id for skipped in report.unchecked] == [made]
