"""The calls about the past: pages of what was dropped and of differences."""

from __future__ import annotations

import pytest

from app.client.http.failures import AnswerNotUnderstood
from app.client.past import PastCalls
from tests.unit.client.scripted_server import ScriptedServer, ok


def test_pages_are_turned_to_the_last() -> None:
    server = ScriptedServer(
        [
            ok({"dropped": [{"id": 2}], "next-page-token": "t"}),
            ok({"dropped": [{"id": 1}]}),
            ok({"namespaces": [{"namespace": ["a"]}], "names": [{"kind": "table"}], "next-page-token": "u"}),
            ok({"namespaces": [], "names": [{"kind": "view"}]}),
        ]
    )
    past = PastCalls(server.calls(), "v1/wh")

    assert [each["id"] for each in past.dropped()] == [2, 1]
    assert [(page["namespaces"], page["names"]) for page in past.diff("1d")] == [
        ([{"namespace": ["a"]}], [{"kind": "table"}]),
        ([], [{"kind": "view"}]),
    ]
    assert [request.url.params.get("pageToken") for request in server.requests] == ["", "t", "", "u"]


def test_a_listing_that_goes_round_is_refused() -> None:
    server = ScriptedServer([ok({"dropped": [], "next-page-token": "t"})] * 2)

    with pytest.raises(AnswerNotUnderstood, match="page token again"):
        list(PastCalls(server.calls(), "v1/wh").dropped())
