"""Field ids in bodies: clients choose them, also so that a dictionary takes seconds to be made of them."""

from __future__ import annotations

import pytest

from app.api.bodies.json_body import Body, parse_body
from app.api.bodies.table.appends import BoundsBody, CountsBody, _counts
from app.api.bodies.table.conflicts import ByFieldIdBody
from app.errors import InvalidRequest
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


@pytest.mark.parametrize("body", [CountsBody, BoundsBody, ByFieldIdBody[int]])
def test_field_ids_are_bounded(body: type[Body]) -> None:
    def given(count: int) -> bytes:
        value = b'"00"' if body is BoundsBody else b"1"
        numbers = b",".join(b"%d" % number for number in range(count))
        return b'{"keys":[%s],"values":[%s]}' % (numbers, b",".join([value] * count))

    parse_body(body, given(10_000))
    with pytest.raises(InvalidRequest, match="keys: There should be at most 10000 items"):
        parse_body(body, given(10_001))
