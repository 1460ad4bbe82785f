from __future__ import annotations

import time

import pytest

from app.client.http.failures import CallFailed, CatalogUnreachable, NothingSent
from app.maintenance.patience import patiently


@pytest.mark.parametrize(
    ("failure", "tries"),
    [
        (CatalogUnreachable("http://localhost:1", "refused"), 2),
        (NothingSent("http://localhost:1", "no text"), 1),
    ],
)
def test_only_what_may_get_better_is_tried_again(
    failure: CallFailed, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, pauses = [failure], list[float]()
    monkeypatch.setattr(time, "sleep", pauses.append)

    def call() -> str:
        if left:
            raise left.pop()
        return "done"

    if tries == 1:
        with pytest.raises(type(failure)):
            patiently(call)
    else:
        assert patiently(call) == "done"
    assert len(pauses) == tries - 1
