"""Texts for people."""

from __future__ import annotations

import pytest

from app.cli.terminal.texts import exact_moment_text


@pytest.mark.parametrize(
    ("epoch_ms", "text"),
    [
        (1_763_632_800_001, "2025-11-20T10:00:00.001Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        # Half a day before the year 10000: as a fraction of seconds it would end in .998.
        (253_402_257_600_999, "9999-12-31T12:00:00.999Z"),
        (253_402_300_800_000, "253402300800000"),
        (None, ""),
    ],
)
def test_exact_times_have_every_millisecond(epoch_ms: int | None, text: str) -> None:
    assert exact_moment_text(epoch_ms) == text
