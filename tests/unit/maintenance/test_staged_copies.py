from __future__ import annotations

import pytest

from app.maintenance.staged_copies import PathChange


@pytest.mark.parametrize(
    ("location", "due"),
    [
        ("s3://old/t/data/a", "s3://newer/u/data/a"),
        ("s3://old/t", "s3://newer/u"),
        ("s3://old/tt/data/a", "s3://old/tt/data/a"),
        ("s3://other/a", "s3://other/a"),
    ],
)
def test_only_what_is_below_the_prefix_moves(location: str, due: str) -> None:
    assert PathChange("s3://old/t", "s3://newer/u").moved(location) == due
