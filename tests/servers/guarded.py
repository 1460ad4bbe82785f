"""A server that asks for tokens before it hands calls on to a catalog, and a token endpoint beside it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qsl

import httpx

CLIENT_ID, SECRET = "mover", "hunter2:with=odd&signs"


@dataclass(frozen=True)
class Reply:
    """What the token endpoint answers once, instead of a token."""

    status: int
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(status: int, **body: Any) -> Reply:
        return Reply(status, json.dumps(body).encode(), {"Content-Type": "application/json"})


class Guard:
    """Tokens hold for a number of calls; then the catalog answers 401, or what a test wants."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.upstream: httpx.Client | None = None
        self.replies: list[Reply] = []
        self.calls_per_token = 10**9
        self.refusal = 401
        self.expires_in: object = 3600
        self.asked: list[dict[str, str]] = []
        """The forms that the token endpoint was sent."""
        self.headers: list[dict[str, str]] = []
        """What was sent along with them."""
        self.given = 0
        self.new_token: Callable[[], str] = lambda: f"token-{next(self._numbers)}"
        self._left: dict[str, int] = {}
        self._numbers = count(1)
        self._lock = threading.Lock()

    @property
    def token_uri(self) -> str:
        return f"{self.uri}/v1/oauth/tokens"

    def token_reply(self, form: dict[str, str], headers: dict[str, str]) -> Reply:
        with self._lock:
            self.asked.append(form)
            self.headers.append(headers)
            if self.replies:
                return self.replies.pop(0)
            if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, SECRET):
                said = f"no such client: {form.get('client_secret')}"
                return Reply.of(401, error="invalid_client", error_description=said)
            token = self.new_token()
            self._left[token] = self.calls_per_token
            self.given += 1
        return Reply.of(200, access_token=token, token_type="bearer", expires_in=self.expires_in)

    def lets_in(self, authorization: str) -> bool:
        token = authorization.removeprefix("Bearer ")
        with self._lock:
            left = self._left.get(token, 0)
            self._left[token] = left - 1
        return left > 0


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that go away in between."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    guard: Guard

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/v1/oauth/tokens":
            form = dict(parse_qsl(body.decode(), keep_blank_values=True))
            reply = self.guard.token_reply(form, dict(self.headers.items()))
        elif not self.guard.lets_in(self.headers.get("Authorization", "")):
            error = {"message": "no", "type": "NotAuthorizedException", "code": self.guard.refusal}
            reply = Reply.of(self.guard.refusal, error=error)
        else:
            reply = self._handed_on(body)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def _handed_on(self, body: bytes) -> Reply:
        if self.guard.upstream is None:
            return Reply.of(200, overrides={}, defaults={})
        kept = {
            name: text for name, text in self.headers.items() if name.lower() in {"content-type", "accept"}
        }
        answer = self.guard.upstream.request(self.command, self.path, content=body, headers=kept)
        return Reply(answer.status_code, answer.content, {"Content-Type": "application/json"})

    do_GET = do_POST = do_HEAD = do_DELETE = do_PUT = do_PATCH = _serve  # noqa: N815 - names of the library

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def guarded(upstream: str | None = None) -> Iterator[Guard]:
    """Run a guard, before a catalog if one is given."""

    class Handler(_Handler):
        pass

    server = _Server(("127.0.0.1", 0), Handler)
    guard = Handler.guard = Guard(f"http://127.0.0.1:{server.server_port}")
    if upstream is not None:
        guard.upstream = httpx.Client(base_url=upstream)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield guard
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        if guard.upstream is not None:
            guard.upstream.close()
