"""Clients that take their time, keep connections for nothing, or still send when they are answered."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli.server import lingering, unread
from tests.bad_input.wire import chunked
from tests.builders.http_catalog import http_catalog, make_namespace, make_table, set_properties

PATIENCE_SECONDS = 60
LIMIT = 100_000
MUCH = b"x" * 30_000_000
"""More than fits into the buffers between two sockets."""
HEAD = b"Host: localhost\r\nContent-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n" % len(MUCH)
PART = 400_000
LARGE_HEAD = b"POST /v1/namespaces HTTP/1.1\r\n" + HEAD + b"Content-Length: 400000\r\n\r\n"
LARGE_BODY = json.dumps({"namespace": ["large"], "properties": {"x": "y" * 399_000}}).encode().ljust(400_000)
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


LOAD = b"GET /v1/namespaces/a/tables/large HTTP/1.1\r\nHost: localhost\r\n\r\n"
LARGE = {f"k{number}": "v" * 290 for number in range(30_000)}
"""Properties of a table: an answer with them is larger than the buffers between two sockets."""


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with http_catalog(tmp_path_factory.mktemp("patient"), max_body_bytes=LIMIT) as api:
        yield api


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("hasty")
    limits: dict[str, Any] = dict.fromkeys(
        ("request_head_seconds", "request_body_seconds", "idle_connection_seconds"), 0.3
    )
    with http_catalog(folder, **limits) as api:
        make_namespace(api, "a")
        make_large_table(api)
        yield api


def make_large_table(api: httpx.Client) -> None:
    make_table(api, "a", "large")
    # Packed, the answer is short enough for any buffer: a busy machine may read it late.
    api.post(
        "/v1/namespaces/a/tables/large",
        json=set_properties(**LARGE),
        headers={"accept-encoding": "gzip"},
    ).raise_for_status()


def connected(api: httpx.Client) -> socket.socket:
    return socket.create_connection(("127.0.0.1", api.base_url.port or 0), PATIENCE_SECONDS)


def answer_on(connection: socket.socket) -> tuple[int, str]:
    """Read one answer: its status, and its type if it is an error."""
    response = HTTPResponse(connection)
    response.begin()
    body = response.read()
    return response.status, json.loads(body)["error"]["type"] if response.status >= 400 else ""


@pytest.mark.parametrize(
    ("head", "body", "expected"),
    [
        (b"POST /v1/namespaces HTTP/1.1\r\n" + HEAD + LENGTH, MUCH, (413, "RequestTooLargeException")),
        (
            b"POST /v1/namespaces HTTP/1.1\r\n" + HEAD + CHUNKED,
            chunked(MUCH),
            (413, "RequestTooLargeException"),
        ),
        (
            b"POST /v1/namespaces HTTP/1.1\r\nHost: evil.example\r\n" + LENGTH,
            MUCH,
            (403, "ForbiddenException"),
        ),
        (
            b"POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\n" + CHUNKED,
            chunked(MUCH),
            (415, "UnsupportedMediaTypeException"),
        ),
        (b"POST /v1/nothing HTTP/1.1\r\n" + HEAD + CHUNKED, chunked(MUCH), (404, "NoSuchRouteException")),
        (
            b"PUT /v1/namespaces HTTP/1.1\r\n" + HEAD + CHUNKED,
            chunked(MUCH),
            (405, "MethodNotAllowedException"),
        ),
        (b"GET /v1/config HTTP/1.1\r\nX: " + MUCH + b"\r\n\r\n", b"", (431, "RequestTooLargeException")),
        (
            b"POST /v1/namespaces HTTP/1.1\r\n" + HEAD + CHUNKED + b"zz\r\n",
            MUCH,
            (400, "BadRequestException"),
        ),
    ],
    ids=["length", "chunks", "host", "type", "route", "method", "head", "malformed"],
)
def test_client_that_sends_everything_first_sees_the_refusal(
    patient: httpx.Client, head: bytes, body: bytes, expected: tuple[int, str]
) -> None:
    with closing(connected(patient)) as connection:
        connection.sendall(head + body)

        assert answer_on(connection) == expected
        assert connection.recv(1) == b""


def test_refusal_ends_the_connection_of_a_client_that_never_ends(
    patient: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lingering, "LINGER_SECONDS", 0.3)
    with closing(connected(patient)) as connection:
        connection.sendall(
            b"POST /v1/namespaces HTTP/1.1\r\n" + HEAD + b"Content-Length: 99999999999\r\n\r\n"
        )
        answered = answer_on(connection)

        with pytest.raises(OSError):  # noqa: PT011 - a reset or a broken pipe
            send_until_refused(connection)

    assert answered == (413, "RequestTooLargeException")


def send_until_refused(connection: socket.socket) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        connection.sendall(b"x" * 1000)


def test_connection_goes_on_after_a_refusal_of_a_request_that_came_whole(patient: httpx.Client) -> None:
    request = b"POST /v1/namespaces HTTP/1.1\r\n" + HEAD + b"Content-Length: 2\r\n\r\n{}"
    with closing(connected(patient)) as connection:
        connection.sendall(request)
        first = answer_on(connection)
        connection.sendall(request)

        assert first == answer_on(connection) == (400, "BadRequestException")


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"GET /v1/config HTTP/1.1\r\nHost: local", (408, "RequestTimeoutException")),
        (b"G", (408, "RequestTimeoutException")),
        (
            b"POST /v1/namespaces HTTP/1.1\r\n" + HEAD + b"Content-Length: 9\r\n\r\n{",
            (408, "RequestTimeoutException"),
        ),
        (
            b"POST /v1/namespaces HTTP/1.1\r\n" + HEAD + CHUNKED + b"1\r\n{\r\n",
            (408, "RequestTimeoutException"),
        ),
    ],
    ids=["head", "a letter", "body", "chunks"],
)
def test_request_that_does_not_come_whole_is_given_up(
    hasty: httpx.Client, sent: bytes, expected: tuple[int, str]
) -> None:
    with closing(connected(hasty)) as connection:
        connection.sendall(sent)

        assert answer_on(connection) == expected
        assert connection.recv(1) == b""


@pytest.mark.parametrize(
    "head", [b"GET /", b"POST /v1/namespaces HTTP/1.1\r\n" + HEAD + LENGTH], ids=["head", "body"]
)
def test_trickle_does_not_buy_time(hasty: httpx.Client, head: bytes) -> None:
    pause = threading.Event()
    with closing(connected(hasty)) as connection:
        connection.sendall(head)
        connection.settimeout(0.05)
        received = b""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not received and time.monotonic() < deadline:
            connection.send(b"x")
            pause.wait(0.02)
            try:
                received = connection.recv(100)
            except TimeoutError:
                continue

    assert received.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_idle_connection_is_closed_without_a_word(hasty: httpx.Client, sent: bytes) -> None:
    with closing(connected(hasty)) as connection:
        connection.sendall(sent)
        if len(sent) > 2:
            assert answer_on(connection) == (200, "")
            connection.sendall(b"\r\n")

        assert connection.recv(1) == b""


def test_slow_but_steady_body_is_waited_for(tmp_path: Path) -> None:
    # Each part buys seconds, which a busy machine may need.
    body = json.dumps({"namespace": ["slow"]}).encode() + b" " * 10_000_000
    pause = threading.Event()
    with http_catalog(tmp_path, request_body_seconds=1.0) as api, closing(connected(api)) as connection:
        began_s = time.monotonic()
        head = b"POST /v1/namespaces HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(body)
        connection.sendall(head + body[:PART])
        for start in range(PART, len(body), PART):
            pause.wait(0.05)
            connection.sendall(body[start : start + PART])

        assert answer_on(connection) == (200, "")
    assert time.monotonic() - began_s > 1.0


def test_idle_connections_make_room_for_others(tmp_path: Path) -> None:
    with http_catalog(tmp_path, max_connections=8) as api, ExitStack() as stack:
        idle = [stack.enter_context(closing(connected(api))) for _ in range(30)]
        half = stack.enter_context(closing(connected(api)))
        half.sendall(b"POST /v1/namespaces HTTP/1.1\r\n" + HEAD + b"Content-Length: 22\r\n\r\n")
        more = [stack.enter_context(closing(connected(api))) for _ in range(30)]

        assert api.get("/health").is_success
        half.sendall(b'{"namespace":["half"]}')
        assert answer_on(half) == (200, "")
        assert [is_closed(connection) for connection in idle] == [True] * 30
        assert [is_closed(connection) for connection in more[:20]] == [True] * 20


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_server_whose_connections_are_all_at_work_refuses_all_but_health(tmp_path: Path) -> None:
    go_on, at_work = threading.Event(), threading.Semaphore(0)

    def step(_name: str) -> None:
        at_work.release()
        assert go_on.wait(PATIENCE_SECONDS)

    with http_catalog(tmp_path, max_connections=4, step=step) as api, ExitStack() as stack:
        go_on.set()
        make_namespace(api, "a")
        for number in range(4):  # of one table only one commit is at work
            make_table(api, "a", f"t{number}")
        api.close()
        go_on.clear()
        while at_work.acquire(blocking=False):
            pass
        body = json.dumps(set_properties(x="1")).encode()
        head = b"POST /v1/namespaces/a/tables/t%d HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n"
        busy = [stack.enter_context(closing(connected(api))) for _ in range(4)]
        for number, connection in enumerate(busy):
            connection.sendall(head % (number, len(body)) + body)
            assert at_work.acquire(timeout=PATIENCE_SECONDS)
        with httpx.Client(base_url=api.base_url) as other:
            health = other.get("/health")
        with httpx.Client(base_url=api.base_url) as other:
            refused = other.get("/v1/namespaces")
        go_on.set()
        answers = [answer_on(connection) for connection in busy]

    assert health.status_code == 200
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["error"]["type"] == "ServiceUnavailableException"
    assert answers == [(200, "")] * 4


def test_noise_behind_a_commit_is_not_answered_for_it(tmp_path: Path) -> None:
    """A 400 would say that the commit certainly did not happen."""
    go_on, at_work = threading.Event(), threading.Event()

    def step(_name: str) -> None:
        at_work.set()
        assert go_on.wait(PATIENCE_SECONDS)

    with http_catalog(tmp_path, step=step) as api:
        go_on.set()
        make_namespace(api, "a")
        make_table(api, "a", "t")
        go_on.clear()
        at_work.clear()
        body = json.dumps(set_properties(x="1")).encode()
        with closing(connected(api)) as connection:
            connection.sendall(
                b"POST /v1/namespaces/a/tables/t HTTP/1.1\r\n"
                + HEAD
                + b"Content-Length: %d\r\n\r\n" % len(body)
                + body
            )
            assert at_work.wait(PATIENCE_SECONDS)
            connection.sendall(b"\x00\x01 noise\r\n\r\n")

            assert is_closed(connection)
        go_on.set()
        deadline = time.monotonic() + PATIENCE_SECONDS
        found = None
        while found is None and time.monotonic() < deadline:
            found = api.get("/v1/namespaces/a/tables/t").json()["metadata"]["properties"].get("x")

    assert found == "1"


def test_too_many_large_bodies_wait_and_are_then_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.api.entrance.body_budget.WAIT_SECONDS", 0.3)
    with http_catalog(tmp_path, max_bodies_bytes=1_000_000) as api, ExitStack() as stack:
        holding = [stack.enter_context(closing(connected(api))) for _ in range(2)]
        for connection in holding:
            connection.sendall(LARGE_HEAD + b" ")
        wait_for_requests(api, 2)
        third = stack.enter_context(closing(connected(api)))
        third.sendall(LARGE_HEAD + b" ")
        refused = answer_on(third)
        small = api.post("/v1/namespaces", json={"namespace": ["small"]})
        holding[0].close()
        fourth = stack.enter_context(closing(connected(api)))
        fourth.sendall(LARGE_HEAD + LARGE_BODY)

        assert refused == (503, "ServiceUnavailableException")
        assert small.status_code == 200
        assert answer_on(fourth) == (200, "")


def test_large_bodies_that_come_slowly_make_way_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.api.entrance.body_budget.SLOW_SECONDS", 0.2)
    with http_catalog(tmp_path, max_bodies_bytes=500_000) as api, ExitStack() as stack:
        slow, large = (stack.enter_context(closing(connected(api))) for _ in range(2))
        slow.sendall(LARGE_HEAD + b" ")
        wait_for_requests(api, 1)
        large.sendall(LARGE_HEAD + LARGE_BODY)

        assert answer_on(large) == (200, "")
        assert answer_on(slow) == (503, "ServiceUnavailableException")


def wait_for_requests(api: httpx.Client, _count: int) -> None:
    """Let the server read what was sent before: an answer on a later connection comes after that."""
    with httpx.Client(base_url=api.base_url) as other:
        for _ in range(3):
            other.get("/health").raise_for_status()


def commit(number: int, *, ends: bool) -> bytes:
    """Return a commit to the large table, whose answer goes out in one part."""
    body = json.dumps(set_properties(x=str(number))).encode()
    head = b"POST /v1/namespaces/a/tables/large HTTP/1.1\r\n" + HEAD
    if ends:
        head += b"Connection: close\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def unwilling(api: httpx.Client, sent: bytes) -> socket.socket:
    """Return a connection that is sent something, and takes little of what is sent back."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(PATIENCE_SECONDS)
    connection.connect(("127.0.0.1", api.base_url.port or 0))
    connection.sendall(sent)
    return connection


