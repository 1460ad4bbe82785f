"""Which folders a commit notes."""

from __future__ import annotations

from app.catalog.commits.files.foreign_files import MOST_FOLDERS, folders_to_note
from app.database.pointers.foreign_files import ANYWHERE
from app.engine.guard.foreign_files import ForeignFiles


def noted(*locations: str, is_known: bool = True) -> frozenset[str]:
    foreign = ForeignFiles(lambda _location: False)
    for location in locations:
        foreign.add(location)
    foreign.is_known = is_known
    return folders_to_note(foreign)


def test_nothing_is_noted_without_foreign_files() -> None:
    assert noted() == frozenset()


def test_folders_have_one_spelling() -> None:
    assert noted("file:/lake/t/data/a.parquet", "file:///lake/t/data/b.parquet") == {"file:///lake/t/data/"}


def test_a_bare_path_may_be_one_in_hdfs() -> None:
    assert noted("/lake/t/data/c.parquet") == {"file:///lake/t/data/", "hdfs:///lake/t/data/"}


def test_where_clients_read_a_path_in_different_ways_the_folder_before_it_is_noted() -> None:
    odd = (
        "s3://b/t/p=%20/a.parquet",
        "s3://b/u/../t/a.parquet",
        "s3://b/v//a.parquet",
        "s3://b/w/x?y/a.parquet",
    )

    assert noted(*odd) == {"s3://b/t/", "s3://b/u/", "s3://b/v/", "s3://b/w/"}


def test_many_folders_become_their_parents() -> None:
    assert noted(*(f"s3://b/t/data/p={number}/a" for number in range(MOST_FOLDERS + 1))) == {"s3://b/t/data/"}


def test_what_is_not_known_or_no_location_is_anywhere() -> None:
    assert noted(is_known=False) == {ANYWHERE}
    assert noted("no location", "s3://b/t/a") == {ANYWHERE, "s3://b/t/"}


def test_what_is_longer_than_any_location_is_anywhere() -> None:
    """To look for links in it, or to name its folders, takes hours and fills the memory."""
    for start in ("/", "file:///", "s3://b/"):
        assert noted(f"{start}{'a/' * (1 << 20)}f") == {ANYWHERE}
