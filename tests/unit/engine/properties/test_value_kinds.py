"""Kinds of values: daily windows are minutes of the day."""

from __future__ import annotations

import pytest

from app.engine.properties.value_kinds import windows_of


@pytest.mark.parametrize(
    ("text", "windows"),
    [
        ("", []),
        ("22:00-06:00", [(1320, 360)]),
        (" 00:00-00:01 , 23:59-00:00", [(0, 1), (1439, 0)]),
    ],
)
def test_windows_are_minutes_from_midnight(text: str, windows: list[tuple[int, int]]) -> None:
    assert windows_of(text) == windows


@pytest.mark.parametrize(
    "text", ["24:00-01:00", "1:00-2:00", "22:00", "22:00-06:00;", "always", "22:60-23:00"]
)
def test_text_that_is_no_window_is_none(text: str) -> None:
    assert windows_of(text) is None
