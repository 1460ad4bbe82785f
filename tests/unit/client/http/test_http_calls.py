"""What is sent again and what is not, and how each failure is told."""

from __future__ import annotations

import gzip
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from app.client.answers import CatalogConfig, NamespacePage
from app.client.catalog import RemoteCatalog
from app.client.http import bounded_answers, http_calls
from app.client.http.failures import (
    AnswerLost,
    AnswerNotUnderstood,
    CatalogRefused,
    CatalogUnreachable,
    NothingSent,
)
from app.client.http.http_calls import HttpCalls, Retries, new_idempotency_key
from app.engine.model.identifiers import Namespace
from tests.unit.client.scripted_server import ScriptedServer, ok, refusal


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_get_and_delete_are_sent_again_while_the_server_is_busy(method: str, status: int) -> None:
    server = ScriptedServer([refusal(status), refusal(status), ok()])

    server.calls().send(method, "v1/x")

    assert len(server.requests) == 3
    assert server.waits == [1, 2]


@pytest.mark.parametrize("status", [400, 404, 409, 500, 501])
def test_a_final_refusal_is_not_sent_again(status: int) -> None:
    server = ScriptedServer([refusal(status, "TheType", "The sentence.")])

    with pytest.raises(CatalogRefused) as refused:
        server.calls().send("GET", "v1/x")

    assert (refused.value.status, refused.value.type, refused.value.message) == (
        status,
        "TheType",
        "The sentence.",
    )
    assert str(refused.value) == f"The sentence. (TheType, HTTP status {status})"


@pytest.mark.parametrize(
    ("query", "body", "reason"),
    [
        (None, {"namespace": ["a", "b\udcff"]}, r"UTF-8: 'b\\udcff'"),
        ({"pageToken": "\udcff"}, None, r"UTF-8: '\\udcff'"),
        ({"pageToken": "x" * 100_000}, None, "URL"),
    ],
)
def test_what_cannot_be_sent_is_not_sent(
    query: dict[str, str] | None, body: dict[str, object] | None, reason: str
) -> None:
    server = ScriptedServer([])

    with pytest.raises(NothingSent, match=f"^Nothing was sent to http.*/v1/x: .*{reason}"):
        server.calls().send("POST", "v1/x", query=query, body=body)

    assert server.requests == []


def test_an_address_that_is_too_long_is_not_shown_whole() -> None:
    with pytest.raises(NothingSent) as failure:
        ScriptedServer([]).calls().send("GET", "v1/" + "x" * 100_000)

    assert len(str(failure.value)) < 1000


def test_head_is_sent_again_and_its_status_is_the_answer() -> None:
    server = ScriptedServer(
        [httpx.Response(503), httpx.Response(204), httpx.Response(404), httpx.Response(403)]
    )
    calls = server.calls()

    assert calls.exists("v1/x")
    assert not calls.exists("v1/x")
    with pytest.raises(CatalogRefused, match="Forbidden") as refused:
        calls.exists("v1/x")

    assert (refused.value.status, refused.value.type) == (403, "RESTException")


@pytest.mark.parametrize("status", [429, 503])
def test_post_is_sent_again_when_the_server_promises_that_nothing_was_applied(status: int) -> None:
    server = ScriptedServer([refusal(status, Retry_After="7"), ok()])

    server.calls().send("POST", "v1/x", body={"a": 1})

    assert server.waits == [7]
    assert [request.content for request in server.requests] == [b'{"a":1}', b'{"a":1}']


@pytest.mark.parametrize(
    "answer",
    [refusal(429), refusal(503), refusal(500, Retry_After="1"), refusal(502, Retry_After="1"), refusal(504)],
)
def test_post_is_not_sent_again_without_that_promise(answer: httpx.Response) -> None:
    server = ScriptedServer([answer])

    with pytest.raises(CatalogRefused):
        server.calls().send("POST", "v1/x")

    assert len(server.requests) == 1


def test_retry_after_may_be_a_date() -> None:
    server = ScriptedServer(
        [
            refusal(503, Retry_After="Thu, 01 Jan 1970 00:16:45 GMT"),
            refusal(503, Retry_After="Thu, 01 Jan 1970 00:00:00 -0000"),
            refusal(503, Retry_After="soon"),
            ok(),
        ]
    )

    server.calls().send("GET", "v1/x")

    assert server.waits == [5, 0, 4]


