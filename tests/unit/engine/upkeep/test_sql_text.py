from __future__ import annotations

import pytest

from app.engine.upkeep.sql_text import literal, quoted


@pytest.mark.parametrize(
    ("part", "due"),
    [("a", "`a`"), ("a.b", "`a.b`"), ("a`b", "`a``b`"), ("`", "````"), ("a b", "`a b`"), ("it's", "`it's`")],
)
def test_part_of_a_name_is_quoted(part: str, due: str) -> None:
    assert quoted(part) == due


@pytest.mark.parametrize(
    ("text", "due"),
    [("a", "'a'"), ("it's", "'it\\'s'"), ("\\", "'\\\\'"), ("\\'", "'\\\\\\''"), ('"', "'\"'")],
)
def test_text_is_a_literal(text: str, due: str) -> None:
    assert literal(text) == due
