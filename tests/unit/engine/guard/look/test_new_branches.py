"""Looking at the first commit to a new branch, whose totals writers count in two ways."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine.guard.findings import Report
from app.engine.guard.look import look_at
from app.engine.model.ids import SnapshotId
from app.engine.model.settings.guard_settings import FindingKind
from tests.builders.guarded import TABLE, Manifests, arrival, is_inside, snapshot


def looked_at(files: int, records: int | None, *, begins_branch: bool) -> Report:
    """Look at a snapshot that adds one file of ten rows to two of its parent, with these totals."""
    source = Manifests()
    parent = source.commit(
        snapshot(1, total_data_files=2, total_records=20), source.manifest("m1", 1, ("a", "b"))
    )
    totals = {"total_data_files": files} | ({} if records is None else {"total_records": records})
    made = source.commit(
        snapshot(2, 1, **totals), source.manifest("m2", 2, ["c"]), *source.lists[SnapshotId(1)]
    )
    return look_at(replace(arrival(made, parent), begins_branch=begins_branch), TABLE, source, is_inside)


@pytest.mark.parametrize(("files", "records"), [(3, 30), (1, 10)])
def test_totals_may_count_from_the_parent_or_from_zero(files: int, records: int) -> None:
    assert looked_at(files, records, begins_branch=True) == Report()


def test_totals_count_from_somewhere() -> None:
    report = looked_at(2, None, begins_branch=True)

    assert [finding.kind for finding in report.findings] == [FindingKind.SUMMARY_TOTALS]


def test_totals_of_a_branch_that_was_there_count_from_the_parent() -> None:
    report = looked_at(1, 10, begins_branch=False)

    assert [finding.kind for finding in report.findings] == [FindingKind.SUMMARY_TOTALS]
