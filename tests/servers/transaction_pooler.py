"""A pooler that hands on the sessions of a PostgreSQL after each transaction, as pgBouncer does on request."""

from __future__ import annotations

import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.servers.postgres import PostgresServer
from tests.servers.postgres_proxy import messages, socket_in

_READY, _TERMINATE = b"Z", b"X"
_AT_THE_END_OF_A_STATEMENT = (b"Q", b"S")


class TransactionPooler:
    """Has one session of a database, which its clients use in turn, each for a transaction."""

    def __init__(self, server: PostgresServer, database: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="icetower-pooler-", dir="/tmp"))
        self.url = f"postgresql://postgres@/{database}?host={self.directory}"
        self._turn = threading.Lock()
        self._session = socket.socket(socket.AF_UNIX)
        self._session.connect(socket_in(server.directory))
        start = b"user\0postgres\0database\0" + database.encode() + b"\0\0"
        self._session.sendall(struct.pack("!II", len(start) + 8, 196608) + start)
        self._answers = messages(self._session)
        self._welcome = self._answer()
        """What Postgres said when the session began: its clients hear the same."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(socket_in(self.directory))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """End the session, and take no more clients."""
        for each in (self._listener, self._session):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _answer(self) -> bytes:
        """Return what Postgres says up to where it waits for the next statement."""
        said = b""
        for message in self._answers:
            said += message
            if message.startswith(_READY):
                break
        return said

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        said = messages(client, begins_with_length=True)
        with suppress(OSError, StopIteration), client:
            next(said)
            client.sendall(self._welcome)
            while True:
                first = next(said)
                with self._turn:
                    while not self._ends_transaction(first, client):
                        first = next(said)

    def _ends_transaction(self, message: bytes, client: socket.socket) -> bool:
        """Carry one message; say whether the session is outside of transactions then."""
        if message.startswith(_TERMINATE):
            raise StopIteration
        self._session.sendall(message)
        if not message.startswith(_AT_THE_END_OF_A_STATEMENT):
            return False
        answer = self._answer()
        client.sendall(answer)
        return answer.endswith(b"I")


@contextmanager
def pooler_before(server: PostgresServer, database: str) -> Iterator[TransactionPooler]:
    """Put a pooler before a database, and end it with the block."""
    pooler = TransactionPooler(server, database)
    try:
        yield pooler
    finally:
        pooler.close()
