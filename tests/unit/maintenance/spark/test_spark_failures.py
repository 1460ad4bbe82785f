from __future__ import annotations

import pytest

from app.engine.model.jobs import JobState
from app.maintenance.spark.spark_failures import attempted, failure_of


class Py4JError(Exception):
    """As py4j raises it if the connection to the JVM breaks."""


class Py4JJavaError(Py4JError):
    """As py4j raises it for what Java threw."""


class IllegalArgumentException(Exception):
    """As PySpark raises it."""


class SparkConnectGrpcException(Exception):
    """As PySpark raises it over Connect."""


ICEBERG = "org.apache.iceberg.exceptions"
OPENING = "An error occurred while calling o48.sql.\n: "
FRAME = (
    "\n\tat org.apache.iceberg.exceptions.NotFoundException.none(NotFoundException.java:1)\n\t... 50 more\n"
)
CONFLICT = (
    f"{OPENING}java.lang.RuntimeException: Cannot commit rewrite because of a ValidationException or "
    "CommitFailedException. This usually means that this rewrite has conflicted with another concurrent Iceberg "
    f"operation.{FRAME}Caused by: org.apache.iceberg.exceptions."
)
LOST = (
    "ValidationException: Cannot commit, found new position delete for replaced data file: GenericDataFile{a}"
)
MISSING = (
    f"{OPENING}java.lang.RuntimeException: org.apache.spark.SparkException: Job aborted due to stage failure: "
    "Task 0 in stage 24.0 failed 1 times, most recent failure: Lost task 0.0 in stage 24.0 (TID 341) (driver): "
    f"{ICEBERG}.NotFoundException: File does not exist: file:/w/t/data/0.parquet"
    f"{FRAME}Caused by: java.io.FileNotFoundException: File file:/w/t/data/0.parquet does not exist"
)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (Py4JJavaError(f"{CONFLICT}{LOST}{FRAME}"), JobState.LOST),
        (Py4JJavaError(f"{CONFLICT}CommitFailedException: Commit failed: moved on{FRAME}"), JobState.FAILED),
        (
            Py4JJavaError(
                f"{OPENING}org.apache.iceberg.exceptions.CommitStateUnknownException: no answer"
                "\nCaused by: org.apache.iceberg.exceptions.CommitFailedException: x"
            ),
            JobState.UNKNOWN,
        ),
        (Py4JJavaError(MISSING), JobState.DAMAGED),
        (Py4JJavaError(f"{OPENING}java.lang.ClassNotFoundException: org.Some"), JobState.FAILED),
        (Py4JJavaError(f"{OPENING}java.io.FileNotFoundException: /tmp/shuffle/0.index"), JobState.FAILED),
        (
            Py4JJavaError(
                f"{OPENING}{ICEBERG}.ValidationException: Cannot find field 'nope' in struct: struct<1>"
            ),
            JobState.REFUSED,
        ),
        (
            Py4JJavaError(
                f"{OPENING}{ICEBERG}.ValidationException: Invalid partition field parent: list<int>"
            ),
            JobState.REFUSED,
        ),
        (
            IllegalArgumentException("Cannot use options [x], they are not supported by the action"),
            JobState.REFUSED,
        ),
        (IllegalArgumentException("Cannot parse predicates in where option: nope = 1"), JobState.REFUSED),
        (Py4JJavaError(f"{OPENING}java.lang.OutOfMemoryError: Java heap space"), JobState.FAILED),
        (
            Py4JJavaError(f"{OPENING}{ICEBERG}.RESTException: Error occurred while processing GET"),
            JobState.FAILED,
        ),
        (
            SparkConnectGrpcException("(org.apache.iceberg.exceptions.ValidationException) found new"),
            JobState.LOST,
        ),
        (
            SparkConnectGrpcException(
                "(java.lang.RuntimeException) Cannot commit rewrite because of a ValidationException or "
                "CommitFailedException."
            ),
            JobState.LOST,
        ),
    ],
)
def test_state_by_the_class_that_is_named(error: Exception, state: JobState) -> None:
    found = failure_of(error)

    assert found.state is state
    assert not found.is_connection_lost


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(111, "Connection refused"),
        Py4JError("PythonUtils does not exist in the JVM"),
        SparkConnectGrpcException(
            "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE"
        ),
    ],
)
def test_lost_connection_may_leave_spark_at_work(error: Exception) -> None:
    found = failure_of(error)

    assert (found.state, found.is_connection_lost) == (JobState.UNKNOWN, True)


@pytest.mark.parametrize(
    ("said", "file"),
    [
        ("File does not exist: file:/w/t/data/0.parquet", "file:/w/t/data/0.parquet"),
        ("Failed to open input stream for file: hdfs://w/t/data/0.parquet", "hdfs://w/t/data/0.parquet"),
        ("Location does not exist: s3://w/t/data/0.parquet", "s3://w/t/data/0.parquet"),
    ],
)
def test_missing_file_is_named(said: str, file: str) -> None:
    error = Py4JJavaError(MISSING.replace("File does not exist: file:/w/t/data/0.parquet", said))

    assert failure_of(error).missing_file == file


def test_message_is_the_sentence_and_no_stack_trace() -> None:
    found = failure_of(Py4JJavaError(f"{CONFLICT}{LOST}{'x' * 1000}{FRAME}"))

    assert found.message.startswith("Cannot commit, found new position delete for replaced data file")
    assert len(found.message) < 600
    assert failure_of(IllegalArgumentException("Cannot use options [x]")).message == "Cannot use options [x]"


def test_spark_without_iceberg_is_said_so() -> None:
    error = IllegalArgumentException("[PARSE_SYNTAX_ERROR] Syntax error at or near 'CALL'.(line 1, pos 0)")

    found = failure_of(error)

    assert (found.state, found.message[:28]) == (JobState.FAILED, "Spark does not know Iceberg:")


def test_what_works_is_returned() -> None:
    assert attempted(lambda: 3) == 3
