"""A TCP proxy before Postgres that can cut the connection around a COMMIT: the reply is lost, or the request."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Cut = Literal["reply", "request"]
_COMMIT = b"COMMIT\0"
"""The end of the statement counts too: BEGIN … READ COMMITTED is no COMMIT."""


class CuttingProxy:
    """Passes bytes on until it is armed; then the next COMMIT loses its reply or never arrives."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._armed: Cut | None = None
        self.cuts = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, cut: Cut) -> None:
        """Cut the next COMMIT."""
        with self._lock:
            self._armed = cut

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._socket_path)
            cut = threading.Event()
            threading.Thread(target=self._upstream, args=(client, server, cut), daemon=True).start()
            threading.Thread(target=self._downstream, args=(client, server, cut), daemon=True).start()

    def _upstream(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        while content := _received(client):
            with self._lock:
                armed = self._armed if _COMMIT in content.upper() else None
                if armed is not None:
                    self._armed = None
                    self.cuts += 1
            if armed == "request":
                break
            if armed == "reply":
                cut.set()
            if not _sent(server, content):
                break
            if armed == "reply":
                return  # the other direction reads the reply to its end and then closes both
        _closed(client, server)

    def _downstream(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        while content := _received(server):
            if cut.is_set() or not _sent(client, content):
                break
        _closed(client, server)


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65_536)
    except OSError:
        return b""


def _sent(connection: socket.socket, content: bytes) -> bool:
    try:
        connection.sendall(content)
    except OSError:
        return False
    return True


def _closed(*connections: socket.socket) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()


@contextmanager
def cutting_proxy(socket_path: str) -> Iterator[CuttingProxy]:
    """Run a proxy until the block ends."""
    proxy = CuttingProxy(socket_path)
    try:
        yield proxy
    finally:
        proxy.close()
