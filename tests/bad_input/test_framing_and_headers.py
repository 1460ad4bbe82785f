"""What is hardly HTTP, bodies too large in every way of sending them, and headers that make no sense."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from tests.bad_input.attacks import GET, HEAD, POST, Attack, check_error_shape, check_refused
from tests.bad_input.victim import MAX_BODY_BYTES, Victim
from tests.bad_input.wire import chunked, request, send
from tests.builders.http_catalog import http_catalog

NS = "/v1/namespaces"
PATIENCE_SECONDS = 30
NOT_HTTP = "Invalid HTTP request received."
HEAD_TOO_LONG = "Request line and headers are longer than the limit of 65536 bytes"
BODY_TOO_LARGE = f"Request body is larger than the limit of {MAX_BODY_BYTES} bytes"
FIRST_LINE = b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n"
POSTED = b"POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"

BROKEN: list[tuple[str, bytes]] = [
    ("nothing but noise", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    ("http/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("no such version", b"GET /v1/config HTTP/9.9\r\n\r\n"),
    ("no such method", b"FOO /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("a proxy's connect", b"CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("no slash", b"GET v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("letters beyond ascii in the path", "GET /v1/namespaces/ä HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()),
    ("nul in the path", b"GET /v1/namespaces/a\x00b HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("unit separator in the path", b"GET /v1/namespaces/a\x1fb HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("space in the path", b"GET /v1/namespaces/a b HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("lines without returns", b"GET /v1/config HTTP/1.1\nHost: localhost\n\n"),
    ("folded header", FIRST_LINE + b"X: a\r\n b\r\n\r\n"),
    ("space before the colon", FIRST_LINE + b"X : a\r\n\r\n"),
    ("header without a name", FIRST_LINE + b": a\r\n\r\n"),
    ("nul in a header", FIRST_LINE + b"X: a\x00b\r\n\r\n"),
    ("length in words", POSTED + b"Content-Length: two\r\n\r\n{}"),
    ("negative length", POSTED + b"Content-Length: -1\r\n\r\n{}"),
    ("length with a sign", POSTED + b"Content-Length: +2\r\n\r\n{}"),
    ("length in hexadecimal", POSTED + b"Content-Length: 0x2\r\n\r\n{}"),
    ("length beyond 64 bits", POSTED + b"Content-Length: 99999999999999999999999999\r\n\r\n{}"),
    ("two lengths", POSTED + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} "),
    ("a length and chunks", POSTED + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("chunk size that is no number", POSTED + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
]


@pytest.mark.parametrize("raw", [raw for _, raw in BROKEN], ids=[name for name, _ in BROKEN])
def test_what_is_no_http_is_refused_in_the_protocols_shape(victim: Victim, raw: bytes) -> None:
    answer = send(victim.port, raw)

    assert answer.status == 400
    check_error_shape(answer, GET)
    assert answer.json()["error"] == {"message": NOT_HTTP, "type": "BadRequestException", "code": 400}
    victim.check_unchanged()


ENDLESS: list[tuple[str, bytes]] = [
    ("one header of a megabyte", FIRST_LINE + b"X: " + b"x" * 1_000_000 + b"\r\n\r\n"),
    (
        "a hundred thousand headers",
        FIRST_LINE + b"".join(b"X%d: x\r\n" % n for n in range(100_000)) + b"\r\n",
    ),
    (
        "a path of a megabyte",
        b"GET /v1/namespaces/" + b"x" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ),
    ("a header without end", FIRST_LINE + b"X: " + b"x" * 30_000_000),
]


@pytest.mark.parametrize("raw", [raw for _, raw in ENDLESS], ids=[name for name, _ in ENDLESS])
def test_head_without_end_is_refused_before_it_is_collected(victim: Victim, raw: bytes) -> None:
    answer = send(victim.port, raw)

    assert answer.status == 431
    check_error_shape(answer, GET)
    assert answer.json()["error"]["message"] == HEAD_TOO_LONG
    assert victim.client.get("/health").is_success


def body_of(size: int) -> bytes:
    """Return a request to create a namespace, of a size."""
    return b'{"namespace": ["big"], "properties": {"x": "' + b"x" * (size - 48) + b'"}}'


OVERSIZED = [
    Attack("announced", POST, NS, 413, BODY_TOO_LARGE, body=body_of(MAX_BODY_BYTES + 100)),
    Attack(
        "announced only", POST, NS, 413, BODY_TOO_LARGE, body=b"{}", headers={"Content-Length": "99999999999"}
    ),
    Attack(
        "in chunks",
        POST,
        NS,
        413,
        BODY_TOO_LARGE,
        body=chunked(body_of(MAX_BODY_BYTES + 100)),
        headers={"Transfer-Encoding": "chunked"},
    ),
    Attack(
        "with expectations",
        POST,
        NS,
        413,
        BODY_TOO_LARGE,
        body=b"",
        headers={"Content-Length": "99999999", "Expect": "100-continue"},
    ),
    Attack("with a get", GET, NS, 413, BODY_TOO_LARGE, body=b"{}", headers={"Content-Length": "99999999999"}),
    Attack(
        "with a get in chunks",
        GET,
        NS,
        413,
        BODY_TOO_LARGE,
        body=chunked(bytes(MAX_BODY_BYTES + 100)),
        headers={"Transfer-Encoding": "chunked"},
    ),
    Attack(
        "with a delete",
        "DELETE",
        f"{NS}/empty",
        413,
        BODY_TOO_LARGE,
        body=b"",
        headers={"Content-Length": "99999999999"},
    ),
    Attack(
        "to the management api",
        POST,
        "/management/v1/warehouses",
        413,
        BODY_TOO_LARGE,
        body=bytes(MAX_BODY_BYTES + 1),
    ),
    Attack(
        "to no route",
        POST,
        "/v1/nothing",
        413,
        BODY_TOO_LARGE,
        body=b"",
        headers={"Content-Length": "99999999999"},
    ),
]

PACKED = gzip.compress(json.dumps({"namespace": ["packed"]}).encode())
NOT_PACKED = "Invalid Content-Encoding …: send the body as it is, not compressed"

HEADERS = [
    Attack("gzip body", POST, NS, 400, NOT_PACKED, body=PACKED, headers={"Content-Encoding": "gzip"}),
    Attack(
        "gzip bomb as a body",
        POST,
        NS,
        400,
        NOT_PACKED,
        body=gzip.compress(bytes(50_000_000)),
        headers={"Content-Encoding": "gzip"},
    ),
    Attack("gzip body without saying so", POST, NS, 400, "Invalid body: Invalid JSON: …", body=PACKED),
    Attack(
        "another coding",
        POST,
        NS,
        400,
        "Invalid Content-Encoding 'br': …",
        body=b"\x0b\x01",
        headers={"Content-Encoding": "br"},
    ),
    Attack("two codings", POST, NS, 400, NOT_PACKED, body=PACKED, headers={"Content-Encoding": "gzip, gzip"}),
    Attack(
        "coding that is noise",
        POST,
        NS,
        400,
        NOT_PACKED,
        body=b"{}",
        headers={"Content-Encoding": "\udcff\udcfe"},
    ),
    Attack(
        "empty key",
        POST,
        NS,
        400,
        "Invalid Idempotency-Key: it must be 1 to 255 printable ASCII characters",
        body={"namespace": ["k"]},
        headers={"Idempotency-Key": ""},
    ),
    Attack(
        "key too long",
        POST,
        NS,
        400,
        "Invalid Idempotency-Key: …",
        body={"namespace": ["k"]},
        headers={"Idempotency-Key": "k" * 256},
    ),
    Attack(
        "key beyond ascii",
        POST,
        NS,
        400,
        "Invalid Idempotency-Key: …",
        body={"namespace": ["k"]},
        headers={"Idempotency-Key": "schlüssel"},
    ),
    Attack(
        "key with a tab",
        POST,
        NS,
        400,
        "Invalid Idempotency-Key: …",
        body={"namespace": ["k"]},
        headers={"Idempotency-Key": "a\tb"},
    ),
]


@pytest.mark.parametrize("attack", [*OVERSIZED, *HEADERS], ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)


def test_oversized_body_ends_the_connection(victim: Victim) -> None:
    answer = check_refused(OVERSIZED[0], victim)

    assert answer.headers["connection"] == "close"


def test_refusal_under_a_key_is_repeated_and_the_key_is_for_that_request_alone(victim: Victim) -> None:
    key = {"Idempotency-Key": "0190-refused"}
    refusal = Attack(
        "", POST, NS, 409, "Namespace already exists: a", "AlreadyExistsException", {"namespace": ["a"]}, key
    )
    other = Attack(
        "",
        POST,
        NS,
        422,
        "Idempotency-Key '0190-refused' was already used for a different request",
        body={"namespace": ["a", "x"]},
        headers=key,
    )

    first = check_refused(refusal, victim)
    again = check_refused(refusal, victim)
    check_refused(other, victim)

    assert again.body == first.body
    assert again.headers["idempotent-replayed"] == "true"


TOLERATED: list[tuple[str, dict[str, str]]] = [
    ("json in capitals", {"Content-Type": "Application/JSON;charset=UTF-8"}),
    ("latin-1 by name", {"Content-Type": "application/json; charset=latin-1"}),
    ("identity", {"Content-Encoding": "identity"}),
    ("accepts only xml", {"Accept": "application/xml"}),
    ("accepts nothing", {"Accept-Encoding": "*;q=0"}),
    ("senseless accept-encoding", {"Accept-Encoding": ",;q=,\udcff"}),
    ("senseless if-none-match", {"If-None-Match": '"' * 1_000}),
    ("request id with a line end's letters", {"X-Request-Id": "a%0d%0ab"}),
    ("unknown delegation", {"X-Iceberg-Access-Delegation": "everything, and more"}),
    ("somebody's token", {"Authorization": "Bearer \udcff\udcfe"}),
    ("many small headers", {f"X-{number}": "x" for number in range(500)}),
]


@pytest.mark.parametrize(
    "headers", [headers for _, headers in TOLERATED], ids=[name for name, _ in TOLERATED]
)
def test_headers_that_real_clients_get_wrong_do_no_harm(victim: Victim, headers: dict[str, str]) -> None:
    unchanged: Any = json.dumps({"removals": ["never-there"]}).encode()

    read = send(victim.port, request(GET, f"{NS}/a/tables/t", headers, None))
    changed = send(victim.port, request(POST, f"{NS}/a/properties", headers, unchanged))
    probed = send(victim.port, request(HEAD, f"{NS}/a/tables/t", headers, None), HEAD)

    assert (read.status, changed.status, probed.status) == (200, 200, 204)
    assert read.json()["metadata"]["format-version"] == 2
    assert changed.json() == {"updated": [], "removed": [], "missing": ["never-there"]}
    victim.check_unchanged()


@pytest.mark.parametrize("upgrade", ["TLS/1.2", "h2c", "websocket"])
def test_wish_for_another_protocol_is_passed_over(victim: Victim, upgrade: str) -> None:
    headers = {
        "Upgrade": upgrade,
        "Connection": "Upgrade, close",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }

    answer = send(victim.port, request(GET, f"{NS}/a/tables/t", headers, None))

    assert answer.status == 200


@pytest.mark.parametrize("upgrade", ["TLS/1.2", "h2c", "websocket"])
def test_connection_goes_on_after_a_wish_for_another_protocol(victim: Victim, upgrade: str) -> None:
    """Java's clients may have one in each request, and slots know writers by their connections."""
    wish = {"Upgrade": upgrade, "Connection": "Upgrade"}
    unchanged = json.dumps({"removals": ["never-there"]})
    with closing(HTTPConnection("127.0.0.1", victim.port, timeout=PATIENCE_SECONDS)) as own:
        own.connect()
        used = own.sock
        for method, path, body, headers in (
            (GET, f"{NS}/a/tables/t", None, wish),
            (POST, f"{NS}/a/properties", unchanged, {"Content-Type": "application/json"}),
            (HEAD, f"{NS}/a/tables/t", None, wish),
            (GET, f"{NS}/a/tables/t", None, wish),
        ):
            own.request(method, path, body, headers)
            answer = own.getresponse()
            answer.read()
            assert answer.status in (200, 204)
        assert own.sock is used


