"""Locations that are longer than any store has, as somebody may have written them."""

from __future__ import annotations

import pytest

from app.errors import InvalidLocation
from app.fileio.locations import folder_around, folder_name, folders_of, may_be_inside, place_of


def test_what_is_longer_than_any_name_is_in_no_folder() -> None:
    """The folders of this one, each with all before it, would take 2 TB."""
    location = "s3://b/" + "a/" * (1 << 20) + "f"

    for ask in (folders_of, folder_around, folder_name):
        with pytest.raises(InvalidLocation, match="more than 32768"):
            ask(location)
    assert place_of(location) == location
    assert not may_be_inside(location, "s3://b")