def test_a_longer_wait_than_anyone_would_stand_is_a_refusal() -> None:
    server = ScriptedServer([refusal(503, Retry_After="3600")])

    with pytest.raises(CatalogRefused):
        server.calls().send("GET", "v1/x")

    assert server.waits == []


def test_after_the_last_attempt_the_refusal_is_told() -> None:
    server = ScriptedServer([refusal(503)] * 3)

    with pytest.raises(CatalogRefused):
        server.calls(most=2).send("GET", "v1/x")

    assert len(server.requests) == 3


def test_one_idempotency_key_for_all_sendings_of_a_call_and_none_for_reads() -> None:
    server = ScriptedServer([refusal(503), ok(), refusal(503, Retry_After="0"), ok(), ok()])
    calls = server.calls()

    calls.send("DELETE", "v1/x")
    calls.send("POST", "v1/x")
    calls.send("GET", "v1/x")

    keys = [request.headers.get("Idempotency-Key") for request in server.requests]
    assert keys[0] == keys[1]
    assert keys[2] == keys[3]
    assert keys[0] != keys[2]
    assert keys[4] is None


def test_idempotency_keys_are_uuids_of_version_7_in_the_order_of_time() -> None:
    keys = [uuid.UUID(new_idempotency_key()) for _ in range(100)]

    assert {(key.version, key.variant) for key in keys} == {(7, uuid.RFC_4122)}
    assert len(set(keys)) == 100
    assert [key.int >> 80 for key in keys] == sorted(key.int >> 80 for key in keys)


def test_a_broken_connection_is_tried_again_where_that_is_safe() -> None:
    server = ScriptedServer([httpx.ReadError("gone"), httpx.RemoteProtocolError("gone"), ok()])

    server.calls().send("DELETE", "v1/x")

    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("method", "error", "told"),
    [
        ("POST", httpx.ReadError("gone"), "gone; whether the change was made is not known"),
        ("POST", httpx.ReadTimeout(""), "ReadTimeout; whether the change was made is not known"),
        ("GET", httpx.ReadTimeout("slow"), "No answer to GET http://scripted.example/v1/x: slow"),
    ],
)
def test_a_lost_answer_says_what_is_not_known(method: str, error: Exception, told: str) -> None:
    server = ScriptedServer([error])

    with pytest.raises(AnswerLost) as lost:
        server.calls().send(method, "v1/x")

    key = server.requests[0].headers.get("Idempotency-Key")
    command = f"icetower commit find --key {key} --uri http://scripted.example"
    question = f". Icetower knows: {command}" if method == "POST" else ""
    assert str(lost.value).endswith(told + question)
    assert lost.value.key == key


@pytest.mark.parametrize(
    ("endpoints", "advice"),
    [
        (["GET /v1/{prefix}/commits"], r" --uri http://scripted\.example --warehouse 'the lake'"),
        ([], "not known"),
    ],
)
def test_what_became_of_a_change_is_asked_in_its_own_warehouse(endpoints: list[str], advice: str) -> None:
    """In any other it is not found, which would mean that it has not happened; and other servers know nothing of it."""
    config = ok({"defaults": {}, "overrides": {}, "endpoints": endpoints})
    server = ScriptedServer([config, httpx.ReadError("gone"), httpx.Response(504)])
    with RemoteCatalog(
        "http://a:b@scripted.example", "the lake", transport=server.transport, retries=Retries(most=0)
    ) as lake:
        for failure in (AnswerLost, AnswerNotUnderstood):
            with pytest.raises(failure, match=f"{advice}$"):
                lake.namespaces.create(Namespace(("a",)))


def test_a_connection_that_was_never_made_is_told_at_once() -> None:
    server = ScriptedServer([httpx.ConnectError("refused")])

    with pytest.raises(
        CatalogUnreachable, match=r"Cannot reach a catalog at http://scripted\.example: refused"
    ):
        server.calls().send("GET", "v1/x")


