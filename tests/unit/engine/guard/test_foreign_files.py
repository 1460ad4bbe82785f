from __future__ import annotations

import pytest

from app.engine.guard.foreign_files import ForeignFiles, few_folders
from tests.unit.engine.effort import calls_in


def test_only_files_outside_the_own_places_are_noted_by_folder() -> None:
    foreign = ForeignFiles(lambda location: location.startswith("s3://b/own/"))

    assert foreign.add("s3://b/own/data/a.parquet")
    assert not foreign.add("s3://b/other/data/a.parquet")
    assert not foreign.add("s3://b/other/data/b.parquet")

    assert foreign.folders == {"s3://b/other/data"}


@pytest.mark.parametrize(
    ("folders", "at_most", "few"),
    [
        ({"s3://b/t/p=1/", "s3://b/t/p=2/"}, 2, {"s3://b/t/p=1/", "s3://b/t/p=2/"}),
        ({"s3://b/t/p=1/", "s3://b/t/p=2/", "s3://b/u/"}, 2, {"s3://b/t/", "s3://b/u/"}),
        ({"s3://b/t/", "s3://b/t/p=1/"}, 2, {"s3://b/t/"}),
        ({"s3://b/t/", "s3://c/t/"}, 1, {"s3://b/", "s3://c/"}),
        ({"file:///a/b/c/", "file:///a/d/"}, 1, {"file:///a/"}),
    ],
)
def test_few_folders_have_all_others_in_them(folders: set[str], at_most: int, few: set[str]) -> None:
    found = few_folders(folders, at_most)

    assert found == few
    assert all(any(folder.startswith(around) for around in found) for folder in folders)


@pytest.mark.parametrize(
    ("folders", "few"),
    [
        ([f"s3://b/{number}/" + "a/" * 5_000 for number in range(20)], {"s3://b/"}),
        ([f"s3://b{number}/t/" for number in range(5_000)], {f"s3://b{number}/" for number in range(5_000)}),
    ],
    ids=["deep", "many"],
)
def test_deep_folders_and_many_stores_take_a_few_looks_at_each(folders: list[str], few: set[str]) -> None:
    assert few_folders(folders, 16) == few
    assert calls_in(lambda: few_folders(folders, 16)) < 60 * len(folders)
