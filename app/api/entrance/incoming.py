"""The body of a request on its way in: whether it may come, and how much of it has come."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import Message, Receive

from app.api.entrance.body_budget import BodyBudget
from app.api.entrance.web_pages import check_media_type
from app.errors import InvalidRequest, RequestTooLarge

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
        self._taken = 0
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
        if self._announced is not None and self._announced > max(self._taken, SMALL_BYTES):
            await self._take(self._announced)
        message = await self._receive()
        part: bytes = message.get("body", b"")
        if part and not self._received:
            check_media_type(self._headers, self._raw_path)
        self._received += len(part)
        if self._received > self._max_bytes:
            raise RequestTooLarge(self._max_bytes)
        if self._received > max(self._taken, SMALL_BYTES):
            await self._take(self._received - self._taken + STEP_BYTES)
        self.is_whole = not message.get("more_body", False)
        return message

    def let_go(self) -> None:
        """Give back what was taken of the budget: the request is done."""
        self._budget.give_back(self._taken)
        self._taken = 0

    async def _take(self, size: int) -> None:
        self._taken += await self._budget.take(size)
