from __future__ import annotations

from typing import Any

import pytest

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import Job
from app.maintenance.assignments import Assignment
from app.maintenance.job_commits import JobCommit
from app.maintenance.rewrite_data_files import landed, plan, verify
from app.maintenance.spark.procedures import JobRefused
from app.maintenance.spark.spark_sql import ProcedureCall


def assigned(**options: Any) -> Assignment:
    given = {name.replace("_", "-"): value for name, value in options.items()}
    return Assignment(TableIdentifier(Namespace(("a",)), "t"), Job.REWRITE_DATA_FILES, "0" * 32, given)


def commit(**summary: int) -> JobCommit:
    return JobCommit(1, 0, {name.replace("_", "-"): str(value) for name, value in summary.items()}, {})


def test_options_of_spark_are_options_and_others_arguments() -> None:
    call = plan(assigned(min_input_files="2", strategy="sort", sort_order="zorder(a, b)", where="c = 1"))

    assert call.procedure == "rewrite_data_files"
    assert call.arguments == {
        "strategy": "sort",
        "sort_order": "zorder(a, b)",
        "where": "c = 1",
        "options": {"min-input-files": "2"},
    }


def test_numbers_are_text_for_spark_and_no_options_are_no_map() -> None:
    assert plan(assigned(min_input_files=2)).arguments == {"options": {"min-input-files": "2"}}
    assert plan(assigned()).arguments == {}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"remove_dangling_deletes": "true"}, "remove-dangling-deletes"),
        ({"strategy": "sort", "max_files_to_rewrite": "10"}, "#15576"),
        ({"sort_order": "a", "max_files_to_rewrite": "10"}, "#15576"),
        ({"branch": "b"}, "#14964"),
        ({"strategy": "binpack", "sort_order": "a"}, "no sort order"),
    ],
)
def test_what_is_known_to_do_harm_is_refused(options: dict[str, str], says: str) -> None:
    with pytest.raises(JobRefused, match=says):
        plan(assigned(**options))


def test_removal_of_dangling_deletes_may_be_said_to_be_off() -> None:
    assert plan(assigned(remove_dangling_deletes="false")).arguments == {}


def test_figures_of_what_has_landed() -> None:
    commits = [
        commit(deleted_data_files=3, added_data_files=1, removed_files_size=50, removed_delete_files=1),
        commit(deleted_data_files=2, added_data_files=1, removed_files_size=7),
    ]

    assert landed(commits) == {
        "rewritten-data-files-count": 5,
        "added-data-files-count": 2,
        "rewritten-bytes": 57,
        "removed-delete-files-count": 1,
    }


def test_as_many_files_as_before_are_no_gain_unless_deletes_went_or_they_are_sorted() -> None:
    same = [commit(deleted_data_files=2, added_data_files=2)]
    call = ProcedureCall("rewrite_data_files")

    assert verify(call, same) == "The table is no healthier: 2 data files became 2."
    assert verify(call, []) is None
    assert verify(call, [commit(deleted_data_files=2, added_data_files=1)]) is None
    assert verify(call, [*same, commit(removed_delete_files=1)]) is None
    assert verify(ProcedureCall("rewrite_data_files", {"strategy": "sort"}), same) is None