def test_a_server_that_speaks_plain_http_is_told_by_its_answer_to_tls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_in_plain() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1_000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

        answering = threading.Thread(target=answer_in_plain)
        answering.start()
        with (
            closing(HttpCalls(f"https://127.0.0.1:{listener.getsockname()[1]}")) as calls,
            pytest.raises(CatalogUnreachable, match=r"plain HTTP: try http:// instead of https://$"),
        ):
            calls.send("GET", "v1/x")
        answering.join()


@pytest.mark.parametrize(
    "uri",
    [
        "ftp://x",
        "localhost:8181",
        "http://",
        "http://x:99999",
        "http://x:port",
        "",
        "http://a..b",
        f"http://{'a' * 64}.b",
    ],
)
def test_an_address_that_is_none_is_told_at_once(uri: str) -> None:
    with pytest.raises(CatalogUnreachable):
        HttpCalls(uri)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>hello</html>"),
        httpx.Response(200, json=["a list"]),
        httpx.Response(200, json={"defaults": {}}),
        httpx.Response(200, content=b"\xff\xfe"),
        httpx.Response(404, text="<html>nothing here</html>"),
        httpx.Response(404, json={"detail": "Not Found"}),
        httpx.Response(302, headers={"Location": "/login"}),
    ],
)
def test_a_server_that_is_no_catalog_is_told(answer: httpx.Response) -> None:
    server = ScriptedServer([answer])

    with pytest.raises(AnswerNotUnderstood, match="not one of an Iceberg REST catalog"):
        server.calls().read(CatalogConfig, "GET", "v1/config")


@pytest.mark.parametrize(
    ("method", "answer", "is_open"),
    [
        ("POST", httpx.Response(504, text="<html>too late</html>"), True),
        ("DELETE", httpx.Response(500), True),
        ("POST", httpx.Response(200), True),
        ("POST", httpx.Response(404, text="<html>nothing here</html>"), False),
        ("GET", httpx.Response(500), False),
    ],
)
def test_an_answer_that_is_none_says_that_a_change_may_have_been_made(
    method: str, answer: httpx.Response, *, is_open: bool
) -> None:
    server = ScriptedServer([answer])

    with pytest.raises(AnswerNotUnderstood) as failure:
        server.calls().read(CatalogConfig, method, "v1/x")
    key = server.requests[0].headers.get("Idempotency-Key")
    question = f"whether the change was made is not known. Icetower knows: icetower commit find --key {key}"
    assert (question in str(failure.value)) is is_open


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_where_an_answer_sends_its_callers_is_told(method: str) -> None:
    server = ScriptedServer([httpx.Response(308, headers={"Location": "https://u:secret@other/v1/x"})])

    with pytest.raises(AnswerNotUnderstood, match=r"sends its callers on to https://other/v1/x\. Use"):
        server.calls().send(method, "v1/x")


def test_pages_follow_the_token_and_end_without_one() -> None:
    server = ScriptedServer(
        [
            ok({"namespaces": [["a"]], "next-page-token": "t1"}),
            ok({"namespaces": [["b", "c"]], "next-page-token": None}),
        ]
    )

    pages = list(server.calls().read_pages(NamespacePage, "v1/namespaces", {"parent": "p"}))

    assert [page.namespaces for page in pages] == [[["a"]], [["b", "c"]]]
    assert [dict(request.url.params) for request in server.requests] == [
        {"parent": "p", "pageToken": "", "pageSize": "1000"},
        {"parent": "p", "pageToken": "t1", "pageSize": "1000"},
    ]


def test_empty_token_ends_the_listing() -> None:
    server = ScriptedServer([ok({"namespaces": [], "next-page-token": ""})])

    list(server.calls().read_pages(NamespacePage, "v1/namespaces"))

    assert len(server.requests) == 1


@pytest.mark.parametrize("tokens", ["xx", "xyx", "xyzyx"])
def test_listing_that_goes_round_is_refused(tokens: str) -> None:
    server = ScriptedServer([ok({"namespaces": [["a"]], "next-page-token": token}) for token in tokens])

    with pytest.raises(AnswerNotUnderstood, match="page token again"):
        list(server.calls().read_pages(NamespacePage, "v1/namespaces"))


