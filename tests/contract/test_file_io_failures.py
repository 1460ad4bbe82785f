"""What becomes of an object store's refusals and silences: each is one of our errors, in good time, without secrets."""

from __future__ import annotations

import gc
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from app.engine.model.ids import Location
from app.errors import FileExists, FileMissing, FilesUnavailable, Throttled
from app.fileio.files import FileIO
from app.fileio.schemes import files_for

_LOCATION = Location("s3://bucket/wh/t/metadata/x")
_UUID_LOCATION = Location(
    "s3://bucket/wh/t/metadata/00000-0b5a9b5e-0000-4000-8000-00000000cafe.metadata.json"
)
_SECRET = "hunter2+hunter2/hunter2"

_CALLS: dict[str, Callable[[FileIO], object]] = {
    "read": lambda files: files.read(_LOCATION),
    "write": lambda files: files.write_new(_UUID_LOCATION, b"content"),
    "delete": lambda files: files.delete(_LOCATION),
    "exists": lambda files: files.exists(_LOCATION),
    "list": lambda files: list(files.list_files(Location("s3://bucket/wh"))),
}


@dataclass
class AnsweringServer:
    """An HTTP server that gives every request the answer it was told to give, and notes what was asked."""

    port: int = 0
    status: int = 200
    body: bytes = b""
    head_status: int | None = None
    promised_length: int | None = None
    by_part_of_path: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def say(self, status: int, code: str = "", message: str = "") -> None:
        self.status = status
        self.body = (
            f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode() if code else b""
        )

    def answer_to(self, path: str) -> tuple[int, bytes]:
        said = (answer for part, answer in self.by_part_of_path.items() if part in path)
        return next(said, (self.status, self.body))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: AnsweringServer

    def answer(self) -> None:
        self._take_body()
        self.script.asked.append(f"{self.command} {self.path}")
        status, body = self.script.answer_to(self.path)
        if self.command == "HEAD":
            status = self.script.head_status or status
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(self.script.promised_length or len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
            self.close_connection = self.script.promised_length is not None

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815 (the names http.server asks for)

    def log_message(self, *_: object) -> None:
        pass

    def _take_body(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        while self.headers.get("Transfer-Encoding") == "chunked":
            size = int(self.rfile.readline().partition(b";")[0], 16)
            self.rfile.read(size + 2)
            if size == 0:
                break


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    script = AnsweringServer()
    handler = type("Handler", (_Handler,), {"script": script})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        script.port = http.server_port
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield script
        http.shutdown()
        thread.join()


def _s3(port: int, **settings: str) -> FileIO:
    return files_for(
        {
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "s3.access-key-id": "a-key",
            "s3.secret-access-key": _SECRET,
            "s3.retry.num-retries": "0",
            **settings,
        }
    )


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS.keys())
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (503, "SlowDown"),
        (503, "ServiceUnavailable"),
        (503, ""),
        (429, "TooManyRequests"),
        (429, ""),
        (400, "Throttling"),
    ],
)
def test_a_store_that_asks_to_slow_down_throttles(
    server: AnsweringServer, call: Callable[[FileIO], object], status: int, code: str
) -> None:
    server.say(status, code, "Please reduce your request rate.")
    if status == 400:
        server.head_status = 503  # an answer to HEAD has no body, so that its status must tell

    with pytest.raises(Throttled, match=r"Cannot .* s3://bucket/wh.*: the store asks to slow down"):
        call(_s3(server.port))


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS.keys())
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, "AccessDenied"),
        (403, "InvalidAccessKeyId"),
        (403, "SignatureDoesNotMatch"),
        (403, "ExpiredToken"),
        (401, "Unauthorized"),
        (403, ""),
    ],
)
def test_a_refusal_is_told_as_one_of_credentials(
    server: AnsweringServer, call: Callable[[FileIO], object], status: int, code: str
) -> None:
    server.say(status, code, "Go away.")

    with pytest.raises(
        FilesUnavailable, match=r"Cannot .* s3://bucket/wh.*: the store refuses access with these cred"
    ):
        call(_s3(server.port))


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS.keys())
@pytest.mark.parametrize(
    ("status", "code"),
    [(500, "InternalError"), (500, ""), (507, "InsufficientStorage"), (400, "Odd"), (418, "")],
)
def test_any_other_failure_makes_files_unavailable(
    server: AnsweringServer, call: Callable[[FileIO], object], status: int, code: str
) -> None:
    server.say(status, code, "Something broke.")

    with pytest.raises(FilesUnavailable, match=r"Cannot .* s3://bucket/wh"):
        call(_s3(server.port))


def test_another_region_is_told(server: AnsweringServer) -> None:
    server.say(301, "PermanentRedirect", "Use the endpoint of the bucket's region.")

    with pytest.raises(FilesUnavailable, match="the bucket is in another region"):
        _s3(server.port).read(_LOCATION)