def is_reset(connection: socket.socket, seconds: float = PATIENCE_SECONDS) -> bool:
    """Wait for the end of a connection without reading from it."""
    poll = select.poll()
    poll.register(connection, 0)
    return bool(poll.poll(seconds * 1000))


@pytest.mark.parametrize(
    "sent",
    [
        LOAD,
        LOAD * 3,
        LOAD.replace(b"\r\n", b"\r\nConnection: close\r\n", 1),
        commit(1, ends=False),
        commit(2, ends=True),
    ],
    ids=["parts", "pipelined", "parts, then the end", "one part", "one part, then the end"],
)
def test_client_that_does_not_read_is_given_up(hasty: httpx.Client, sent: bytes) -> None:
    with closing(unwilling(hasty, sent)) as connection:
        assert is_reset(connection)


def test_client_that_does_not_read_and_has_ended_is_given_up(hasty: httpx.Client) -> None:
    with closing(unwilling(hasty, LOAD)) as connection:
        connection.recv(1)
        connection.shutdown(socket.SHUT_WR)

        assert is_reset(connection)


def test_client_that_reads_in_a_trickle_is_given_up(hasty: httpx.Client) -> None:
    with closing(unwilling(hasty, LOAD)) as connection:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (ended := is_reset(connection, 0.02)) and time.monotonic() < deadline:
            connection.recv(100)

    assert ended


