"""An S3 server in this process that can fall ill: it hangs, or sends a few bytes at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase, BytesIO
from typing import Literal
from urllib.parse import unquote, urlsplit

Health = Literal["well", "hangs", "trickles"]

TRICKLE_BYTES = 4
TRICKLE_SECONDS = 1.0


class SickS3:
    """Objects in memory behind the few requests of S3 that a catalog sends; signatures are not checked."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests = 0
        self.held = threading.Semaphore(0)
        """One permit for each request that was held up."""
        self._health: Health = "well"
        self._is_well = threading.Event()
        self._is_well.set()
        self._server = _Server(self)

    @property
    def storage(self) -> dict[str, str]:
        """The storage settings with which a warehouse uses this server."""
        return {
            "s3.endpoint": f"http://127.0.0.1:{self._server.server_address[1]}",
            "s3.region": "us-east-1",
            "s3.access-key-id": "any-access-key",
            "s3.secret-access-key": "any-secret-key",
            "s3.path-style-access": "true",
        }

    @property
    def health(self) -> Health:
        return self._health

    def fall_ill(self, health: Health) -> None:
        """Answer no further request as it should be answered."""
        self._is_well.clear()
        self._health = health

    def recover(self) -> None:
        """Answer requests again, those held up first."""
        self._health = "well"
        self._is_well.set()

    def wait_for_held(self, count: int) -> None:
        """Wait until so many more requests are held up."""
        for _ in range(count):
            assert self.held.acquire(timeout=30), "too few requests came"

    def hold(self) -> None:
        """Hold a request until the server is well."""
        self._is_well.wait(120)

    def pause(self) -> bool:
        """Wait between two pieces of an answer; True once the server is well."""
        return self._is_well.wait(TRICKLE_SECONDS)

    @contextmanager
    def running(self) -> Iterator[SickS3]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.recover()
            self._server.shutdown()
            self._server.server_close()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, store: SickS3) -> None:
        self.store = store
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _store(self) -> SickS3:
        assert isinstance(self.server, _Server)
        return self.server.store

    def do_HEAD(self) -> None:
        self._send_object(with_body=False)

    def do_GET(self) -> None:
        self._send_object(with_body=True)

    def do_PUT(self) -> None:
        content = self._content()
        self._fall_behind()
        self._store.objects[self._key] = content
        self._answer(200, [("ETag", '"x"')])

    def do_DELETE(self) -> None:
        self._fall_behind()
        self._store.objects.pop(self._key, None)
        self._answer(204, [])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the parent's signature
        pass

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path)

    def _fall_behind(self) -> None:
        self._store.requests += 1
        if self._store.health == "hangs":
            self._store.held.release()
            self._store.hold()

    def _content(self) -> bytes:
        chunked = self.headers.get("transfer-encoding") == "chunked"
        length = int(self.headers.get("content-length", 0))
        body = _unchunked(self.rfile) if chunked else self.rfile.read(length)
        is_signed = "aws-chunked" in self.headers.get("content-encoding", "")
        return _unchunked(BytesIO(body)) if is_signed else body

    def _send_object(self, *, with_body: bool) -> None:
        self._fall_behind()
        content = self._store.objects.get(self._key)
        if content is None:
            self._answer(404, [])
            return
        headers = [("Last-Modified", formatdate(usegmt=True)), ("ETag", '"x"')]
        status, wanted = 200, self.headers.get("range")
        if wanted is not None:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            headers.append(("Content-Range", f"bytes {first}-{last}/{len(content)}"))
            status, content = 206, content[int(first) : int(last) + 1]
        self._answer(status, headers, content, with_body=with_body)

    def _answer(
        self, status: int, headers: list[tuple[str, str]], content: bytes = b"", *, with_body: bool = True
    ) -> None:
        head = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            *(f"{name}: {text}" for name, text in headers),
        ]
        if status != HTTPStatus.NO_CONTENT:
            head.append(f"Content-Length: {len(content)}")
        answer = "\r\n".join([*head, "", ""]).encode() + (content if with_body else b"")
        if self._store.health == "trickles":
            self._store.held.release()
            while answer and not self._store.pause():
                self.wfile.write(answer[:TRICKLE_BYTES])
                answer = answer[TRICKLE_BYTES:]
        self.wfile.write(answer)

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:  # the catalog gave up
            self.close_connection = True


def _unchunked(body: BufferedIOBase) -> bytes:
    """Return what the chunks of a body hold; both HTTP and S3 cut bodies like this."""
    content = b""
    while size := int(body.readline().partition(b";")[0], 16):
        content += body.read(size)
        body.readline()
    while body.readline().strip():
        pass
    return content
