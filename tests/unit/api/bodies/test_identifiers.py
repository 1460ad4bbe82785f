"""Listings of names, put together from texts."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from app.api.bodies.identifiers import identifiers_json
from app.engine.model.identifiers import Namespace

NAMES = st.text(st.sampled_from('",\\a{}[]: \n\u2028é'), min_size=1, max_size=5)


@given(st.lists(NAMES, min_size=1, max_size=2), st.lists(NAMES, max_size=4), st.none() | NAMES)
def test_a_listing_is_json_of_each_name(levels: list[str], names: list[str], token: str | None) -> None:
    listed = json.loads(identifiers_json(Namespace(tuple(levels)), names, token))

    assert listed["identifiers"] == [{"namespace": levels, "name": name} for name in names]
    assert listed.get("next-page-token") == token
