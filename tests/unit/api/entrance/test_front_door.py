"""The layer around every request: ids, limits, gzip, failures, log lines and counters."""

from __future__ import annotations

import asyncio
import gzip
import io
import re
from typing import Any

import orjson
import pytest
from prometheus_client import REGISTRY
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import telemetry
from app.api.compression import MIN_GZIP_BYTES, SLOW_GZIP_BYTES, accepts_gzip
from app.api.entrance.addresses import Addresses
from app.api.entrance.commit_ids import CommitIds
from app.api.entrance.front_door import FrontDoor
from app.api.scope_keys import PREFIX
from app.catalog.context.seen.receipt_book import ReceiptBook
from app.database.connections.database import Database
from app.database.outcomes.receipts import Receipts
from app.errors import CommitStateUnknown, DatabaseUnavailable, InvalidRequest, NoSuchTable
from tests.unit.engine.effort import calls_in

Headers = dict[bytes, bytes]


class Lines:
    """The log lines of a test."""

    def __init__(self) -> None:
        self.stream = io.BytesIO()
        self.log = telemetry.LogLines(self.stream)

    @property
    def records(self) -> list[dict[str, Any]]:
        self.log.flush()
        return [orjson.loads(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    captured = Lines()
    monkeypatch.setattr("app.api.entrance.front_door.log_lines", captured.log)
    return captured


NO_COMMIT_IDS = CommitIds({}, ReceiptBook(Receipts(Database.open("sqlite:///none.db")), lambda: 0), "default")


class Exchange:
    """One request to an inner application behind the front door, and what came back."""

    def __init__(self, inner: ASGIApp, **options: Any) -> None:
        labels = {"endpoint": "/v1/test"}
        given = {
            "addresses": Addresses("0.0.0.0", (), "on"),
            "max_body_bytes": 100,
            "max_bodies_bytes": 1000,
            "log_requests": True,
            "route_labels": labels,
            "commit_ids": NO_COMMIT_IDS,
            **options,
        }
        self.door = FrontDoor(inner, **given)
        self.sent: list[Message] = []

    def __call__(
        self,
        method: str = "GET",
        path: bytes = b"/v1/test",
        headers: Headers | None = None,
        body: list[bytes] | None = None,
    ) -> Exchange:
        chunks = list(body or [b""])

        async def receive() -> Message:
            return {"type": "http.request", "body": chunks.pop(0), "more_body": bool(chunks)}

        async def send(message: Message) -> None:
            self.sent.append(message)

        scope: Scope = {
            "type": "http",
            "http_version": "1.0",
            "method": method,
            "path": path.decode(),
            "raw_path": path,
            "query_string": b"token=secret",
            "headers": list({b"content-type": b"application/json", **(headers or {})}.items()),
            "endpoint": "endpoint",
            "client": ("10.0.0.1", 1),
        }
        asyncio.run(self.door(scope, receive, send))
        return self

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> Headers:
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = orjson.loads(self.body)["error"]
        return error


def answering(body: bytes, *headers: tuple[bytes, bytes]) -> ASGIApp:
    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length, *headers]})
        await send({"type": "http.response.body", "body": body})

    return inner


def raising(error: BaseException) -> ASGIApp:
    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        raise error

    return inner


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await answering(body)(scope, receive, send)


def test_given_request_id_is_echoed() -> None:
    exchange = Exchange(answering(b""))(headers={b"x-request-id": b"abc-1/2"})

    assert exchange.headers[b"x-request-id"] == b"abc-1/2"


@pytest.mark.parametrize("given", [b"", b"a b", b'a"b', b"x" * 129, b"\xff", b"a\tb"])
def test_insane_request_id_is_replaced(given: bytes) -> None:
    exchange = Exchange(answering(b""))(headers={b"x-request-id": given})

    assert exchange.headers[b"x-request-id"] != given
    assert re.fullmatch(rb"[0-9a-f]{12}-[0-9a-f]{6,}", exchange.headers[b"x-request-id"])


def test_every_request_gets_an_id_of_its_own() -> None:
    first = Exchange(answering(b""))()
    second = Exchange(answering(b""))()

    assert first.headers[b"x-request-id"] != second.headers[b"x-request-id"]


def test_prefix_is_taken_out_of_the_path() -> None:
    seen: list[tuple[str, str | None]] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append((scope["path"], scope[PREFIX]))
        await answering(b"")(scope, receive, send)

    Exchange(inner)(path=b"/v1/sales/namespaces/a%2Fb")

    assert seen == [("/v1/namespaces/a%2Fb", "sales")]


def test_announced_body_over_the_limit_is_refused_unread() -> None:
    exchange = Exchange(raising(AssertionError("not reached")))("POST", headers={b"content-length": b"101"})

    assert (exchange.status, exchange.error["type"]) == (413, "RequestTooLargeException")
    assert exchange.headers[b"connection"] == b"close"