def test_slow_but_steady_reader_gets_all(tmp_path: Path) -> None:
    with http_catalog(tmp_path, request_body_seconds=2.0) as api:
        make_namespace(api, "a")
        make_large_table(api)
        pause = threading.Event()
        with closing(unwilling(api, LOAD)) as connection:
            response = HTTPResponse(connection)
            response.begin()
            read = 0
            while part := response.read(100_000):
                read += len(part)
                pause.wait(0.03)

            assert read > 9_000_000
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert answer_on(connection) == (200, "")


def test_clients_that_do_not_read_make_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread, "STALLED_SECONDS", 0.2)
    with http_catalog(tmp_path, max_connections=4) as api, ExitStack() as stack:
        make_namespace(api, "a")
        make_large_table(api)
        api.close()
        sent = [LOAD, commit(1, ends=False), commit(2, ends=True), LOAD * 2]
        stalled = [stack.enter_context(closing(unwilling(api, each))) for each in sent]
        deadline = time.monotonic() + PATIENCE_SECONDS
        status = 503
        while status == 503 and time.monotonic() < deadline:
            with httpx.Client(base_url=api.base_url) as other:
                status = other.get("/v1/namespaces").status_code

        assert status == 200
        assert [is_reset(connection, 0.1) for connection in stalled].count(True) == 1


def test_unread_answers_that_take_too_much_memory_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread, "STALLED_SECONDS", 0.2)
    with http_catalog(tmp_path, max_bodies_bytes=10_000_000) as api, ExitStack() as stack:
        make_namespace(api, "a")
        make_large_table(api)
        first = stack.enter_context(closing(unwilling(api, commit(1, ends=False))))
        first.recv(1)
        assert not is_reset(first, 0.5)
        more = [stack.enter_context(closing(unwilling(api, commit(number, ends=False)))) for number in (2, 3)]

        deadline = time.monotonic() + PATIENCE_SECONDS
        everyone = [first, *more]
        while not any(is_reset(each, 0.05) for each in everyone) and time.monotonic() < deadline:
            pass
        assert any(is_reset(each, 0) for each in everyone)
        assert not all(is_reset(each, 0.2) for each in everyone)
