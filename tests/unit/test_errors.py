"""Errors whose sentence is made of another one."""

from __future__ import annotations

import pytest

from app.errors import CorruptMetadata


@pytest.mark.parametrize(
    ("location", "reason", "sentence"),
    [
        (
            "s3://a/m.avro",
            "Cannot read manifest s3://a/m.avro: cut off",
            "Cannot read manifest s3://a/m.avro: cut off",
        ),
        ("s3://a/m.avro", "it is gone", "Cannot read s3://a/m.avro: it is gone"),
        (
            "s3://a/v.json",
            "Cannot read metadata: schemas is missing",
            "Cannot read s3://a/v.json: schemas is missing",
        ),
        ("", "Cannot read s3://a: b", "Cannot read s3://a: b"),
    ],
)
def test_a_file_is_named_once(location: str, reason: str, sentence: str) -> None:
    assert str(CorruptMetadata(location, reason)) == sentence
