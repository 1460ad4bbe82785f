"""A transport that sends answers in one piece, and to clients that still send, too."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

LINGER_SECONDS = 30.0
SILENT_SECONDS = 5.0
"""How long to wait for more of a request that is not read any more, in all and without a byte."""

_BEGINNING = b"HTTP/"
"""Of every answer. Other pieces that begin so only wait for the end of the event loop's turn."""
_AT_ONCE = struct.pack("ii", 1, 0)
_FACTS = ("socket", "sockname", "peername", "sslcontext")
"""What is asked about a connection."""


class LingeringTransport(asyncio.Transport):
    """Passes everything on, but `close` while a request is coming, and heads before bodies.

    Uvicorn writes head and body one after the other, and each write is a call of the system that wakes the client:
    the second one of most answers costs as much as all that routes them. So a head waits for what is written next in
    the same turn of the event loop.

    A socket that is closed with unread bytes resets the connection, and the client may never see what was sent to it.
    So this sends the end of the answer, then reads and throws away until the client has ended, for a while.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        is_request_coming: Callable[[], bool],
        on_close: Callable[[], None],
    ) -> None:
        super().__init__({name: transport.get_extra_info(name) for name in _FACTS})
        self._transport = transport
        self._is_request_coming = is_request_coming
        self._on_close = on_close
        self._is_closed = False
        self._head: bytes | bytearray | memoryview[Any] | None = None
        self._loop = asyncio.get_running_loop()
        self._end: asyncio.TimerHandle | None = None
        self._silence: asyncio.TimerHandle | None = None

    @property
    def is_lingering(self) -> bool:
        return self._end is not None

    def close(self) -> None:
        """Close now, or linger."""
        if self._is_closed:
            return
        self._send_head()
        self._is_closed = True
        if (
            self._transport.is_closing()
            or not self._is_request_coming()
            or not self._transport.can_write_eof()
        ):
            self._transport.close()
        else:
            self._transport.write_eof()
            self._transport.resume_reading()
            self._end = asyncio.get_running_loop().call_later(LINGER_SECONDS, self.abort)
            self.discard()
        self._on_close()

    def discard(self) -> None:
        """Throw away what has come: wait for more, or for the client to end."""
        if self._silence is not None:
            self._silence.cancel()
        self._silence = asyncio.get_running_loop().call_later(SILENT_SECONDS, self.abort)

    def abort(self) -> None:
        self._stop()
        self._transport.abort()

    def reset(self) -> None:
        """End now, and let the system, too, forget what the client has not read."""
        self.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.abort()

    def let_go(self) -> None:
        """Forget the connection's other parts, which refer to this one: it has ended."""
        self._stop()
        self._head = None
        self._is_request_coming, self._on_close = _nothing_comes, _nothing_follows

    def _stop(self) -> None:
        self._is_closed = True
        for timer in (self._end, self._silence):
            if timer is not None:
                timer.cancel()

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._is_closed:
            return
        if self._head is not None:
            pieces, self._head = (self._head, data), None
            self._transport.writelines(pieces)
        elif data[: len(_BEGINNING)] == _BEGINNING:
            self._head = data
            self._loop.call_soon(self._send_head)
        else:
            self._transport.write(data)

    def _send_head(self) -> None:
        if self._head is not None and not self._is_closed:
            head, self._head = self._head, None
            self._transport.write(head)

    @property
    def unread_bytes(self) -> int:
        """How much the client has not taken of what was written."""
        return self._transport.get_write_buffer_size() + len(self._head or b"")

    def is_closing(self) -> bool:
        return self._is_closed or self._transport.is_closing()

    def pause_reading(self) -> None:
        if not self._is_closed:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._is_closed:
            self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._transport.set_protocol(protocol)


def _nothing_comes() -> bool:
    return False


def _nothing_follows() -> None: ...
