"""Uvicorn's HTTP protocol with limits of size and time, and with the catalog's own errors."""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.api.entrance.incoming import BODY_HEADERS
from app.api.error_responses import RETRY_AFTER_SECONDS, error_body
from app.api.responses.answers import JSON
from app.cli.server.connections import Connections, TimeLimits, connections_for
from app.cli.server.lingering import LingeringTransport
from app.cli.server.unread import SLOWEST, UnreadAnswer
from app.settings import Settings

MAX_HEAD_BYTES = 64 * 1024
"""The limit of request line and headers together; a single read may exceed it, and has a limit too."""
_HEALTH = b"/health"


class Awaited(Enum):
    """What a connection waits for its client to send."""

    REQUEST = auto()
    HEAD = auto()
    BODY = auto()
    NOTHING = auto()


class CatalogProtocol(HttpToolsProtocol):
    """One connection. What the parser refuses never becomes a request, so this class answers it."""

    transport: LingeringTransport
    _unread: UnreadAnswer

    def __init__(self, *args: Any, connections: Connections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A library for WebSockets, if there is one, would take connections over for ever, past all limits.
        self.ws_protocol_class = None
        self._connections = connections
        self._awaited = Awaited.REQUEST
        self._watched: Awaited | None = None
        self._began = 0.0
        self._received = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_new = True
        self._is_body_unread = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to wait for a request."""
        sockets = cast("asyncio.Transport", transport)
        lingering = LingeringTransport(
            sockets, lambda: self._awaited is Awaited.BODY, self._wait_for_the_reader
        )
        super().connection_made(lingering)
        self._unread = UnreadAnswer(lingering, self._connections.limits.body)
        if not self._connections.add():
            self.app = partial(_serve_health_alone, self.app)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop to wait, and let go of what the client has sent."""
        self._connections.remove(self.transport)
        self._stop_timer()
        self._unread.end(is_whole=True)
        self.transport.let_go()
        cycle = self._cycle
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        # Protocol, transport and request refer to each other: a body would stay in memory until a garbage collection.
        if cycle is not None:
            cycle.body = bytearray()
        self.cycle = None  # type: ignore[assignment]  # as before the first request
        self.pipeline.clear()

    def data_received(self, data: bytes) -> None:
        """Pass on what has arrived; the parser alone would collect an endless head."""
        if self.transport.is_lingering:
            self.transport.discard()
            return
        if self._is_body_unread:
            return
        super().data_received(data)
        self._received += len(data)
        if (
            self._awaited is Awaited.HEAD
            and self._received > MAX_HEAD_BYTES
            and not self.transport.is_closing()
        ):
            message = f"Request line and headers are longer than the limit of {MAX_HEAD_BYTES} bytes"
            self._refuse(431, "RequestTooLargeException", message)
        self._watch()

    def on_message_begin(self) -> None:
        """Wait for the rest of the head."""
        super().on_message_begin()
        self._awaited = Awaited.HEAD
        self._received = 0

    def on_headers_complete(self) -> None:
        """Wait for the body."""
        super().on_headers_complete()
        if self.parser.should_upgrade() and not BODY_HEADERS.isdisjoint(name for name, _ in self.headers):
            # The parser ends such a request with its head, and would take the body for the next one.
            self._is_body_unread, self.cycle.keep_alive = True, False
        self._awaited = Awaited.BODY
        self._received = 0

    def on_message_complete(self) -> None:
        """Wait for nothing: the answer comes next, or is out already."""
        super().on_message_complete()
        cycle = self._cycle
        if self._is_body_unread:
            return  # It is still to come, and closing lingers.
        is_answered = cycle is None or cycle.response_complete
        self._awaited = Awaited.REQUEST if is_answered else Awaited.NOTHING

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it has come already."""
        super().on_response_complete()
        cycle = self._cycle
        if cycle is None or not cycle.response_complete:
            return
        # What has come of a body that was refused is of no use, and the connection may linger.
        cycle.body = bytearray()
        if self._awaited is Awaited.NOTHING:
            self._awaited = Awaited.REQUEST
            self._watch()

    def pause_writing(self) -> None:
        """Wait for the client to read: much of the answer, or all of it, waits in memory."""
        super().pause_writing()
        self._wait_for_the_reader()

    def resume_writing(self) -> None:
        """Wait for the client no longer, if the connection goes on."""
        super().resume_writing()
        if self.transport.is_closing():
            # It ends when the rest is out, too.
            return
        cycle = self._cycle
        self._unread.end(is_whole=cycle is None or cycle.response_complete)
        self._connections.note_at_work(self.transport)
        self._watched = None
        self._watch()

    def eof_received(self) -> None:
        """Let the transport close, as it will now, but not wait without end for the client to read."""
        self._wait_for_the_reader()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not an HTTP request."""
        self._refuse(400, "BadRequestException", msg)

    def _watch(self) -> None:
        """Begin to measure how long the client takes for what it has to send now."""
        awaited = self._awaited
        if awaited is self._watched or self._unread.is_watched or self.transport.is_closing():
            return
        self._watched = awaited
        self._stop_timer()
        if awaited is Awaited.NOTHING:
            self._is_new = False
            self._connections.note_at_work(self.transport)
            return
        self._began = self.loop.time()
        if awaited is Awaited.REQUEST:
            self._connections.note_idle(self.transport)
        else:
            self._connections.note_arriving(self.transport)
        self._timer = self.loop.call_later(self._allowed(), self._look_at_the_clock)

    def _allowed(self) -> float:
        """Return how many seconds the client has for what is awaited."""
        limits = self._connections.limits
        if self._awaited is Awaited.REQUEST and not self._is_new:
            return limits.idle
        if self._awaited is Awaited.BODY:
            return limits.body + self._received / SLOWEST
        return limits.head

    def _look_at_the_clock(self) -> None:
        """End the connection if its client has taken too long."""
        self._timer = None
        if self.transport.is_closing():
            return
        # While the server itself does not read, nothing can come: the answer to an earlier request is due first.
        is_ours = self.flow.read_paused
        left = 1.0 if is_ours else self._began + self._allowed() - self.loop.time()
        if left > 0:
            self._timer = self.loop.call_later(left, self._look_at_the_clock)
        elif self._awaited is Awaited.REQUEST:
            self.transport.close()
        else:
            noun = self._awaited.name.lower()
            self._refuse(408, "RequestTimeoutException", f"The {noun} of the request took too long to arrive")

    def _wait_for_the_reader(self) -> None:
        """Begin to measure how long the client takes to read, if something is unread."""
        if self.transport.unread_bytes:
            self._stop_timer()
            self._unread.begin()
            self._connections.note_unread(self.transport, self._unread)

    @property
    def _is_answered_early(self) -> bool:
        cycle = self._cycle
        return self._awaited is Awaited.BODY and cycle is not None and cycle.response_complete

    @property
    def _cycle(self) -> RequestResponseCycle | None:
        """The newest request and its answer; the type of uvicorn's attribute hides the None."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, kind: str, message: str) -> None:
        """Answer for the application, and end the connection."""
        unanswered = self._cycle
        if unanswered is not None and unanswered.response_complete:
            unanswered = None
        is_at_work = unanswered is not None and (unanswered.response_started or not unanswered.more_body)
        if is_at_work or self._is_answered_early:
            # The answer would be taken for that of the request that is at work, or was answered.
            self.transport.abort()
            return
        body = error_body(status, kind, message)
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            "connection: close",
        ]
        self.transport.write("\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body)
        self._awaited = Awaited.BODY  # more may come: closing lingers
        self.transport.close()
        if unanswered is not None:
            # The application waits for a body that is not read any more.
            unanswered.disconnected = True
            unanswered.body = bytearray()
            unanswered.message_event.set()


async def _serve_health_alone(app: Any, scope: Any, receive: Any, send: Any) -> None:
    """Answer that all connections are taken, unless it is asked whether the server is alive."""
    if scope["raw_path"] == _HEALTH:
        await app(scope, receive, send)
        return
    body = error_body(
        503, "ServiceUnavailableException", "All connections of this server are at work; try again"
    )
    headers = [
        JSON,
        (b"content-length", b"%d" % len(body)),
        (b"retry-after", b"%d" % RETRY_AFTER_SECONDS),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def protocol_for(settings: Settings) -> Any:
    """Return what uvicorn calls for each connection: each process has its own `Connections`."""
    limits = TimeLimits(
        head=settings.request_head_seconds,
        body=settings.request_body_seconds,
        idle=settings.idle_connection_seconds,
    )
    connections = connections_for(limits, settings.max_connections, settings.max_bodies_bytes)
    return partial(CatalogProtocol, connections=connections)
