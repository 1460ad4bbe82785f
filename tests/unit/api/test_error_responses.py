"""What each error is answered with."""

from __future__ import annotations

import orjson
import pytest

from app import errors
from app.api.error_responses import (
    MAX_MESSAGE_LENGTH,
    MAX_TEXT_LENGTH,
    STATUS_AND_TYPE,
    body_of,
    error_body,
    is_retry_safe,
    message_for_client,
    status_and_type,
)
from app.engine.change.requirements import AssertRefSnapshotId
from app.engine.model.ids import SnapshotId
from app.errors import (
    CommitFailed,
    CommitStateUnknown,
    DanglingRef,
    DatabaseUnavailable,
    FilesUnavailable,
    IcetowerError,
    InvalidViewVersion,
    NoSuchTable,
    PointerMoved,
    RequirementFailed,
    StaleUpdate,
    Throttled,
)
from app.standings import LandedSnapshot, Standing

TREE = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, IcetowerError) and value is not IcetowerError
]


@pytest.mark.parametrize("kind", TREE)
def test_every_error_has_a_row(kind: type[IcetowerError]) -> None:
    assert kind in STATUS_AND_TYPE


def test_unexpected_exception_is_a_server_error_whose_words_are_withheld() -> None:
    error = RuntimeError("password=hunter2")

    assert status_and_type(error) == (500, "InternalServerError")
    assert "hunter2" not in message_for_client(error, "id-1")
    assert "id-1" in message_for_client(error, "id-1")


def test_error_without_a_row_is_answered_like_its_parent() -> None:
    class Novel(CommitFailed):
        pass

    assert status_and_type(Novel("x")) == (409, "CommitFailedException")


def test_verbatim_message_keeps_the_type_that_java_shows_verbatim() -> None:
    error = InvalidViewVersion("Invalid view version: Cannot add multiple queries for dialect trino")

    assert status_and_type(error) == (400, "IllegalArgumentException")
    assert message_for_client(error, "") == str(error)


@pytest.mark.parametrize("error", [DatabaseUnavailable("x"), FilesUnavailable("x"), Throttled("x")])
def test_only_errors_that_changed_nothing_may_be_sent_again(error: IcetowerError) -> None:
    assert is_retry_safe(error)
    assert status_and_type(error)[0] == 503


@pytest.mark.parametrize("error", [CommitStateUnknown("x"), RequirementFailed("x"), RuntimeError("x")])
def test_other_errors_may_not_be_sent_again(error: Exception) -> None:
    assert not is_retry_safe(error)


def test_unknown_commit_state_is_never_a_refusal() -> None:
    assert status_and_type(CommitStateUnknown("x")) == (500, "CommitStateUnknownException")


def test_body_has_message_type_and_code() -> None:
    body = error_body(404, "NoSuchTableException", "Table does not exist: a.t")

    assert orjson.loads(body) == {
        "error": {"message": "Table does not exist: a.t", "type": "NoSuchTableException", "code": 404}
    }


def test_message_with_a_lone_surrogate_can_be_sent() -> None:
    message = message_for_client(NoSuchTable("a.\ud800"), "")

    assert orjson.loads(error_body(404, "x", message))["error"]["message"] == "Table does not exist: a.?"


def test_long_message_is_cut() -> None:
    assert len(message_for_client(NoSuchTable("x" * 100_000), "")) == MAX_MESSAGE_LENGTH + 1


STANDING = Standing(
    namespace=("a b", "c"),
    name="t",
    metadata_location="s3://m",
    landed=(LandedSnapshot(5, None, 2, 1_000),),
    landed_count=7,
)


def told_of(error: CommitFailed, standing: Standing | None = None, prefix: str | None = None) -> object:
    error.standing = standing
    return orjson.loads(body_of(error, "", prefix))["error"].get("conflict")


def test_failed_requirement_is_told_for_programs() -> None:
    requirement = AssertRefSnapshotId(ref="main", snapshot_id=None)

    told = told_of(RequirementFailed("x", requirement, None, 5), STANDING, "w h")

    assert told == {
        "requirement": {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        "expected": None,
        "found": 5,
        "identifier": {"namespace": ["a b", "c"], "name": "t"},
        "metadata-location": "s3://m",
        "conflicts": "/v1/w%20h/namespaces/a%20b%1Fc/tables/t/conflicts",
        "snapshot-count": 7,
        "snapshots": [{"snapshot-id": 5, "sequence-number": 2, "timestamp-ms": 1_000}],
    }


def test_of_other_lost_races_is_told_what_is_known() -> None:
    absent = Standing(("a",), "t")

    assert told_of(StaleUpdate("x", "next-row-id", 1, 2)) == {
        "counter": "next-row-id",
        "expected": 1,
        "found": 2,
    }
    assert told_of(DanglingRef("x", "main", 5)) == {"ref": "main", "snapshot-id": 5}
    assert told_of(PointerMoved("a.t", 20), absent) == {
        "attempts": 20,
        "identifier": {"namespace": ["a"], "name": "t"},
    }
    assert told_of(RequirementFailed("x")) is None
    assert "conflict" not in orjson.loads(body_of(NoSuchTable("a.t"), "", None))


def test_texts_for_programs_can_be_sent_and_are_not_long() -> None:
    requirement = AssertRefSnapshotId(ref="\ud800" + "x" * 10_000, snapshot_id=SnapshotId(1))

    told = orjson.loads(body_of(RequirementFailed("x", requirement, 1, None), "", None))["error"]["conflict"]

    assert told["requirement"]["ref"] == "?" + "x" * (MAX_TEXT_LENGTH - 1) + "…"
