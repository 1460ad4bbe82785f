"""Listings of names, put together from texts."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from app.api.bodies.identifiers import MOST_NAMES, _kept_identifiers, identifiers_json
from app.engine.model.identifiers import Namespace

NAMES = st.text(st.sampled_from('",\\a{}[]: \n\u2028é'), min_size=1, max_size=5)


@given(st.lists(NAMES, min_size=1, max_size=2), st.lists(NAMES, max_size=4), st.none() | NAMES)
def test_a_listing_is_json_of_each_name(levels: list[str], names: list[str], token: str | None) -> None:
    listed = json.loads(identifiers_json(Namespace(tuple(levels)), tuple(names), token))

    assert listed["identifiers"] == [{"namespace": levels, "name": name} for name in names]
    assert listed.get("next-page-token") == token


def test_listings_of_one_length_and_several_namespaces_are_each_their_own() -> None:
    names = ("a", "b")

    for level in ("x", "y", "x"):
        listed = json.loads(identifiers_json(Namespace((level,)), names, None))
        assert {each["namespace"][0] for each in listed["identifiers"]} == {level}


def test_listings_that_are_too_long_to_keep_are_made_each_time() -> None:
    before = _kept_identifiers.cache_info().currsize
    names = tuple(f"t{number}" for number in range(MOST_NAMES + 1))

    listed = json.loads(identifiers_json(Namespace(("long",)), names, None))

    assert [each["name"] for each in listed["identifiers"]] == list(names)
    assert _kept_identifiers.cache_info().currsize == before