@pytest.mark.parametrize("upgrade", ["TLS/1.2", "h2c", "websocket"])
def test_body_that_comes_with_a_wish_for_another_protocol_is_no_request_of_its_own(
    victim: Victim, upgrade: str
) -> None:
    """The parser ends such a request with its head. What a proxy takes for a body would have been carried out."""
    hidden_body = b'{"namespace": ["hidden"]}'
    hidden = b"POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    hidden += b"Content-Length: %d\r\n\r\n" % len(hidden_body) + hidden_body
    head = f"POST {NS}/a/properties HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Upgrade: {upgrade}\r\nConnection: Upgrade\r\nContent-Length: {len(hidden)}\r\n\r\n"

    with closing(socket.create_connection(("127.0.0.1", victim.port), PATIENCE_SECONDS)) as own:
        own.sendall(head.encode())
        answer = HTTPResponse(own, method=POST)
        answer.begin()
        refusal = json.loads(answer.read())
        with suppress(OSError):
            own.sendall(hidden)
            while own.recv(10_000):  # until the server has ended the connection
                pass

    assert (answer.status, answer.headers["connection"]) == (400, "close")
    assert "may not come with the header Upgrade" in refusal["error"]["message"]
    assert send(victim.port, request(GET, f"{NS}/hidden", {}, None)).status == 404
    victim.check_unchanged()


