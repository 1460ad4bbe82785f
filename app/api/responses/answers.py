"""Successful answers: JSON that is bytes already, empty answers, and 304."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.bodies.table.tables import loaded_json
from app.api.responses.etags import ETAG
from app.catalog.context.kinds import LoadedView

Header = tuple[bytes, bytes]

_LONG_BYTES = 64 * 1024
JSON: Header = (b"content-type", b"application/json")
NO_CONFIG: Mapping[str, str] = {}
"""Most tables add no settings to those of the warehouse."""


class Answer(Response):
    """A status, headers with unchanged names, and a body of bytes, in one or more parts."""

    def __init__(self, status: int, headers: list[Header], *body: bytes) -> None:
        self.status_code = status
        # To put a long body together takes longer than to send its parts, for short ones it is the other way round.
        is_long = sum(map(len, body)) >= _LONG_BYTES
        self._body = body if is_long else (b"".join(body),)
        self.raw_headers = headers
        self.background = None

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        *first, last = self._body
        for part in first:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": last})


def json_answer(body: bytes, status: int = 200, *extra_headers: Header) -> Answer:
    """Answer with JSON."""
    return Answer(status, [JSON, (b"content-length", b"%d" % len(body)), *extra_headers], body)


def text_answer(body: bytes, content_type: bytes) -> Answer:
    """Answer with a text of another type."""
    return Answer(200, [(b"content-type", content_type), (b"content-length", b"%d" % len(body))], body)


def no_content() -> Answer:
    """Answer 204: it is done, or it exists."""
    return Answer(204, [])


def not_modified(tag: bytes) -> Answer:
    """Answer that the client's copy is current."""
    return Answer(304, [(ETAG, tag)])


def loaded_view_answer(loaded: LoadedView) -> Answer:
    """Answer with a view."""
    return json_answer(loaded_json(loaded.location, loaded.json, NO_CONFIG))
