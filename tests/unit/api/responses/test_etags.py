"""ETags and If-None-Match."""

from __future__ import annotations

import pytest

from app.api.responses.etags import ETAG, etag, is_unchanged

PLACE = "s3://b/t/metadata/00001-x.metadata.json"
TAG = etag(PLACE, "1")


def test_tag_differs_by_location_and_content() -> None:
    tags = {TAG, etag("s3://b/t/metadata/00002-x.metadata.json", "1"), etag(PLACE, "2")}

    assert len(tags) == 3


def test_tag_is_quoted_and_weak() -> None:
    assert TAG.startswith(b'W/"')
    assert TAG.endswith(b'"')


def test_header_name_survives_lower_casing() -> None:
    assert ETAG.lower() == b"ETag"


STRONG = TAG.removeprefix(b"W/")


@pytest.mark.parametrize(
    "header",
    [
        TAG,
        STRONG,
        b"*",
        b" * ",
        b'"other", ' + TAG,
        b'W/"a,b", ' + STRONG + b', "z"',
        STRONG.strip(b'"'),
    ],
)
def test_header_that_names_the_tag_matches(header: bytes) -> None:
    assert is_unchanged(header, TAG)


@pytest.mark.parametrize(
    "header", [None, b"", b'"other"', b'W/"other", "another"', TAG[:-2], b"W/", b'""', b"\xff"]
)
def test_header_that_does_not_name_the_tag_does_not_match(header: bytes | None) -> None:
    assert not is_unchanged(header, TAG)