def test_client_that_sends_a_large_body_with_a_wish_for_another_protocol_hears_why(victim: Victim) -> None:
    """It reads no answer before all is sent: a connection that is closed at once would be reset meanwhile."""
    body = b"x" * 3_000_000
    head = f"POST {NS}/a/properties HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: {len(body)}\r\n\r\n"

    for _ in range(5):
        with closing(socket.create_connection(("127.0.0.1", victim.port), PATIENCE_SECONDS)) as own:
            own.sendall(head.encode())
            own.sendall(body)
            answer = HTTPResponse(own, method=POST)
            answer.begin()
            assert "may not come with the header Upgrade" in answer.read().decode()


def test_request_id_that_cannot_be_a_header_is_not_sent_back(victim: Victim) -> None:
    answer = send(victim.port, request(GET, "/health", {"X-Request-Id": "a b<script>"}, None))

    assert "<" not in answer.headers["x-request-id"]


@pytest.mark.parametrize("name", ["Host", "Origin", "Content-Type", "Idempotency-Key", "X-Icetower-Rebase"])
def test_header_of_which_only_one_can_count_is_refused_where_there_are_two(victim: Victim, name: str) -> None:
    second = b"" if name == "Host" else name.encode() + b": 1\r\n"
    twice = name.encode() + b": localhost\r\n"

    answer = send(victim.port, FIRST_LINE + second + twice + b"Connection: close\r\n\r\n")

    assert answer.status == 400
    check_error_shape(answer, GET)
    message = f"Invalid request: it has more than one header {name}"
    assert answer.json()["error"] == {"message": message, "type": "BadRequestException", "code": 400}


