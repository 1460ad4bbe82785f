from __future__ import annotations

import pytest

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import Job
from app.maintenance.assignments import Assignment
from app.maintenance.job_commits import JobCommit
from app.maintenance.rewrite_position_deletes import landed, plan, verify
from app.maintenance.spark.procedures import JobRefused
from app.maintenance.spark.spark_sql import ProcedureCall


def assigned(**options: str) -> Assignment:
    given = {name.replace("_", "-"): value for name, value in options.items()}
    return Assignment(TableIdentifier(Namespace(("a",)), "t"), Job.REWRITE_POSITION_DELETES, "0" * 32, given)


def commit(removed: int, added: int) -> JobCommit:
    return JobCommit(1, 0, {"removed-delete-files": str(removed), "added-delete-files": str(added)}, {})


def test_two_files_are_enough_and_a_filter_is_an_argument() -> None:
    assert plan(assigned()).arguments == {"options": {"min-input-files": "2"}}
    assert plan(assigned(min_input_files="9", where="a = 1")).arguments == {
        "options": {"min-input-files": "9"},
        "where": "a = 1",
    }


def test_option_that_is_only_documented_is_refused() -> None:
    with pytest.raises(JobRefused, match="does not know it"):
        plan(assigned(max_files_to_rewrite="1"))


def test_gain_is_fewer_files() -> None:
    call = ProcedureCall("rewrite_position_delete_files")

    assert landed([commit(3, 1)])["rewritten-delete-files-count"] == 3
    assert verify(call, [commit(3, 1)]) is None
    assert verify(call, []) is None
    assert verify(call, [commit(2, 2)]) == "The table is no healthier: 2 delete files became 2."
