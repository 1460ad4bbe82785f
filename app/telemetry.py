"""Structured logs, request ids, counters and timings."""

from __future__ import annotations

import itertools
import json
import logging
import os
import secrets
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from select import PIPE_BUF
from typing import BinaryIO

import orjson
from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

request_id: ContextVar[str] = ContextVar("icetower_request_id", default="")
"""The id of the request being answered; empty outside of one."""

# Each counter would bring a second series with its creation time, which has no use here.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it untyped

REQUESTS = Counter("icetower_requests", "Requests answered.", ["method", "route", "status"])
REQUEST_SECONDS = Histogram(
    "icetower_request_duration_seconds",
    "Time from the request line to the last byte of the answer handed over.",
    ["method", "route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
COMMITS = Counter("icetower_commits", "Commits by how they ended.", ["kind", "outcome"])
COMMIT_RETRIES = Counter("icetower_commit_retries", "Commit attempts that lost a race and went round again.")
COMMITS_TOGETHER = Histogram(
    "icetower_commits_together",
    "How many commits one move of a pointer has landed.",
    buckets=(1, 2, 4, 8, 16, 32, 64),
)
RACES_LOST = Counter("icetower_races_lost", "Attempts to land that another process was faster than.")
METADATA_READS = Counter(
    "icetower_metadata_reads", "Metadata wanted, by whether the cache had it.", ["cache"]
)
ANSWER_READS = Counter("icetower_answer_reads", "Load answers wanted, by whether they were ready.", ["cache"])
REBASES = Counter(
    "icetower_rebases",
    "Commits that lost a race where rebases are asked for, and why not.",
    ["outcome", "reason"],
)
CLIENT_REPORTS = Counter("icetower_client_reports", "Metrics reports that clients sent.", ["type"])
REPLAYS = Counter("icetower_idempotent_replays", "Mutations answered from their Idempotency-Key.")
GUARD_FINDINGS = Counter(
    "icetower_guard_findings", "What the guard found in commits, and what came of it.", ["kind", "outcome"]
)
GUARDED_SNAPSHOTS = Counter("icetower_guarded_snapshots", "New snapshots the guard looked at.", ["outcome"])
FILE_DELETIONS = Counter("icetower_file_deletions", "Purges worked off, by how they ended.", ["outcome"])
WAITING_DELETIONS = Gauge(
    "icetower_file_deletions_waiting",
    "Entries of the queue of file deletions that have failed and wait, on all servers.",
    multiprocess_mode="mostrecent",
)

FLUSH_AT_BYTES = 64 * 1024
MAX_LOGGED_TEXT = 16 * 1024
"""Of a longer message or traceback in a line, beginning and end are logged."""

# A number is some forty times cheaper than a random value for every request.
_process = secrets.token_hex(6)
_numbers = itertools.count(1)


def _become_another_process() -> None:
    global _process  # noqa: PLW0603 - a forked process has the memory of the first, and must not have its ids
    _process = secrets.token_hex(6)
    log_lines.forget()


os.register_at_fork(after_in_child=_become_another_process)


class LogLines:
    """A buffered writer of one JSON object a line, flushed by size, on errors and by a timer."""

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = stream
        self._lines: list[bytes] = []
        self._size_bytes = 0
        self._lock = threading.Lock()

    def write(self, record: Mapping[str, object]) -> None:
        """Append one record; values that JSON has no form for are written as their text."""
        try:
            line = orjson.dumps(record, default=str, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError:
            # Half of a surrogate pair, as in names of files that are no text, or a large number.
            line = json.dumps(record, default=_text_of).encode() + b"\n"
        with self._lock:
            self._lines.append(line)
            self._size_bytes += len(line)
            if self._size_bytes >= FLUSH_AT_BYTES:
                self._flush_locked()

    def flush(self) -> None:
        """Write all buffered lines to the stream."""
        with self._lock:
            self._flush_locked()

    def forget(self) -> None:
        """Forget what is buffered, in a forked process: the first one writes it."""
        self._lock = threading.Lock()
        self._lines, self._size_bytes = [], 0

    def _flush_locked(self) -> None:
        if not self._lines:
            return
        # Looked up late, so that a captured or redirected standard output is the one written to.
        stream = self._stream if self._stream is not None else sys.stdout.buffer
        lines, self._lines = self._lines, []
        self._size_bytes = 0
        try:
            for piece in _pieces(lines):
                stream.write(piece)
                stream.flush()
        except (OSError, ValueError):
            # A closed pipe must not fail requests; the lines have nowhere to go.
            return


def _text_of(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines in pieces that a pipe takes as a whole: other processes write to it."""
    piece = b""
    for line in lines:
        if piece and len(piece) + len(line) > PIPE_BUF:
            yield piece
            piece = b""
        piece += line
    yield piece


log_lines = LogLines()


class JsonLogHandler(logging.Handler):
    """Writes records of `logging` as the same JSON lines; `extra={"fields": …}` adds to them."""

    def emit(self, record: logging.LogRecord) -> None:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": loggable(record.getMessage()),
        }
        current = request_id.get()
        if current:
            line["request_id"] = current
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            line["traceback"] = loggable("".join(traceback.format_exception(record.exc_info[1])))
        log_lines.write(line)
        if record.levelno >= logging.WARNING:
            log_lines.flush()


def configure_logging(level: str) -> None:
    """Send every record of the standard `logging` module, from `level` up, to the JSON lines."""
    root = logging.getLogger()
    root.handlers = [JsonLogHandler()]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = True
    # They log whole URLs, and WebHDFS is given tokens in those.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # The front door writes a line for each request that says more.
    access = logging.getLogger("uvicorn.access")
    # As long as a handler could get them, uvicorn puts its lines together.
    access.handlers.clear()
    access.propagate = False


def loggable(text: str) -> str:
    """Return a text as a log line has it: what is in the middle of a very long one is left out."""
    if len(text) <= MAX_LOGGED_TEXT:
        return text
    half = MAX_LOGGED_TEXT // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters left out … {text[-half:]}"


def new_request_id() -> str:
    """Return an id that no other request has, in this process or another."""
    return f"{_process}-{next(_numbers):06x}"


def render_metrics(more: Iterable[Metric] = ()) -> bytes:
    """Return all metrics in the Prometheus text format, of all workers that share a directory.

    Args:
        more: metrics that are made at this moment, of this process alone.
    """
    own = CollectorRegistry()
    own.register(_Made(list(more)))
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY) + generate_latest(own)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library leaves it untyped
    return generate_latest(registry) + generate_latest(own)


class _Made(Collector):
    """Metrics that are there already."""

    def __init__(self, made: list[Metric]) -> None:
        self._made = made

    def collect(self) -> Iterable[Metric]:
        return self._made
