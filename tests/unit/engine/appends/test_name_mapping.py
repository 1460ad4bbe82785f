"""Name mappings, compared by what they read."""

from __future__ import annotations

import pytest

from app.engine.appends.name_mapping import reads_all_of

SMALL = '[{"field-id":1,"names":["a"],"fields":[{"field-id":2,"names":["x"]}]}]'


@pytest.mark.parametrize(
    ("text", "other", "expected"),
    [
        (SMALL, SMALL, True),
        (SMALL.replace('["x"]', '["x","y"]'), SMALL, True),
        (SMALL, SMALL.replace('["x"]', '["x","y"]'), False),
        (SMALL.replace("2", "3"), SMALL, False),
        (SMALL.replace("1", "3"), SMALL, False),
        (SMALL[:-1] + ',{"names":["b"]}]', SMALL, True),
        (SMALL, '[{"names":["a"]}]', False),
        ("[]", SMALL, False),
        (SMALL, "[]", True),
        (SMALL, "no mapping", False),
        ("[1]", SMALL, False),
        ("[" * 100_000, SMALL, False),
    ],
)
def test_names_are_read_alike(text: str, other: str, expected: bool) -> None:
    assert reads_all_of(text, other) is expected
