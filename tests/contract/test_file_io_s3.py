"""What a real S3-compatible server adds to the contract: keys, buckets, and what is left behind."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from app.engine.model.ids import Location
from app.errors import FilesUnavailable
from app.fileio.schemes import files_for
from tests.servers.s3 import S3Server

pytestmark = pytest.mark.s3

_BUCKET = "s3-contract"


@pytest.fixture
def server(s3_server: S3Server) -> S3Server:
    s3_server.create_bucket(_BUCKET)
    return s3_server


@pytest.fixture
def root() -> Location:
    return Location(f"s3://{_BUCKET}/{uuid.uuid4()}")


@pytest.mark.parametrize("setting", ["s3.secret-access-key", "s3.access-key-id"])
def test_wrong_keys_are_told_as_such(server: S3Server, root: Location, setting: str) -> None:
    location = Location(f"{root}/{uuid.uuid4()}")
    files = files_for({**server.storage, setting: "not-the-right-one"})

    for call in (files.read, files.exists, files.delete, lambda where: list(files.list_files(where))):
        with pytest.raises(
            FilesUnavailable, match=f"Cannot .* {root}.*: the store refuses access with these credentials"
        ):
            call(location)
    with pytest.raises(
        FilesUnavailable, match=f"Cannot write {location}: the store refuses access"
    ) as raised:
        files.write_new(location, b"")

    assert "not-the-right-one" not in str(raised.value)


def test_no_keys_are_told_as_such(server: S3Server, root: Location) -> None:
    files = files_for({"s3.endpoint": server.endpoint, "s3.anonymous": "true"})

    with pytest.raises(FilesUnavailable, match="refuses access"):
        files.read(Location(f"{root}/x"))


def test_a_folder_that_cannot_be_asked_for_hides_no_others(server: S3Server, root: Location) -> None:
    files = files_for(server.storage)
    good = [Location(f"{root}/a/{uuid.uuid4()}"), Location(f"{root}/z/{uuid.uuid4()}")]
    for location in good:
        files.write_new(location, b"x")
    odd = f"{root}/new\nline/v1.metadata.json"
    with server.filesystem().open_output_stream(odd.removeprefix("s3://")) as planted:
        planted.write(b"x")

    assert {file.location for file in files.list_files(root)} == {*good, odd}


class _Redirecting(BaseHTTPRequestHandler):
    """Sends all requests on to another port, and notes those that come there."""

    followed: list[str]

    def _answer(self) -> None:
        if self.path.startswith("/elsewhere"):
            self.followed.append(self.command)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(307)
        self.send_header("Location", f"http://localhost:{self.headers['Host'].rpartition(':')[2]}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _answer  # noqa: N815 (the names http.server asks for)

    def log_message(self, *_: object) -> None:
        pass


def test_redirects_are_not_followed() -> None:
    handler = type("Handler", (_Redirecting,), {"followed": []})
    location = Location(f"s3://bucket/{uuid.uuid4()}")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as store:
        threading.Thread(target=store.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        keys = {"s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.session-token": "c"}
        files = files_for({"s3.endpoint": f"http://127.0.0.1:{store.server_port}", **keys})
        calls: list[Callable[[], object]] = [
            lambda: files.read(location),
            lambda: files.exists(location),
            lambda: files.delete(location),
            lambda: list(files.list_files(location)),
            lambda: files.write_new(location, b"x"),
        ]
        for call in calls:
            with pytest.raises(FilesUnavailable):
                call()
        store.shutdown()

    assert handler.followed == []  # type: ignore[attr-defined]  # it is a class that was made here


def test_a_missing_bucket_takes_no_file(server: S3Server) -> None:
    location = Location(f"s3://no-such-bucket/{uuid.uuid4()}")

    with pytest.raises(FilesUnavailable, match=f"Cannot write {location}: NO_SUCH_BUCKET"):
        files_for(server.storage).write_new(location, b"")


def test_the_key_is_exactly_what_the_location_says(server: S3Server, root: Location) -> None:
    """Looked at from behind, not through the code that made the location into a key."""
    names = ["a%20b", "a b", "ü", "what?", "x+y", "a&b=c"]
    files = files_for(server.storage)
    for name in names:
        files.write_new(Location(f"{root}/{name}"), name.encode())

    behind = server.filesystem()
    for name in names:
        with behind.open_input_file(f"{root.removeprefix('s3://')}/{name}") as stream:
            assert stream.read() == name.encode()


def test_two_warehouses_with_other_keys_do_not_share_a_connection(server: S3Server, root: Location) -> None:
    location = Location(f"{root}/{uuid.uuid4()}")
    files_for(server.storage).write_new(location, b"")

    with pytest.raises(FilesUnavailable):
        files_for({**server.storage, "s3.secret-access-key": "wrong"}).read(location)
    assert files_for(server.storage).read(location) == b""


def test_a_server_that_stops_makes_files_unavailable(root: Location) -> None:
    with S3Server() as server:
        server.create_bucket(_BUCKET)
        files = files_for(server.storage)
        location = Location(f"{root}/{uuid.uuid4()}")
        files.write_new(location, b"content")

    with pytest.raises(FilesUnavailable, match=f"Cannot read {location}: "):
        files.read(location)
    with pytest.raises(FilesUnavailable, match="Cannot write "):
        files.write_new(Location(f"{root}/{uuid.uuid4()}"), b"")
