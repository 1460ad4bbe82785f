"""Endings of jobs, as they are kept."""

from __future__ import annotations

from app.engine.model.jobs import JobState
from app.maintenance.assignments import Ending


def test_outcome_has_figures_and_remarks() -> None:
    ending = Ending(JobState.DONE, figures={"files": 3})

    assert ending.outcome() == {"files": 3}
    assert ending.with_remark("One.").with_remark("Two.").outcome() == {"files": 3, "message": "One. Two."}
