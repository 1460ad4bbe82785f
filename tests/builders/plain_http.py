"""A connection that sends requests and reads answers, and costs next to nothing."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit


class PlainConnection:
    """One HTTP/1.1 connection that is kept open; for one thread at a time.

    Through `http.client`, hundreds of requests a second take as much processor time as the server that they measure.
    """

    def __init__(self, url: str, timeout_s: float = 120, *, accepts_gzip: bool = False) -> None:
        """Prepare a connection; answers in gzip are returned as they come."""
        where = urlsplit(url)
        assert where.hostname is not None
        assert where.port is not None
        self._address = (where.hostname, where.port)
        self._timeout_s = timeout_s
        self._headers = f"Host: {where.hostname}:{where.port}\r\n"
        if accepts_gzip:
            self._headers += "Accept-Encoding: gzip\r\n"
        self._socket: socket.socket | None = None
        self._read = bytearray()

    def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request and return the status and the body of its answer.

        Raises:
            OSError: there is no connection, or it was lost.
        """
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=self._timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}"
        if method == "POST":
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._socket.sendall(head.encode("ascii") + b"\r\n" + body)
        return self._answer()

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._read.clear()

    def _answer(self) -> tuple[int, bytes]:
        status_line, *lines = self._up_to(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if headers.get("transfer-encoding") == "chunked":
            body = self._chunks()
        else:
            body = self._take(int(headers.get("content-length", "0")))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return int(status_line.split(" ", 2)[1]), body

    def _chunks(self) -> bytes:
        pieces = []
        while size := int(self._up_to(b"\r\n").partition(b";")[0], 16):
            pieces.append(self._take(size + 2)[:-2])
        self._take(2)
        return b"".join(pieces)

    def _up_to(self, end: bytes) -> bytes:
        while (found := self._read.find(end)) < 0:
            self._receive(1 << 16)
        return self._take(found + len(end))[: -len(end)]

    def _take(self, size: int) -> bytes:
        while len(self._read) < size:
            self._receive(max(1 << 16, size - len(self._read)))
        taken = bytes(memoryview(self._read)[:size])
        del self._read[:size]
        return taken

    def _receive(self, size: int) -> None:
        assert self._socket is not None
        piece = self._socket.recv(size)
        if not piece:
            self.close()
            raise ConnectionResetError("The server has closed the connection")
        self._read += piece
