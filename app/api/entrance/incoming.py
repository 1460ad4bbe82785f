"""The body of a request on its way in: whether it may come, and how much of it has come."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.types import Message, Receive

from app.api.entrance.body_budget import BodyBudget, BodyShare
from app.api.entrance.web_pages import check_media_type
from app.errors import InvalidRequest, RequestTooLarge, Unavailable

BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})
"""A request with one of these may have a body, whatever its method."""
_LONGEST_NUMBER = 18
SMALL_BYTES = 64 * 1024
"""Smaller bodies do not wait for others to be done with."""
STEP_BYTES = 1024 * 1024
"""How much of the budget a body takes at a time if its length was not announced."""


class Incoming:
    """A request's body, as the application receives it."""

    def __init__(
        self,
        receive: Receive,
        headers: Mapping[bytes, bytes],
        raw_path: bytes,
        *,
        max_bytes: int,
        budget: BodyBudget,
    ) -> None:
        self._receive = receive
        self._headers = headers
        self._raw_path = raw_path
        self._max_bytes = max_bytes
        self._budget = budget
        self._received = 0
        self._share: BodyShare | None = None
        self._announced: int | None = None
        self.is_whole = BODY_HEADERS.isdisjoint(headers)
        """Whether nothing more of the body can come."""

    def check(self) -> None:
        """Refuse a body by what its headers say of it.

        Raises:
            InvalidRequest: its length or encoding makes no sense here.
            RequestTooLarge: the announced length is over the limit.
            UnsupportedMediaType: it is not announced as JSON.
        """
        headers = self._headers
        coding = headers.get(b"content-encoding", b"identity").strip().lower()
        if coding != b"identity":
            raise InvalidRequest(
                f"Invalid Content-Encoding {coding[:50].decode('latin-1')!r}: send the body as it is, not compressed"
            )
        length = headers.get(b"content-length")
        if b"upgrade" in headers and b"upgrade" in headers.get(b"connection", b"").lower() and length != b"0":
            self._check_no_body_with_upgrade()
        if length is None:
            return
        if not length.isdigit():
            raise InvalidRequest("Invalid Content-Length")
        if len(length) > _LONGEST_NUMBER or int(length) > self._max_bytes:
            raise RequestTooLarge(self._max_bytes)
        self._announced = int(length)
        if self._announced:
            check_media_type(headers, self._raw_path)
        else:
            self.is_whole = True

    def _check_no_body_with_upgrade(self) -> None:
        if not self.is_whole:
            # The parser does not read it: see `app.cli.server.http_protocol`.
            raise InvalidRequest(
                "Invalid request: a body may not come with the header Upgrade. The server speaks HTTP/1.1 only: set "
                "your client to that, or leave the header out"
            )

    async def receive(self) -> Message:
        """Pass on the next part.

        Raises:
            RequestTooLarge: what has come is over the limit.
            Unavailable: too many large bodies are coming at once.
            UnsupportedMediaType: there is a body, and it is not announced as JSON.
        """
        share = self._share
        if share is None and self._announced is not None and self._announced > SMALL_BYTES:
            share = await self._take(self._announced)
        if share is None or self.is_whole:
            # Of a whole body only the end of its client is to come, and who asks for that does not wait.
            message = await self._receive()
        else:
            message = await self._receive_of(share)
        part: bytes = message.get("body", b"")
        if part and not self._received:
            check_media_type(self._headers, self._raw_path)
        self._received += len(part)
        if self._received > self._max_bytes:
            raise RequestTooLarge(self._max_bytes)
        taken = 0 if share is None else share.taken
        if self._received > max(taken, SMALL_BYTES):
            share = await self._take(self._received - taken + STEP_BYTES)
        self.is_whole = not message.get("more_body", False)
        if share is not None:
            share.received = self._received
            if self.is_whole:
                self._budget.has_come(share)
        return message

    def let_go(self) -> None:
        """Give back what was taken of the budget: the request is done."""
        if self._share is not None:
            self._budget.let_go(self._share)

    async def _take(self, size: int) -> BodyShare:
        if self._share is None:
            self._share = BodyShare()
        await self._budget.take(self._share, size)
        return self._share

    async def _receive_of(self, share: BodyShare) -> Message:
        """Return the next part of a large body, unless it has to make way for others."""
        receiving = asyncio.ensure_future(self._receive())
        either: tuple[asyncio.Future[Any], ...] = (receiving, share.makes_way)
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if receiving.done():
                return receiving.result()
            raise Unavailable(
                "Too many large requests come at once, and this one came slowly: send it again, with fewer beside it"
            )
        finally:
            receiving.cancel()
