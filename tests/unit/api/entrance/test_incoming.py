"""Bodies on their way in, and clients that go."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message

from app.api.entrance.body_budget import BodyBudget
from app.api.entrance.incoming import SMALL_BYTES, Incoming


@pytest.mark.parametrize("is_announced", [True, False])
@pytest.mark.parametrize("size", [1, SMALL_BYTES + 1])
def test_that_the_client_has_gone_is_seen_whatever_its_body_was(size: int, is_announced: bool) -> None:
    length = (b"content-length", b"%d" % size) if is_announced else (b"transfer-encoding", b"chunked")
    headers = dict([(b"content-type", b"application/json"), length])

    async def run() -> None:
        messages: list[Message] = [{"type": "http.request", "body": b"x" * size}]

        async def receive() -> Message:
            """Answer at once what has come, as the server does, and else wait."""
            if not messages:
                await asyncio.Event().wait()
            return messages.pop(0)

        incoming = Incoming(receive, headers, b"/v1/test", max_bytes=1_000_000, budget=BodyBudget(1_000_000))
        incoming.check()
        request = Request({"type": "http", "headers": []}, incoming.receive)
        await request.body()

        assert not await request.is_disconnected()
        messages.append({"type": "http.disconnect"})
        assert await request.is_disconnected()

    asyncio.run(run())