@pytest.mark.parametrize(("version", "status"), [("1.1", 400), ("1.0", 200)])
def test_request_without_a_host_is_refused_where_the_protocol_asks_for_one(
    victim: Victim, version: str, status: int
) -> None:
    head = f"GET /v1/config HTTP/{version}\r\nConnection: close\r\n\r\n"

    answer = send(victim.port, head.encode())

    assert answer.status == status
    if status == 400:
        check_error_shape(answer, GET)
        assert answer.json()["error"]["message"] == "Invalid request: it has no header Host"


def test_list_in_two_headers_is_no_reason_to_refuse(victim: Victim) -> None:
    answer = send(victim.port, FIRST_LINE + b"Accept: a/b\r\nAccept: */*\r\nConnection: close\r\n\r\n")

    assert answer.status == 200


class TakesOver(asyncio.Protocol):
    """What a library for WebSockets does with a connection."""

    def __init__(self, **_parts: object) -> None:
        """Take whatever uvicorn gives."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def test_connections_that_wish_for_websockets_do_not_count_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a library for them is installed or not."""
    monkeypatch.setitem(uvicorn.config.WS_PROTOCOLS, "auto", f"{__name__}:TakesOver")
    wish = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    with http_catalog(tmp_path, max_connections=4) as api:
        for _ in range(8):
            with closing(HTTPConnection("127.0.0.1", api.base_url.port, timeout=PATIENCE_SECONDS)) as own:
                own.request("GET", "/v1/config", headers=wish)
                assert own.getresponse().status == 200

        assert api.get("/v1/config").status_code == 200