def test_words_in_a_location_do_not_make_an_error_something_else(server: AnsweringServer) -> None:
    server.say(500, "InternalError", "Something broke.")

    with pytest.raises(FilesUnavailable) as raised:
        _s3(server.port).read(Location("s3://bucket/slow_down/access_denied/HTTP status 503"))

    assert "slow down:" not in str(raised.value)
    assert "credentials" not in str(raised.value)


def test_a_missing_bucket_has_no_files_and_takes_none(server: AnsweringServer) -> None:
    server.say(404, "NoSuchBucket", "The specified bucket does not exist")
    files = _s3(server.port)

    with pytest.raises(FileMissing, match=_LOCATION):
        files.read(_LOCATION)
    assert not files.exists(_LOCATION)
    assert list(files.list_files(Location("s3://bucket/wh"))) == []
    with pytest.raises(FilesUnavailable, match="NO_SUCH_BUCKET"):
        files.write_new(_UUID_LOCATION, b"")


def test_an_error_tells_no_secret(server: AnsweringServer) -> None:
    server.say(400, "Odd", f"You sent {_SECRET} and a-session-token to https://host/x?X-Amz-Signature=abc")

    with pytest.raises(FilesUnavailable) as raised:
        _s3(server.port, **{"s3.session-token": "a-session-token"}).write_new(_UUID_LOCATION, b"")

    assert "You sent *** and *** to https://host/x" in str(raised.value)
    assert "X-Amz-Signature" not in str(raised.value)


def test_an_answer_that_breaks_off_is_not_taken_for_a_file(server: AnsweringServer) -> None:
    server.body = b"only the beginning"
    server.promised_length = 10_000

    with pytest.raises(FilesUnavailable, match=f"Cannot read {_LOCATION}: .*9982 bytes missing"):
        _s3(server.port).read(_LOCATION)


@pytest.mark.parametrize("failing", ["partNumber=1", "partNumber=2", "partNumber=3"])
def test_an_upload_of_which_a_part_failed_is_never_completed(server: AnsweringServer, failing: str) -> None:
    """Not even when pyarrow tidies up: half a file must not appear under the name of a whole one."""
    started = b"<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
    server.by_part_of_path = {
        failing: (500, b"<Error><Code>InternalError</Code></Error>"),
        "?uploads": (200, started),
    }

    with pytest.raises(FilesUnavailable, match=f"Cannot write {_UUID_LOCATION}: "):
        _s3(server.port).write_new(_UUID_LOCATION, bytes(25_000_000))
    gc.collect()

    path = _UUID_LOCATION.removeprefix("s3:/")
    assert f"POST {path}?uploads" in server.asked
    assert f"POST {path}?uploadId=u" not in server.asked
    assert f"PUT {path}" not in server.asked


def test_a_name_with_a_uuid_is_written_in_one_request(server: AnsweringServer) -> None:
    server.say(200)

    _s3(server.port).write_new(_UUID_LOCATION, b"x" * 6_000)

    assert server.asked == [f"PUT {_UUID_LOCATION.removeprefix('s3:/')}"]


def test_any_other_name_is_looked_up_first(server: AnsweringServer) -> None:
    server.say(200)

    with pytest.raises(FileExists, match=_LOCATION):
        _s3(server.port).write_new(_LOCATION, b"")

    assert server.asked == ["HEAD /bucket/wh/t/metadata/x"]


@pytest.mark.parametrize(
    "name",
    [
        "0b5a9b5e-0000-4000-8000-00000000cafe/x",
        "0b5a9b5e-0000-4000-8000-00000000caf",
        "0b5a9b5e00004000800000000000cafe",
        "00000-x.metadata.json",
    ],
)
def test_only_a_whole_uuid_in_the_name_itself_is_unique(server: AnsweringServer, name: str) -> None:
    server.say(200)

    with pytest.raises(FileExists):
        _s3(server.port).write_new(Location(f"s3://bucket/{name}"), b"")


def test_looking_for_a_file_is_one_request(server: AnsweringServer) -> None:
    server.say(404)

    assert not _s3(server.port).exists(_LOCATION)

    assert server.asked == ["HEAD /bucket/wh/t/metadata/x"]


def test_a_transient_failure_is_tried_again(server: AnsweringServer) -> None:
    server.say(500, "InternalError", "Something broke.")

    with pytest.raises(FilesUnavailable):
        _s3(server.port, **{"s3.retry.num-retries": "1"}).read(_LOCATION)

    assert len(server.asked) == 2


def test_settings_choose_how_a_bucket_is_addressed(server: AnsweringServer) -> None:
    server.say(404)

    assert not _s3(server.port, **{"s3.path-style-access": "true"}).exists(_LOCATION)

    assert server.asked == ["HEAD /bucket/wh/t/metadata/x"]


