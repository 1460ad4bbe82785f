"""Requests byte by byte: no HTTP library stands between a test and the server, so nothing is tidied up on the way."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Answer:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body's JSON."""
        return json.loads(self.body)


def send(port: int, raw: bytes, method: str = "GET") -> Answer:
    """Send bytes as they are and read one answer; the method says whether a body is to be expected."""
    with closing(socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)) as connection:
        # A refusal may come, and the connection go, before everything was sent.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(raw)
        response = http.client.HTTPResponse(connection, method=method)
        response.begin()
        headers = {name.lower(): text for name, text in response.getheaders()}
        return Answer(response.status, headers, response.read())


def request(method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """Return an ordinary request whose parts are taken literally; host and type of a body are added if need be."""
    given = {name.lower() for name in headers}
    lines = [f"{method} {target} HTTP/1.1", "Connection: close"]
    if "host" not in given:
        lines.append("Host: localhost")
    lines += [f"{name}: {text}" for name, text in headers.items()]
    if body is not None:
        if not {"content-length", "transfer-encoding"} & given:
            lines.append(f"Content-Length: {len(body)}")
        if "content-type" not in given:
            lines.append("Content-Type: application/json")
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + (body or b"")


def chunked(body: bytes, size: int = 60_000) -> bytes:
    """Return a body in chunks, whose length nobody announced."""
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