def test_unannounced_body_over_the_limit_is_refused_while_it_is_read() -> None:
    exchange = Exchange(echo)("POST", body=[b"x" * 60, b"x" * 60])

    assert exchange.status == 413


@pytest.mark.parametrize("announced", [True, False])
def test_body_that_is_larger_than_all_bodies_may_be_together_has_them_to_itself(announced: bool) -> None:
    headers = {b"content-length": b"300000"} if announced else {b"transfer-encoding": b"chunked"}
    exchange = Exchange(echo, max_body_bytes=1_000_000, max_bodies_bytes=100_000)

    exchange("POST", headers=headers, body=[b"x" * 100_000] * 3)

    assert (exchange.status, len(exchange.body)) == (200, 300_000)


@pytest.mark.parametrize("body", [[b"x" * 100], [b"x" * 50, b"x" * 50]])
def test_body_up_to_the_limit_is_taken(body: list[bytes]) -> None:
    exchange = Exchange(echo)("POST", body=body)

    assert (exchange.status, exchange.body) == (200, b"x" * 100)


@pytest.mark.parametrize("length", [b"-1", b"x", b"1e3"])
def test_senseless_content_length_is_refused(length: bytes) -> None:
    exchange = Exchange(echo)("POST", headers={b"content-length": length})

    assert exchange.status == 400


def test_huge_content_length_is_too_large() -> None:
    exchange = Exchange(echo)("POST", headers={b"content-length": b"9" * 5000})

    assert exchange.status == 413


@pytest.mark.parametrize("size", [MIN_GZIP_BYTES, SLOW_GZIP_BYTES])
def test_body_worth_it_is_compressed_when_asked_for(size: int) -> None:
    body = b"x" * size

    exchange = Exchange(answering(body, (b"x-kept", b"1")))(headers={b"accept-encoding": b"gzip"})

    assert gzip.decompress(exchange.body) == body
    assert exchange.headers[b"content-encoding"] == b"gzip"
    assert exchange.headers[b"content-length"] == str(len(exchange.body)).encode()
    assert exchange.headers[b"vary"] == b"accept-encoding"
    assert exchange.headers[b"x-kept"] == b"1"


@pytest.mark.parametrize(
    ("size", "accepted"), [(MIN_GZIP_BYTES - 1, b"gzip"), (5000, b""), (5000, b"br"), (5000, b"gzip;q=0")]
)
def test_other_bodies_go_out_as_they_are(size: int, accepted: bytes) -> None:
    exchange = Exchange(answering(b"x" * size))(headers={b"accept-encoding": accepted})

    assert exchange.body == b"x" * size
    assert b"content-encoding" not in exchange.headers


def test_body_that_is_packed_already_is_not_packed_again() -> None:
    packed = gzip.compress(b"x" * 100_000 + bytes(range(256)) * 50)
    inner = answering(packed, (b"content-encoding", b"gzip"))

    exchange = Exchange(inner)(headers={b"accept-encoding": b"gzip"})

    assert exchange.body == packed


