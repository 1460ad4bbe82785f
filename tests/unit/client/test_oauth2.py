"""Tokens: asked for once, renewed before they end and after a 401; secrets are in no message."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from app.client.catalog import RemoteCatalog
from app.client.http.failures import CallFailed, CatalogRefused, LoginFailed
from app.client.http.http_calls import Retries
from app.client.oauth2 import ClientLogin, OAuth2Tokens
from tests.servers.guarded import CLIENT_ID, SECRET, Guard, Reply, guarded


@pytest.fixture
def guard() -> Iterator[Guard]:
    with guarded() as found:
        yield found


class Clock:
    """Moves by waiting only."""

    def __init__(self) -> None:
        self.now = 1000.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def retries(self) -> Retries:
        return Retries(most=2, sleep=self.sleep, elapsed=lambda: self.now)


def tokens_of(
    guard: Guard, credential: str = f"{CLIENT_ID}:{SECRET}", clock: Clock | None = None
) -> OAuth2Tokens:
    return OAuth2Tokens(ClientLogin(credential, guard.token_uri), retries=(clock or Clock()).retries())


def test_one_token_serves_all_calls(guard: Guard) -> None:
    with closing(tokens_of(guard)) as tokens, RemoteCatalog(guard.uri, tokens=tokens) as catalog:
        for _ in range(3):
            catalog._calls.send("GET", "v1/anything")

    assert guard.asked == [
        {
            "grant_type": "client_credentials",
            "client_id": CLIENT_ID,
            "client_secret": SECRET,
            "scope": "catalog",
        }
    ]


def test_form_has_what_clients_send(guard: Guard) -> None:
    login = ClientLogin(
        "only a secret", guard.token_uri, "", {"audience": "a", "resource": "r"}, {"X-Realm": "eu"}
    )
    guard.replies = [Reply.of(200, access_token="t", token_type="N_A")]

    with closing(OAuth2Tokens(login)) as tokens:
        assert tokens.current() == "t"

    assert guard.asked == [
        {
            "grant_type": "client_credentials",
            "client_secret": "only a secret",
            "audience": "a",
            "resource": "r",
        }
    ]
    assert guard.headers[0]["X-Realm"] == "eu"
    assert "Authorization" not in guard.headers[0]


@pytest.mark.parametrize(("lifetime", "renewed_after"), [(3600, 3540), ("30", 15), (1.0, 0.5)])
def test_token_is_renewed_before_it_ends(guard: Guard, lifetime: object, renewed_after: float) -> None:
    clock = Clock()
    guard.expires_in = lifetime
    with closing(tokens_of(guard, clock=clock)) as tokens:
        assert tokens.current() == "token-1"
        clock.now += renewed_after - 0.001
        assert tokens.current() == "token-1"
        clock.now += 0.002
        assert tokens.current() == "token-2"


@pytest.mark.parametrize("lifetime", [None, "soon", -5, 0, True, float("1e999"), [], {}], ids=repr)
def test_token_of_unknown_end_is_kept(guard: Guard, lifetime: object) -> None:
    clock = Clock()
    guard.expires_in = lifetime
    with closing(tokens_of(guard, clock=clock)) as tokens:
        tokens.current()
        clock.now += 10**9
        assert tokens.current() == "token-1"


@pytest.mark.parametrize("refusal", [401, 419])
def test_call_whose_token_is_over_is_sent_again_with_another(guard: Guard, refusal: int) -> None:
    guard.calls_per_token, guard.refusal = 1, refusal
    with closing(tokens_of(guard)) as tokens, RemoteCatalog(guard.uri, tokens=tokens) as catalog:
        catalog._calls.send("POST", "v1/anything", body={"a": "b"})
        catalog._calls.send("DELETE", "v1/anything")

    assert guard.given == 3


def test_server_that_refuses_each_token_is_asked_twice(guard: Guard) -> None:
    guard.calls_per_token = 0
    with closing(tokens_of(guard)) as tokens, pytest.raises(CatalogRefused, match=r"NotAuthorized.*401"):
        RemoteCatalog(guard.uri, tokens=tokens)

    assert guard.given == 2


def test_threads_share_one_login(guard: Guard) -> None:
    start = threading.Barrier(8)

    def call(_: int) -> str:
        start.wait()
        return tokens.current()

    with closing(tokens_of(guard)) as tokens, ThreadPoolExecutor(8) as threads:
        assert set(threads.map(call, range(8))) == {"token-1"}
        tokens.forget("token-1")
        assert set(threads.map(call, range(8))) == {"token-2"}
        # A call that was on its way with the old one is late.
        tokens.forget("token-1")
        assert tokens.current() == "token-2"


def test_busy_endpoint_is_asked_again(guard: Guard) -> None:
    guard.replies = [Reply(503), Reply(429)]
    clock = Clock()

    with closing(tokens_of(guard, clock=clock)) as tokens:
        assert tokens.current() == "token-1"

    assert clock.now == 1000.75


FAILURES = {
    "no such client": (
        Reply.of(401, error="invalid_client", error_description=f"{CLIENT_ID}:{SECRET} is unknown"),
        "invalid_client: … is unknown (HTTP status 401)",
    ),
    "the protocol's error": (
        Reply.of(400, error={"type": "BadRequestException", "message": "no scope"}),
        "BadRequestException: no scope (HTTP status 400)",
    ),
    "nothing there": (Reply(404, b"<html>"), "give the address of its token endpoint as oauth2-server-uri"),
    "an error of another form": (Reply.of(400, error=7), "no token (HTTP status 400)"),
    "elsewhere": (
        Reply(307, headers={"Location": "http://127.0.0.1:1/"}),
        "it redirects elsewhere (HTTP status 307), where the secret would go along",
    ),
    "a page": (Reply(200, b"<html>hello</html>"), "HTTP status 200 and no JSON object"),
    "a list": (Reply(200, b"[]"), "HTTP status 200 and no JSON object"),
    "no token": (Reply.of(200, token_type="bearer"), "HTTP status 200 and no token"),
    "a strange token": (Reply.of(200, access_token="a\r\nX: y"), "HTTP status 200 and no token"),
    "a token in two words": (Reply.of(200, access_token="a b"), "HTTP status 200 and no token"),
    "a number": (Reply.of(200, access_token=7), "HTTP status 200 and no token"),
    "another type": (Reply.of(200, access_token="t", token_type="mac"), "another type than bearer"),
    "deep": (Reply(200, b"[" * 100_000), "HTTP status 200 and no JSON object"),
    "long": (Reply(200, b" " * (2 << 20)), "it has more than 1048576 bytes"),
    "away": (Reply(503), "HTTP status 503"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failed_login_says_why_without_the_secret(guard: Guard, name: str) -> None:
    reply, said = FAILURES[name]
    guard.replies = [reply] * 3

    with closing(tokens_of(guard)) as tokens, pytest.raises(LoginFailed) as failed:
        RemoteCatalog(guard.uri, tokens=tokens)

    assert str(failed.value).startswith(f"Cannot log in at {guard.token_uri}: ")
    assert said in str(failed.value)
    assert SECRET not in str(failed.value)
    assert len(str(failed.value)) < 500


def test_wrong_secret_that_is_sent_back_is_not_shown(guard: Guard) -> None:
    with closing(tokens_of(guard, f"{CLIENT_ID}:wrong-one")) as tokens, pytest.raises(LoginFailed) as failed:
        tokens.current()

    assert "invalid_client: no such client: … (HTTP status 401)" in str(failed.value)


@pytest.mark.parametrize("uri", ["http://user:hunter2@127.0.0.1:1/t", "ftp://x/", "http://[/"])
def test_address_that_cannot_be_called_is_said_without_its_password(uri: str) -> None:
    with pytest.raises(CallFailed) as failed, closing(OAuth2Tokens(ClientLogin("a:b", uri))) as tokens:
        tokens.current()

    assert "hunter2" not in str(failed.value)


def test_nothing_that_is_printed_has_the_secret(guard: Guard) -> None:
    login = ClientLogin(f"{CLIENT_ID}:{SECRET}", guard.token_uri, headers={"X-Key": SECRET})

    assert SECRET not in repr(login)
