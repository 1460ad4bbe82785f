"""A server that answers from a script and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from app.client.http.http_calls import HttpCalls, Retries


class ScriptedServer:
    """Plays its answers in order; an exception among them is a broken connection."""

    def __init__(self, answers: Sequence[httpx.Response | Exception]) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []
        self.transport = httpx.MockTransport(self._answer)

    def calls(self, most: int = 5) -> HttpCalls:
        """Return calls to this server that note their waits instead of waiting, at second 1,000."""
        retries = Retries(most=most, first_wait_seconds=1, sleep=self.waits.append, now=lambda: 1000.0)
        return HttpCalls("http://scripted.example/", retries=retries, transport=self.transport)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def ok(body: Any = None) -> httpx.Response:
    return httpx.Response(200, json={} if body is None else body)


def refusal(status: int, type: str = "SomeException", message: str = "No.", **headers: str) -> httpx.Response:  # noqa: A002 - the protocol's word
    body = {"error": {"message": message, "type": type, "code": status}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json=body, headers=named)
