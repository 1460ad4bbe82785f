from __future__ import annotations

import pytest

from app.errors import FileMissing, FilesUnavailable
from app.fileio.failures import object_store_failure

_GONE = (
    "When reading information for key 'a' in bucket 'b': AWS Error NO_SUCH_KEY during GetObject operation: The "
    "specified key does not exist. (Request ID: 1)"
)


def test_object_that_vanishes_between_its_size_and_its_content_is_missing() -> None:
    assert isinstance(object_store_failure("read", "s3://b/a", OSError(_GONE)), FileMissing)


@pytest.mark.parametrize(
    ("verb", "location", "text"),
    [("write", "s3://b/a", _GONE), ("read", "s3://b/NO_SUCH_KEY", "AWS Error UNKNOWN: b/NO_SUCH_KEY")],
    ids=["nothing was read", "a word in a path"],
)
def test_other_failures_say_nothing_about_the_object(verb: str, location: str, text: str) -> None:
    found = object_store_failure(verb, location, OSError(text))

    assert type(found) is FilesUnavailable
