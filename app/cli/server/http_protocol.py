"""Uvicorn's HTTP protocol with a limit on the head, and with the catalog's own errors."""

from __future__ import annotations

from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.error_responses import error_body

MAX_HEAD_BYTES = 64 * 1024
"""The limit of request line and headers together; a single read may exceed it, and has a limit too."""


class CatalogProtocol(HttpToolsProtocol):
    """One connection. What the parser refuses never becomes a request, so this class answers it."""

    _head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Pass on what has arrived; the parser alone would collect an endless head."""
        super().data_received(data)
        # The scope is None until the first byte arrives; it gets a method when the head is complete.
        scope: object = self.scope
        if not isinstance(scope, dict) or "method" in scope:
            self._head_bytes = 0
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            message = f"Request line and headers are longer than the limit of {MAX_HEAD_BYTES} bytes"
            self._refuse(431, "RequestTooLargeException", message)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not an HTTP request."""
        self._refuse(400, "BadRequestException", msg)

    def _refuse(self, status: int, kind: str, message: str) -> None:
        body = error_body(status, kind, message)
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            "connection: close",
        ]
        self.transport.write("\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body)
        self.transport.close()
