"""A wire to PostgreSQL that breaks where a test wants it to: at a statement, or between COMMIT and its reply."""

from __future__ import annotations

import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

import pytest

from tests.servers.postgres import PostgresServer

_SOCKET = ".s.PGSQL.5432"


def socket_in(directory: Path) -> str:
    """Return where clients find the socket of a server in a directory."""
    return str(directory / _SOCKET)


class Break(Enum):
    """What happens to a statement instead of its answer; in each case the client's connection is gone."""

    LOSE_REQUEST = "the server never sees it, and its connection is gone as well"
    LOSE_REPLY = "the server does it"
    HOLD = "the server waits for it, until `release` or `lose_held`"


class _Answers:
    """Carries what the server says to the client, unless it is muted."""

    def __init__(self, server: socket.socket, client: socket.socket) -> None:
        self.is_muted = threading.Event()
        self.has_answered = threading.Event()
        """Since it was muted."""
        threading.Thread(target=self._carry, args=(server, client), daemon=True).start()

    def _carry(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while answer := server.recv(65536):
                if self.is_muted.is_set():
                    self.has_answered.set()
                else:
                    client.sendall(answer)
        # Nobody waits for a server that is gone, and the client learns of it.
        self.has_answered.set()
        _cut(client)


class PostgresProxy:
    """Stands between clients and a server, and breaks the wire at the next statement that begins with a text."""

    def __init__(self, server: PostgresServer) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="icetower-wire-", dir="/tmp"))
        self._server_socket = socket_in(server.directory)
        self._break: tuple[bytes, Break] | None = None
        self._held: tuple[socket.socket, bytes, _Answers] | None = None
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self._is_cut_off = False
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(socket_in(self.directory))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, database: str) -> str:
        """Return the URL of a database of the server, through this wire."""
        return f"postgresql://postgres@/{database}?host={self.directory}"

    def break_at(self, text: str, how: Break) -> None:
        """Break the wire at the next statement that begins with this text; the one after it gets through."""
        with self._lock:
            self._break = (text.encode(), how)

    def lead_to(self, server: PostgresServer) -> None:
        """Lead new connections to another server; those that are open stay where they are."""
        self._server_socket = socket_in(server.directory)

    @property
    def has_broken(self) -> bool:
        """Whether the statement that was waited for came."""
        with self._lock:
            return self._break is None

    def release(self) -> None:
        """Let the server have the statement that was held, and wait until it is done."""
        server, message, answers = self._take_held()
        server.sendall(message)
        answers.has_answered.wait()
        _cut(server)

    def lose_held(self) -> None:
        """Close the server's connection without the statement that was held."""
        server, _, _ = self._take_held()
        _cut(server)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Carry nothing to the server during the block; no wire is cut."""
        self._flows.clear()
        try:
            yield
        finally:
            self._flows.set()

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """Cut every wire, and each new one at once, during the block."""
        self._is_cut_off = True
        while self._sockets:
            _cut(self._sockets.pop())
        try:
            yield
        finally:
            self._is_cut_off = False

    def close(self) -> None:
        """Cut every wire."""
        self._flows.set()
        for each in (self._listener, *self._sockets):
            _cut(each)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _take_held(self) -> tuple[socket.socket, bytes, _Answers]:
        with self._lock:
            assert self._held is not None, "no statement is held"
            held, self._held = self._held, None
            return held

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._is_cut_off:
                    _cut(client)
                    continue
                server = socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        # A server that is down is, to the client, a wire that is cut.
        with suppress(OSError), client:
            server.connect(self._server_socket)
            answers = _Answers(server, client)
            for message in messages(client, begins_with_length=True):
                self._flows.wait()
                how = self._how_to_break(message)
                if how is None:
                    server.sendall(message)
                    continue
                answers.is_muted.set()
                if how is Break.HOLD:
                    with self._lock:
                        self._held = (server, message, answers)
                    return
                if how is Break.LOSE_REPLY:
                    server.sendall(message)
                    answers.has_answered.wait()
                _cut(server)
                return
            _cut(server)

    def _how_to_break(self, message: bytes) -> Break | None:
        with self._lock:
            if self._break is None or not _statement(message).startswith(self._break[0]):
                return None
            how, self._break = self._break[1], None
            return how


@contextmanager
def wire_to(server: PostgresServer) -> Iterator[PostgresProxy]:
    """Lay a wire to a server, and cut it at the end."""
    proxy = PostgresProxy(server)
    try:
        yield proxy
    finally:
        proxy.close()


@pytest.fixture
def postgres_wire(postgres_server: PostgresServer) -> Iterator[PostgresProxy]:
    """A wire to the server of this process."""
    with wire_to(postgres_server) as proxy:
        yield proxy


def messages(wire: socket.socket, *, begins_with_length: bool = False) -> Iterator[bytes]:
    """Yield what comes, message by message; the first one that a client says, alone, begins with its length."""
    with wire.makefile("rb") as said:
        if begins_with_length:
            first = said.read(4)
            if len(first) < 4:
                return
            yield first + said.read(struct.unpack("!I", first)[0] - 4)
        while kind := said.read(1):
            length = said.read(4)
            yield kind + length + said.read(struct.unpack("!I", length)[0] - 4)


def _statement(message: bytes) -> bytes:
    """Return the SQL of a simple query, or of one that is parsed first, and of all other messages nothing."""
    kind, said = message[:1], message[5:].split(b"\0")
    return said[0] if kind == b"Q" else said[1] if kind == b"P" else b""


def _cut(wire: socket.socket) -> None:
    """Close a socket, also for a thread that listens to it."""
    with suppress(OSError):
        wire.shutdown(socket.SHUT_RDWR)
    wire.close()
