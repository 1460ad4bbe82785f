from __future__ import annotations

import errno

import pytest

from app.errors import AccessRefused, FileMissing, FilesUnavailable
from app.fileio.failures import local_failure, object_store_failure

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


@pytest.mark.parametrize(
    "failure",
    [
        object_store_failure(
            "delete", "s3://b/a", OSError("AWS Error ACCESS_DENIED during DeleteObject operation")
        ),
        object_store_failure("delete", "abfss://c@a/b", OSError("HTTP status 403: AuthorizationFailure")),
        object_store_failure("delete", "hdfs://n/a", PermissionError("user=x, access=WRITE")),
        local_failure("delete", "file:///a", OSError(errno.EACCES, "Permission denied")),
        local_failure("delete", "file:///a", OSError(errno.EROFS, "Read-only file system")),
    ],
    ids=["S3", "Azure", "HDFS", "a folder", "a disk"],
)
def test_what_a_store_does_not_allow_was_surely_not_done(failure: Exception) -> None:
    assert isinstance(failure, AccessRefused)


@pytest.mark.parametrize(
    "failure",
    [
        object_store_failure("delete", "s3://b/403 x", OSError("AWS Error NETWORK_CONNECTION: timed out")),
        local_failure("delete", "file:///a", OSError(errno.EIO, "Input/output error")),
    ],
    ids=["S3", "a disk"],
)
def test_what_a_store_does_not_answer_may_have_been_done(failure: Exception) -> None:
    assert type(failure) is FilesUnavailable