def test_listing_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_calls, "MOST_PAGES", 3)
    server = ScriptedServer([ok({"namespaces": [["a"]], "next-page-token": token}) for token in "abcd"])

    with pytest.raises(AnswerNotUnderstood, match="goes on after 3 pages"):
        list(server.calls().read_pages(NamespacePage, "v1/namespaces"))
    assert len(server.requests) == 3


class Endless(httpx.SyncByteStream):
    """A body that never ends; each piece takes a second."""

    def __init__(self, piece: bytes) -> None:
        self.piece = piece
        self.seconds = 0.0
        self.is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.seconds += 1
            yield self.piece

    def close(self) -> None:
        self.is_closed = True


def test_answer_that_trickles_is_given_up() -> None:
    body = Endless(b" ")
    retries = Retries(most=0, elapsed=lambda: body.seconds)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=body))
    calls = HttpCalls("http://slow.example", retries=retries, timeout_seconds=2, transport=transport)

    with pytest.raises(AnswerLost, match="not whole after 20 seconds"):
        calls.send("GET", "v1/config")
    assert 20 <= body.seconds < 25
    assert body.is_closed


@pytest.mark.parametrize("status", [200, 400])
def test_answer_without_end_is_not_kept(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_answers, "MOST_BYTES", 1 << 20)
    body = Endless(b"x" * 1000)
    transport = httpx.MockTransport(lambda _: httpx.Response(status, stream=body))
    calls = HttpCalls("http://large.example", retries=Retries(most=0), transport=transport)

    with pytest.raises(
        AnswerLost, match=r"more than 1048576 bytes.*whether the change was made is not known"
    ):
        calls.send("POST", "v1/namespaces")
    assert body.is_closed


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd", "x" * 1000])
def test_answer_that_may_unpack_to_any_size_is_refused(encoding: str) -> None:
    server = ScriptedServer(
        [httpx.Response(200, headers={"Content-Encoding": encoding}, stream=Endless(b"x"))]
    )

    with pytest.raises(AnswerLost, match="packed as"):
        server.calls().send("GET", "v1/config")


def test_packed_answer_is_read() -> None:
    content = gzip.compress(b'{"defaults": {}, "overrides": {}}')
    server = ScriptedServer([httpx.Response(200, headers={"Content-Encoding": "gzip"}, content=content)])

    assert server.calls().read(CatalogConfig, "GET", "v1/config").defaults == {}


def test_refusal_that_is_nested_too_deeply_is_not_understood() -> None:
    server = ScriptedServer([httpx.Response(400, content=b"[" * 100_000 + b"]" * 100_000)])

    with pytest.raises(AnswerNotUnderstood):
        server.calls().send("GET", "v1/config")


def test_user_and_password_of_an_address_are_sent_and_never_shown() -> None:
    server = ScriptedServer([ok(), httpx.ReadTimeout("late")])
    calls = HttpCalls(
        "http://anna:geheim@host.example/x", retries=Retries(most=0), transport=server.transport
    )

    calls.send("GET", "v1/config")
    with pytest.raises(AnswerLost) as lost:
        calls.send("GET", "v1/config")

    assert server.requests[0].headers["Authorization"] == "Basic YW5uYTpnZWhlaW0="
    assert server.requests[0].url == "http://host.example/x/v1/config"
    assert "geheim" not in f"{lost.value} {calls.uri}"


@pytest.mark.parametrize(
    "uri", ["http://anna:geheim@host:99999", "ftp://anna:geheim@host", "http://anna:geheim@host:abc"]
)
def test_password_of_an_address_that_is_none_is_not_shown(uri: str) -> None:
    with pytest.raises(CatalogUnreachable) as failure:
        HttpCalls(uri)

    assert "geheim" not in str(failure.value)


@pytest.mark.parametrize("status", [401, 419])
@pytest.mark.parametrize("body", [b"", b"<html>", b"{}"])
def test_answer_of_something_that_asks_for_tokens_says_so(status: int, body: bytes) -> None:
    server = ScriptedServer([httpx.Response(status, content=body)])

    with pytest.raises(CatalogRefused, match="wants to know who asks") as refused:
        server.calls().send("GET", "v1/config")

    assert refused.value.status == status