def test_body_in_pieces_goes_out_in_pieces() -> None:
    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4000")]})
        await send({"type": "http.response.body", "body": b"x" * 2000, "more_body": True})
        await send({"type": "http.response.body", "body": b"y" * 2000})

    exchange = Exchange(inner)(headers={b"accept-encoding": b"gzip"})

    assert exchange.body == b"x" * 2000 + b"y" * 2000


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (b"gzip", True),
        (b"gzip, deflate, br", True),
        (b"deflate, GZIP;q=0.5", True),
        (b"x-gzip", True),
        (b"*", True),
        (b"identity, *;q=0", False),
        (b"gzip;q=0", False),
        (b"gzip;q=0.000, *", False),
        (b"deflate", False),
        (b"", False),
        (b"\xff\xfe", False),
    ],
)
def test_accept_encoding_is_understood(header: bytes, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


def test_refusal_is_answered_in_the_protocols_shape() -> None:
    exchange = Exchange(raising(NoSuchTable("a.t")))()

    assert exchange.status == 404
    assert exchange.error == {
        "message": "Table does not exist: a.t",
        "type": "NoSuchTableException",
        "code": 404,
    }


def test_head_is_refused_without_a_body() -> None:
    exchange = Exchange(raising(NoSuchTable("a.t")))("HEAD")

    assert (exchange.status, exchange.body) == (404, b"")


def test_unavailable_server_asks_to_come_again() -> None:
    exchange = Exchange(raising(DatabaseUnavailable("gone")))("POST")

    assert exchange.status == 503
    assert exchange.headers[b"retry-after"] == b"1"


def test_unknown_commit_state_does_not_ask_to_come_again() -> None:
    exchange = Exchange(raising(CommitStateUnknown("who knows")))("POST")

    assert (exchange.status, exchange.error["type"]) == (500, "CommitStateUnknownException")
    assert b"retry-after" not in exchange.headers


def test_unexpected_failure_is_logged_with_its_traceback_and_withheld(lines: Lines) -> None:
    exchange = Exchange(raising(ZeroDivisionError("hunter2")))("POST")

    failure, request = lines.records
    assert exchange.status == 500
    assert exchange.error["type"] == "InternalServerError"
    assert "hunter2" not in exchange.error["message"]
    assert exchange.headers[b"x-request-id"].decode() in exchange.error["message"]
    assert failure["request_id"] == request["request_id"] == exchange.headers[b"x-request-id"].decode()
    assert "hunter2" in failure["traceback"]


def test_failure_that_says_much_is_logged_in_part(lines: Lines) -> None:
    Exchange(raising(ZeroDivisionError("x" * 1_000_000 + "the end")))("POST")

    failure, _ = lines.records
    assert failure["message"].endswith("xthe end")
    assert failure["traceback"].endswith("xthe end\n")
    assert len(lines.stream.getvalue()) < 2 * telemetry.MAX_LOGGED_TEXT + 2000


@pytest.mark.parametrize(
    ("refused", "logged"),
    [
        (
            "Invalid location 's3://AKID:hunter2@bucket/x?X-Amz-Signature=hunter2': it contains '?'",
            "Invalid location 's3://********@bucket/x?********': it contains '?'",
        ),
        ("No file at https://h/x?sig=hunter2&se=1, sorry", "No file at https://h/x?******** sorry"),
        ("Invalid name 'a?b': write u:v@w", "Invalid name 'a?b': write u:v@w"),
    ],
)
def test_refusal_is_logged_without_the_secrets_of_its_urls(refused: str, logged: str, lines: Lines) -> None:
    exchange = Exchange(raising(InvalidRequest(refused)))("POST")

    (request,) = lines.records
    assert request["error"] == logged
    assert exchange.error["message"] == refused


def test_failure_in_the_middle_of_an_answer_breaks_the_connection() -> None:
    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Exchange(inner)()


def test_failure_before_a_held_answer_went_out_is_still_answered() -> None:
    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5000")]})
        raise ZeroDivisionError

    exchange = Exchange(inner)(headers={b"accept-encoding": b"gzip"})

    assert exchange.status == 500


def test_client_that_went_away_is_no_failure(lines: Lines) -> None:
    exchange = Exchange(raising(ClientDisconnect()))("POST")

    assert exchange.sent == []
    assert [record["status"] for record in lines.records] == [499]


def test_each_request_is_one_line_without_query_and_headers(lines: Lines) -> None:
    Exchange(answering(b"12345"))("GET", b"/v1/test%20", {b"authorization": b"Bearer secret"})

    (record,) = lines.records
    assert (
        record.items()
        >= {
            "event": "request",
            "method": "GET",
            "path": "/v1/test%20",
            "route": "/v1/test",
            "status": 200,
            "bytes": 5,
            "client": "10.0.0.1",
        }.items()
    )
    assert b"secret" not in lines.stream.getvalue()


def test_quiet_server_logs_failures_only(lines: Lines) -> None:
    quiet = {"log_requests": False}
    Exchange(answering(b""), **quiet)()
    Exchange(raising(NoSuchTable("a.t")), **quiet)()
    Exchange(raising(ZeroDivisionError()), **quiet)()

    assert [record["event"] for record in lines.records] == ["failure", "request"]


def test_requests_are_counted_by_route_and_status() -> None:
    labels = {"method": "GET", "route": "/v1/test", "status": "200"}
    before = REGISTRY.get_sample_value("icetower_requests_total", labels) or 0

    Exchange(answering(b""))()

    assert REGISTRY.get_sample_value("icetower_requests_total", labels) == before + 1


def test_odd_methods_share_one_label() -> None:
    labels = {"method": "other", "route": "/v1/test", "status": "200"}
    before = REGISTRY.get_sample_value("icetower_requests_total", labels) or 0

    Exchange(answering(b""))("PROPFIND")
    Exchange(answering(b""))("COPY")

    assert REGISTRY.get_sample_value("icetower_requests_total", labels) == before + 2


def test_other_kinds_of_connection_pass_by() -> None:
    passed: list[str] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        passed.append(scope["type"])

    door = Exchange(inner).door
    asyncio.run(door({"type": "lifespan"}, None, None))  # type: ignore[arg-type]  # neither is used

    assert passed == ["lifespan"]


def test_long_refusal_is_not_looked_through_for_secrets(lines: Lines) -> None:
    """A refusal repeats names, which may have many megabytes, and all other requests wait meanwhile."""
    refusal = InvalidRequest("s3://user:hunter2@b " + "://' " * 1_000_000)

    calls = calls_in(Exchange(raising(refusal)))

    assert calls < 100_000
    (line,) = lines.records
    assert line["error"].startswith("s3://********@b ://'")
    assert len(line["error"]) == 500
