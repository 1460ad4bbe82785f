"""Log lines and metrics."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from select import PIPE_BUF

import httpx
import orjson
import pytest

from app import telemetry
from app.telemetry import (
    FLUSH_AT_BYTES,
    MAX_LOGGED_TEXT,
    JsonLogHandler,
    LogLines,
    configure_logging,
    new_request_id,
    render_metrics,
)


class ClosedPipe(io.BytesIO):
    def write(self, _: object) -> int:
        raise BrokenPipeError


class Writes(io.RawIOBase):
    """Notes what the operating system is given in one call."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, piece: object) -> int:
        self.pieces.append(bytes(piece))  # type: ignore[call-overload]  # a buffer, for which 3.11 has no type
        return len(self.pieces[-1])


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    written = io.BytesIO()
    monkeypatch.setattr(telemetry, "log_lines", LogLines(written))
    return written


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    """The root logger, as it was afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield root
    root.handlers, root.level = handlers, level
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    logging.getLogger("uvicorn.access").disabled = False


def test_lines_wait_until_they_are_flushed() -> None:
    written = io.BytesIO()
    lines = LogLines(written)

    lines.write({"a": 1})
    waiting = written.getvalue()
    lines.flush()

    assert waiting == b""
    assert written.getvalue() == b'{"a":1}\n'


def test_many_lines_flush_themselves() -> None:
    written = io.BytesIO()
    lines = LogLines(written)

    lines.write({"a": "x" * FLUSH_AT_BYTES})

    assert len(written.getvalue()) > FLUSH_AT_BYTES


def test_lines_of_several_processes_are_not_mixed_in_a_pipe() -> None:
    writes = Writes()
    lines = LogLines(io.BufferedWriter(writes))

    for length in (*range(10, 1000, 7), PIPE_BUF + 1, 5):
        lines.write({"a": "x" * length})
    lines.flush()

    assert all(piece.endswith(b"\n") for piece in writes.pieces)
    too_long = [piece for piece in writes.pieces if len(piece) > PIPE_BUF]
    assert [piece.count(b"\n") for piece in too_long] == [1], "a pipe may cut this one line"
    assert len(writes.pieces) < 25


def test_closed_pipe_fails_nobody() -> None:
    lines = LogLines(ClosedPipe())

    lines.write({"a": 1})
    lines.flush()


def test_values_without_a_json_form_are_written_as_text() -> None:
    written = io.BytesIO()
    lines = LogLines(written)

    lines.write({"a": Path("/x")})
    lines.flush()

    assert orjson.loads(written.getvalue()) == {"a": "/x"}


def test_names_of_files_that_are_no_text_fail_nobody() -> None:
    written = io.BytesIO()
    lines = LogLines(written)

    lines.write({"message": "could not read /x/\udcff", "of": Path("/x"), "bytes": 2**70})
    lines.flush()

    assert json.loads(written.getvalue()) == {
        "message": "could not read /x/\udcff",
        "of": "/x",
        "bytes": 2**70,
    }
    assert written.getvalue().endswith(b"\n")


def test_records_of_libraries_become_the_same_lines(stream: io.BytesIO) -> None:
    logger = logging.getLogger("a.library")
    logger.propagate = False
    logger.addHandler(JsonLogHandler())
    token = telemetry.request_id.set("id-1")

    try:
        raise ZeroDivisionError("by zero")
    except ZeroDivisionError:
        logger.exception("went %s", "wrong")
    telemetry.request_id.reset(token)

    line = orjson.loads(stream.getvalue())
    assert (
        line.items()
        >= {
            "level": "error",
            "logger": "a.library",
            "message": "went wrong",
            "request_id": "id-1",
        }.items()
    )
    assert "by zero" in line["traceback"]


def test_long_messages_and_tracebacks_are_cut_in_the_middle(stream: io.BytesIO) -> None:
    logger = logging.getLogger("a.talkative.library")
    logger.propagate = False
    logger.addHandler(JsonLogHandler())

    try:
        raise ZeroDivisionError("x" * 1_000_000 + "the end")
    except ZeroDivisionError:
        logger.exception("begins %s", "x" * 1_000_000 + "the end")

    line = orjson.loads(stream.getvalue())
    assert line["message"].startswith("begins x")
    assert line["message"].endswith("xthe end")
    assert line["traceback"].endswith("xthe end\n")
    assert len(stream.getvalue()) < 2 * MAX_LOGGED_TEXT + 1000


def test_fields_of_a_record_stand_in_its_line(stream: io.BytesIO) -> None:
    logger = logging.getLogger("with.fields")
    logger.propagate = False
    logger.addHandler(JsonLogHandler())

    logger.warning("found", extra={"fields": {"table": "a.b", "snapshot_id": 7, "file": None}})

    line = orjson.loads(stream.getvalue())
    assert (line["message"], line["table"], line["snapshot_id"], line["file"]) == ("found", "a.b", 7, None)


def test_level_decides_what_is_written(stream: io.BytesIO, root_logger: logging.Logger) -> None:
    configure_logging("warning")

    logging.getLogger("some.library").info("quiet")
    logging.getLogger("some.library").warning("loud")

    assert [orjson.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["loud"]


def test_addresses_that_the_server_asks_are_not_logged(
    stream: io.BytesIO, root_logger: logging.Logger
) -> None:
    configure_logging("debug")

    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200))) as client:
        client.get("http://namenode:9870/webhdfs/v1/x?op=OPEN&delegation=hunter2")

    telemetry.log_lines.flush()
    assert stream.getvalue() == b""


def test_request_ids_differ() -> None:
    assert len({new_request_id() for _ in range(1000)}) == 1000


def test_metrics_are_rendered_without_creation_times() -> None:
    text = render_metrics().decode()

    assert "icetower_commit_retries_total" in text
    assert "_created" not in text


def test_processes_that_share_a_folder_are_added_up(tmp_path: Path) -> None:
    count = (
        "from app.telemetry import COMMIT_RETRIES, render_metrics\n"
        "COMMIT_RETRIES.inc()\n"
        "print(render_metrics().decode())"
    )
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}

    printed = [
        subprocess.run(
            [sys.executable, "-c", count], env=environment, check=True, capture_output=True, text=True
        ).stdout
        for _ in range(3)
    ]

    assert "icetower_commit_retries_total 3.0" in printed[-1]
