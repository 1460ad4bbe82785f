"""Pages and their tokens."""

from __future__ import annotations

import pytest

from app.api.responses.paging import (
    DEFAULT_PAGE_SIZE,
    MAX_PAGE_SIZE,
    numbered_page_in_query,
    page_in_query,
    page_token,
)
from app.catalog.context.listings import Page
from app.errors import InvalidPageToken, InvalidRequest

LISTING = "tables of warehouse 1, a"


def test_query_without_paging_asks_for_everything() -> None:
    assert page_in_query({}, LISTING) == Page(None, None)


def test_empty_token_asks_for_a_first_page() -> None:
    assert page_in_query({"pageToken": ""}, LISTING) == Page(None, DEFAULT_PAGE_SIZE)


def test_size_alone_asks_for_a_first_page() -> None:
    assert page_in_query({"pageSize": "7"}, LISTING) == Page(None, 7)


@pytest.mark.parametrize("name", ["a", "søster", "🧊", "x" * 255, "a.b/c d"])
def test_token_goes_on_after_the_name_it_was_made_for(name: str) -> None:
    token = page_token(name, LISTING)

    assert page_in_query({"pageToken": token, "pageSize": "2"}, LISTING) == Page(name, 2)


@pytest.mark.parametrize("name", ["", "a\x00b", "a\x1fb", "x" * 256])
def test_token_of_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidPageToken):
        page_in_query({"pageToken": page_token(name, LISTING)}, LISTING)


def test_token_is_fit_for_a_query_and_never_empty() -> None:
    token = page_token("", LISTING)

    assert token
    assert all(character.isalnum() or character in "-_" for character in token)


@pytest.mark.parametrize("token", ["x", "null", "é", "====", "AQ", "a b", page_token("a", "another listing")])
def test_foreign_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidPageToken):
        page_in_query({"pageToken": token}, LISTING)


def test_every_changed_character_of_a_token_is_noticed() -> None:
    token = page_token("paid", LISTING)

    for position, character in enumerate(token):
        changed = token[:position] + ("A" if character != "A" else "B") + token[position + 1 :]
        with pytest.raises(InvalidPageToken):
            page_in_query({"pageToken": changed}, LISTING)


@pytest.mark.parametrize("size", ["0", "-1", "1.5", "ten", "", " 1", "+1", "1e3", "²", "٣", "00"])
def test_size_that_is_no_positive_whole_number_is_refused(size: str) -> None:
    with pytest.raises(InvalidRequest, match="pageSize"):
        page_in_query({"pageSize": size}, LISTING)


@pytest.mark.parametrize("size", [str(MAX_PAGE_SIZE), str(MAX_PAGE_SIZE + 1), "9" * 5000])
def test_size_is_capped(size: str) -> None:
    assert page_in_query({"pageSize": size}, LISTING).limit == MAX_PAGE_SIZE


@pytest.mark.parametrize("number", ["0", "12", "9" * 18])
def test_listing_by_number_goes_on_after_a_number(number: str) -> None:
    assert numbered_page_in_query({"pageToken": page_token(number, LISTING)}, LISTING).after == number
    assert numbered_page_in_query({}, LISTING).after is None


@pytest.mark.parametrize("place", ["name", "\u00b2", "\u0663", "-1", "1.5", "9" * 19])
def test_listing_by_number_does_not_go_on_after_anything_else(place: str) -> None:
    with pytest.raises(InvalidPageToken):
        numbered_page_in_query({"pageToken": page_token(place, LISTING)}, LISTING)
