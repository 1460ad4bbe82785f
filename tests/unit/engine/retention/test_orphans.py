"""Orphans: which spellings mean one file, and which names and ages keep a file."""

from __future__ import annotations

from typing import Any

import pytest

from app.engine.retention.orphans import NameRules, ReachedFiles, Stays, stays_by_age
from app.errors import OrphansRefused
from app.fileio.locations import loose_place_of
from tests.unit.engine.documents import part, spec_json, table


def reached(*locations: str, places: tuple[str, ...] = ("s3://lake/t/",)) -> ReachedFiles:
    found = ReachedFiles(loose_place_of, places)
    for location in locations:
        found.add(location)
    return found


@pytest.mark.parametrize(
    ("named", "listed"),
    [
        ("s3a://lake/t/data/f.parquet", "s3://lake/t/data/f.parquet"),
        ("s3n://lake/t/data/f.parquet", "s3://lake/t/data/f.parquet"),
        ("S3://lake/t/data/f.parquet", "s3://lake/t/data/f.parquet"),
        ("s3://lake/t//data/f.parquet", "s3://lake/t/data/f.parquet"),
        ("s3://lake/t/data/f.parquet", "s3://lake/t//data/f.parquet"),
        ("s3://lake/t/./data/../data/f.parquet", "s3://lake/t/data/f.parquet"),
        ("s3://lake/t/p=a%20b/f.parquet", "s3://lake/t/p=a b/f.parquet"),
        ("s3://lake/t/p=a b/f.parquet", "s3://lake/t/p=a%20b/f.parquet"),
        ("s3://lake/t/p=a%2520b/f.parquet", "s3://lake/t/p=a b/f.parquet"),
        ("s3://lake/t/f.parquet?versionId=1", "s3://lake/t/f.parquet"),
        ("s3://lake/t/e\u0301.parquet", "s3://lake/t/\u00e9.parquet"),
        ("file:/lake/t/f", "file:///lake/t/f"),
        ("/lake/t/f", "file:///lake/t/f"),
        ("abfss://c@a/t/f", "abfs://c@a/t/f"),
    ],
)
def test_spellings_of_one_file_are_one(named: str, listed: str) -> None:
    assert listed in reached(named, places=(listed.rpartition("/")[0],))


def test_another_file_is_another() -> None:
    files = reached("s3://lake/t/data/f.parquet", "s3://lake/t/data/ff.parquet")

    assert "s3://lake/t/data/g.parquet" not in files
    assert "s3://lake/t/f.parquet" not in files


@pytest.mark.parametrize(
    "named", ["s3://other/t/f", "gs://lake/t/f", "hdfs://name/t/f", "/t/f", "t/f", "lakefs://lake/t/f"]
)
def test_a_file_that_differs_only_in_its_store_refuses_the_run(named: str) -> None:
    with pytest.raises(OrphansRefused, match="differs only in its scheme or authority"):
        assert "s3://lake/t/f" in reached(named)


def test_with_places_in_two_stores_each_is_compared_with_the_other() -> None:
    files = reached("s3://one/t/f", "s3://one/t/g", places=("s3://one/t/", "s3://two/t/"))

    assert "s3://one/t/f" in files
    with pytest.raises(OrphansRefused):
        assert "s3://two/t/f" in files


@pytest.mark.parametrize(
    ("relative", "stays"),
    [
        ("data/f.parquet", None),
        ("data/_temporary/0/f.parquet", Stays.HIDDEN),
        ("_SUCCESS", Stays.HIDDEN),
        ("data/.f.parquet.crc", Stays.HIDDEN),
        ("data/_p=1/f.parquet", None),
        ("data/_p=1/_f.parquet", Stays.HIDDEN),
        ("data/_other=1/f.parquet", Stays.HIDDEN),
        ("metadata/version-hint.text", Stays.BY_NAME),
        ("metadata/v17.metadata.json", Stays.BY_NAME),
        ("metadata/v17.gz.metadata.json", Stays.BY_NAME),
        ("metadata/00017-x.metadata.json", None),
        ("metadata/v17.json", None),
    ],
)
def test_names_that_keep_a_file(relative: str, stays: Stays | None) -> None:
    specs: dict[str, Any] = {"partition-specs": [spec_json(part("_p", 1, 1000))], "last-partition-id": 1000}
    metadata = table(2, **specs)

    assert NameRules(metadata).stays(relative) is stays


@pytest.mark.parametrize(
    ("modified_ms", "stays"),
    [
        (0, Stays.UNKNOWN_AGE),
        (-1, Stays.UNKNOWN_AGE),
        (999, None),
        (1_000, Stays.YOUNG),
        (1_001, Stays.YOUNG),
    ],
)
def test_ages_that_keep_a_file(modified_ms: int, stays: Stays | None) -> None:
    assert stays_by_age(modified_ms, older_than_ms=1_000) is stays
