"""Field ids in bodies: clients choose them, also so that a dictionary takes seconds to be made of them."""

from __future__ import annotations

from app.api.bodies.table.appends import CountsBody, _counts
from app.api.bodies.table.conflicts import ByFieldIdBody
from tests.unit.engine.effort import calls_in

COUNT = 1_000
DOCUMENT = {"keys": list(range(COUNT)), "values": [1] * COUNT}


def test_other_threads_run_between_any_two_ids() -> None:
    """A dictionary that is made in one call of C lets no other thread run, however long that takes."""
    appended = CountsBody.model_validate(DOCUMENT)
    checked = ByFieldIdBody[int].model_validate(DOCUMENT)

    assert _counts("f", "value-counts", appended) == dict.fromkeys(range(COUNT), 1)
    assert calls_in(lambda: _counts("f", "value-counts", appended)) > COUNT
    assert dict(checked.items()) == dict.fromkeys(range(COUNT), 1)
    assert calls_in(lambda: dict(checked.items())) > COUNT
