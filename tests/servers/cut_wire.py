"""A wire to an HTTP server whose answers can end in their head, as when a proxy or the server itself is stopped."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_LINE_END = b"\r\n"


class CutWire:
    """Carries requests to a port of this machine, and cuts as many answers as a test asks for."""

    def __init__(self, port: int, listen_on: int = 0) -> None:
        self.sound_before = 0
        """So many answers come whole before."""
        self.answers_to_cut = 0
        """After their first line their connection is closed."""
        self._port = port
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", listen_on))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                for carry in (self._carry_requests, self._carry_answers):
                    threading.Thread(target=carry, args=(client, server), daemon=True).start()

    def _carry_requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), server:
            while request := client.recv(1 << 16):
                server.sendall(request)
            server.shutdown(socket.SHUT_RDWR)

    def _carry_answers(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), client:
            while answer := server.recv(1 << 16):
                if answer.startswith(b"HTTP/1.1 20") and self._is_to_cut():
                    client.sendall(answer[: answer.index(_LINE_END) + len(_LINE_END)])
                    break
                client.sendall(answer)
            client.shutdown(socket.SHUT_RDWR)

    def _is_to_cut(self) -> bool:
        with self._lock:
            if self.sound_before:
                self.sound_before -= 1
                return False
            self.answers_to_cut -= 1
            return self.answers_to_cut >= 0


@contextmanager
def cut_wire(port: int) -> Iterator[CutWire]:
    """Lay a wire, and take it away at the end."""
    wire = CutWire(port)
    try:
        yield wire
    finally:
        wire.close()
