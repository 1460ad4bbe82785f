from __future__ import annotations

import pytest

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import Job
from app.maintenance.assignments import Assignment
from app.maintenance.spark.procedures import JobRefused
from app.maintenance.table_statistics import plan

TABLE = TableIdentifier(Namespace(("a",)), "t")


def test_statistics_have_no_options() -> None:
    assert plan(Assignment(TABLE, Job.TABLE_STATISTICS, "0" * 32)).arguments == {}
    with pytest.raises(JobRefused, match="columns was given"):
        plan(Assignment(TABLE, Job.TABLE_STATISTICS, "0" * 32, {"columns": "a"}))