@pytest.fixture
def dead_port() -> Iterator[int]:
    """A port that is bound and not listened on: nobody else takes it, and nobody answers."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS.keys())
def test_a_dead_endpoint_makes_files_unavailable(dead_port: int, call: Callable[[FileIO], object]) -> None:
    with pytest.raises(FilesUnavailable, match=r"Cannot .* s3://bucket/wh.*: .*Could not connect to server"):
        call(_s3(dead_port))


def test_a_dead_endpoint_is_noticed_in_seconds_with_the_settings_as_they_come(dead_port: int) -> None:
    endpoint = f"http://127.0.0.1:{dead_port}"
    files = files_for({"s3.endpoint": endpoint, "s3.access-key-id": "a", "s3.secret-access-key": "b"})
    started = time.monotonic()

    with pytest.raises(FilesUnavailable, match="Could not connect to server"):
        files.write_new(_UUID_LOCATION, b"content")

    assert time.monotonic() - started < 15


@pytest.mark.parametrize("call", ["read", pytest.param("write", marks=pytest.mark.slow)])
def test_a_silent_endpoint_is_given_up(call: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        files = _s3(silent.getsockname()[1], **{"s3.request-timeout": "1"})
        started = time.monotonic()

        with pytest.raises(FilesUnavailable, match=r"Cannot .* s3://bucket/wh"):
            _CALLS[call](files)

        assert time.monotonic() - started < 20


def _gcs(port: int) -> FileIO:
    return files_for({"gcs.service.host": f"http://127.0.0.1:{port}", "gcs.no-auth": "true"})


def test_gcs_without_the_file_is_told_so(server: AnsweringServer) -> None:
    server.say(404)
    files = _gcs(server.port)

    with pytest.raises(FileMissing, match="gs://bucket/x"):
        files.read(Location("gs://bucket/x"))
    assert not files.exists(Location("gs://bucket/x"))
    assert list(files.list_files(Location("gs://bucket/wh"))) == []
    files.delete(Location("gs://bucket/x"))


def test_gcs_that_refuses_is_told_so(server: AnsweringServer) -> None:
    server.say(403)
    files = _gcs(server.port)

    for call in (files.read, files.exists, files.delete):
        with pytest.raises(
            FilesUnavailable, match="gs://bucket/x: the store refuses access with these credentials"
        ):
            call(Location("gs://bucket/x"))


def test_what_gcs_calls_an_invalid_request_says_nothing_of_the_location(server: AnsweringServer) -> None:
    server.say(400)
    files = _gcs(server.port)

    for call in (files.read, files.exists, files.delete, lambda at: files.write_new(at, b"")):
        with pytest.raises(FilesUnavailable, match=r"Cannot .* gs://bucket/x-0b5a9b5e.*INVALID_ARGUMENT"):
            call(Location("gs://bucket/x-0b5a9b5e-0000-4000-8000-00000000cafe"))


def test_gcs_lists_what_is_in_folders_of_a_folder(server: AnsweringServer) -> None:
    """In a listing of one folder Google names the folders in it, and pyarrow leaves those out."""
    deep = {
        "kind": "storage#object",
        "bucket": "bucket",
        "name": "wh/t/data/x",
        "size": "5",
        "generation": "1",
        "timeCreated": "2026-11-28T00:00:00Z",
        "updated": "2026-11-28T00:00:00Z",
    }
    folders = {"kind": "storage#objects", "prefixes": ["wh/t/"]}
    server.by_part_of_path = {"delimiter": (200, json.dumps(folders).encode())}
    server.body = json.dumps({"kind": "storage#objects", "items": [deep]}).encode()

    (file,) = _gcs(server.port).list_files(Location("gs://bucket/wh"))

    assert (file.location, file.size_bytes) == ("gs://bucket/wh/t/data/x", 5)


@pytest.mark.slow
def test_gcs_that_is_dead_is_unavailable(dead_port: int) -> None:
    with pytest.raises(FilesUnavailable, match=r"Cannot read gs://bucket/x: .*Could not connect"):
        _gcs(dead_port).read(Location("gs://bucket/x"))


def test_azure_that_is_dead_is_unavailable_and_tells_no_secret(dead_port: int) -> None:
    authority = f"127.0.0.1:{dead_port}"
    files = files_for(
        {
            "adls.sas-token": "sv=1&sig=a-signature",
            "adls.blob-storage-authority": authority,
            "adls.dfs-storage-authority": authority,
            "adls.blob-storage-scheme": "http",
            "adls.dfs-storage-scheme": "http",
        }
    )

    with pytest.raises(FilesUnavailable, match="no connection") as raised:
        files.read(Location("abfss://container@account.dfs.core.windows.net/x"))

    assert "a-signature" not in str(raised.value)
