from __future__ import annotations

import pytest

from app.maintenance.job_commits import JobCommit

PARENT = {"total-records": "10", "total-data-files": "3", "total-delete-files": "1", "total-files-size": "90"}
SUMMARY = {
    "deleted-records": "10",
    "added-records": "9",
    "deleted-data-files": "3",
    "added-data-files": "1",
    "removed-delete-files": "1",
    "removed-files-size": "90",
    "added-files-size": "40",
    "total-records": "9",
    "total-data-files": "1",
    "total-delete-files": "0",
    "total-files-size": "40",
}


def test_totals_follow_from_the_parents() -> None:
    assert JobCommit(2, 1, SUMMARY, PARENT).wrong_totals() == []


@pytest.mark.parametrize(
    "total", ["total-records", "total-data-files", "total-delete-files", "total-files-size"]
)
def test_each_total_that_does_not_follow_is_named(total: str) -> None:
    (wrong,) = JobCommit(2, 1, {**SUMMARY, total: "77"}, PARENT).wrong_totals()

    assert wrong == f"snapshot 2 has {total} 77, and {SUMMARY[total]} is due"


@pytest.mark.parametrize("text", ["many", "", "-3", "1e3", "9" * 30])
def test_totals_of_others_that_are_no_counts_are_not_compared(text: str) -> None:
    broken = dict.fromkeys(PARENT, text)

    assert JobCommit(2, 1, SUMMARY, broken).wrong_totals() == []
    assert JobCommit(2, 1, {**SUMMARY, "deleted-data-files": text}, {}).number("deleted-data-files") == 0
    assert len(JobCommit(2, 1, {**SUMMARY, "total-records": text}, PARENT).wrong_totals()) == 1


def test_totals_that_a_writer_left_out_are_not_compared() -> None:
    assert JobCommit(2, 1, SUMMARY, {}).wrong_totals() == []
    assert JobCommit(2, 1, {}, PARENT).wrong_totals() == []
