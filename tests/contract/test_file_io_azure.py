"""What Azure's answers mean, and what becomes of answers that are not Azure's."""

from __future__ import annotations

import logging
import os
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import ChainedTokenCredential, EnvironmentCredential

from app.engine.model.ids import Location
from app.errors import AccessRefused, FileExists, FileMissing, FilesUnavailable, InvalidLocation, Throttled
from app.fileio.files import FileIO
from app.fileio.network import azure_store
from app.fileio.network.azure_store import AzureStore, Blob, open_service
from app.fileio.schemes import files_for
from app.fileio.tails import read_tail

_ROOT = "abfss://lake@acct.dfs.core.windows.net/wh"
_LOCATION = Location(f"{_ROOT}/x")
_UUID_LOCATION = Location(f"{_ROOT}/0b5a9b5e-0000-4000-8000-00000000cafe")
_AZURE = {"x-ms-request-id": "1", "x-ms-version": "2021-12-02", "Content-Type": "application/xml"}
_WRITTEN = "Sat, 28 Nov 2026 07:00:00 GMT"
_CALLS: dict[str, Callable[[FileIO], object]] = {
    "read": lambda files: files.read(_LOCATION),
    "tail": lambda files: read_tail(files, _LOCATION, 1),
    "write": lambda files: files.write_new(_UUID_LOCATION, b"content"),
    "delete": lambda files: files.delete(_LOCATION),
    "exists": lambda files: files.exists(_LOCATION),
    "find": lambda files: files.find_file(_LOCATION),
    "list": lambda files: list(files.list_files(Location(_ROOT))),
}
Answer = tuple[int, dict[str, str], bytes] | None


@dataclass
class Scripted:
    """A server that answers as it was told, the last answer for ever; None breaks the connection."""

    port: int = 0
    answers: list[Answer] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    conditions: list[str | None] = field(default_factory=list)
    """Of each request: what must not be there."""
    deletes_snapshots: list[str | None] = field(default_factory=list)
    """Of each request: whether snapshots go, too."""
    before_answer: Callable[[], object] = field(default=lambda: None)

    def files(self, **settings: str) -> FileIO:
        place = {
            "adls.blob-storage-authority": f"127.0.0.1:{self.port}",
            "adls.blob-storage-scheme": "http",
        }
        return files_for({**place, **(settings or {"adls.account-key": "a2V5"})})


@pytest.fixture
def server() -> Iterator[Scripted]:
    script = Scripted()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            script.asked.append(f"{self.command} {self.path}")
            script.conditions.append(self.headers.get("If-None-Match"))
            script.deletes_snapshots.append(self.headers.get("x-ms-delete-snapshots"))
            script.before_answer()
            said = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
            if said is None:
                self.close_connection = True
                return
            status, headers, body = said
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_DELETE = answer  # noqa: N815 (the names http.server asks for)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        script.port = http.server_port
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield script
        http.shutdown()
        thread.join()


def _refusal(status: int, code: str) -> Answer:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>Why.\nRequestId:1</Message></Error>"
    return status, {**_AZURE, "x-ms-error-code": code}, body.encode()


def _page(names: str, following: str = "") -> Answer:
    body = (
        f"<EnumerationResults><Blobs>{names}</Blobs><NextMarker>{following}</NextMarker></EnumerationResults>"
    )
    return 200, _AZURE, body.encode()


def _blob(name: str, more: str = "", size: str = "5") -> str:
    properties = (
        f"<Content-Length>{size}</Content-Length><Last-Modified>{_WRITTEN}</Last-Modified>"
        "<BlobType>BlockBlob</BlobType>"
    )
    return f"<Blob>{name}<Properties>{properties}</Properties>{more}</Blob>"


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS.keys())
@pytest.mark.parametrize("status", [200, 201, 202, 204, 206, 302, 404])
def test_an_answer_that_is_not_azures_makes_files_unavailable(
    server: Scripted, call: Callable[[FileIO], object], status: int
) -> None:
    server.answers = [(status, {}, b"" if status == 204 else b"<html>Log in</html>")]

    with pytest.raises(FilesUnavailable, match=f"Cannot .* {_ROOT}.*the answer is not Azure's"):
        call(server.files())


@pytest.mark.parametrize("call", ["read", "tail", "exists", "find", "list"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<a/>",
        b"oops",
        b"<EnumerationResults><Blobs><Blob><Name>wh/x</Name></Blob></Blobs></EnumerationResults>",
    ],
)
def test_an_answer_that_says_too_little_makes_files_unavailable(
    server: Scripted, call: str, body: bytes
) -> None:
    length = {} if call == "list" else {"Content-Length": "x"}
    server.answers = [(200, {**_AZURE, **length}, body)]

    with pytest.raises(FilesUnavailable, match=f"Cannot .* {_ROOT}"):
        _CALLS[call](server.files())


@pytest.mark.parametrize("code", ["BlobNotFound", "ContainerNotFound"])
def test_what_azure_says_is_missing_is_missing(server: Scripted, code: str) -> None:
    server.answers = [_refusal(404, code)]
    files = server.files()

    for call in ("read", "tail"):
        with pytest.raises(FileMissing, match=_LOCATION):
            _CALLS[call](files)
    assert not files.exists(_LOCATION)
    assert files.find_file(_LOCATION) is None
    assert list(files.list_files(Location(_ROOT))) == []
    files.delete(_LOCATION)
    with pytest.raises(FilesUnavailable, match=f"Cannot write {_UUID_LOCATION}: .*404: {code}: Why"):
        files.write_new(_UUID_LOCATION, b"")


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS.keys())
@pytest.mark.parametrize(
    ("status", "code", "error", "message"),
    [
        (503, "ServerBusy", Throttled, "asks to slow down"),
        (429, "TooManyRequests", Throttled, "asks to slow down"),
        (403, "AuthenticationFailed", FilesUnavailable, "refuses access with these credentials"),
        (401, "NoAuthenticationInformation", FilesUnavailable, "refuses access with these credentials"),
        (409, "AccountBeingCreated", FilesUnavailable, "AccountBeingCreated"),
        (500, "InternalError", FilesUnavailable, "InternalError"),
    ],
)
def test_refusals_are_told_as_what_they_are(
    server: Scripted,
    call: Callable[[FileIO], object],
    status: int,
    code: str,
    error: type[Exception],
    message: str,
) -> None:
    server.answers = [_refusal(status, code)]

    with pytest.raises(error, match=f"Cannot .* {_ROOT}.*{message}"):
        call(server.files())


def test_an_emulator_is_not_reached_through_a_proxy(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server.answers = [(200, {**_AZURE, "Content-Range": "bytes 0-4/5"}, b"words")]

    assert server.files().read(_LOCATION) == b"words"


def test_a_blob_that_is_there_is_left(server: Scripted) -> None:
    server.answers = [_refusal(409, "BlobAlreadyExists")]

    for location in (_LOCATION, _UUID_LOCATION):
        with pytest.raises(FileExists, match=location):
            server.files().write_new(location, b"")


def test_a_write_whose_answer_is_lost_is_repeated_where_the_name_is_its_own(server: Scripted) -> None:
    server.answers = [None, (201, _AZURE, b"")]
    server.files().write_new(_UUID_LOCATION, b"content")
    server.answers = [None, (201, _AZURE, b"")]

    with pytest.raises(FilesUnavailable, match=f"Cannot write {_LOCATION}"):
        server.files().write_new(_LOCATION, b"content")

    assert server.asked == [f"PUT /acct/lake/wh/{_UUID_LOCATION.rpartition('/')[2]}"] * 2 + [
        "PUT /acct/lake/wh/x"
    ]
    assert server.conditions == ["*", None, "*"]


@pytest.mark.parametrize("call", ["exists", "delete", "list"])
def test_what_may_be_repeated_is_repeated_once(server: Scripted, call: str) -> None:
    server.answers = [None, _refusal(404, "BlobNotFound")]
    _CALLS[call](server.files())
    server.answers = [None]

    with pytest.raises(FilesUnavailable, match=f"Cannot .* {_ROOT}"):
        _CALLS[call](server.files())

    assert len(server.asked) == 4


def test_a_file_that_breaks_off_is_no_file(server: Scripted) -> None:
    server.answers = [(200, {**_AZURE, "Content-Length": "100", "Connection": "close"}, b"the beginning")]

    with pytest.raises(FilesUnavailable, match=f"Cannot read {_LOCATION}"):
        server.files().read(_LOCATION)


def test_a_listing_has_all_pages_and_no_folders(server: Scripted) -> None:
    metadata = "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata>"
    server.answers = [
        _page(
            _blob("<Name>wh/a//b &amp; c</Name>")
            + _blob("<Name>wh/folder</Name>", metadata)
            + _blob("<Name>wh/marker/</Name>"),
            "2!x",
        ),
        _page(_blob("<Name Encoded='true'>wh/%EF%BF%BE</Name>", size="0")),
    ]

    found = list(server.files().list_files(Location(f"{_ROOT}/")))

    assert [(file.location, file.size_bytes, file.modified_ms) for file in found] == [
        (f"{_ROOT}/a//b & c", 5, 1_795_849_200_000),
        (f"{_ROOT}/\ufffe", 0, 1_795_849_200_000),
    ]
    assert "marker=2%21x" in server.asked[1]


def test_a_listing_that_goes_round_ends(server: Scripted) -> None:
    server.answers = [_page("", "again")]

    with pytest.raises(FilesUnavailable, match=f"Cannot list {_ROOT}: the listing goes round"):
        list(server.files().list_files(Location(_ROOT)))


@pytest.mark.parametrize("start", ["", "?"])
def test_a_sas_token_goes_with_each_request_and_is_never_shown(server: Scripted, start: str) -> None:
    server.answers = [_refusal(403, "AuthorizationFailure")]
    files = server.files(**{"adls.sas-token": f"{start}sv=1&sig=a%2Fsignature%3D"})

    with pytest.raises(FilesUnavailable) as raised:
        files.write_new(_UUID_LOCATION, b"")

    (asked,) = server.asked
    assert asked.endswith("?sv=1&sig=a%2Fsignature%3D")
    assert "signature" not in str(raised.value)


def test_what_a_store_repeats_of_a_token_is_not_in_the_log_either(
    server: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    signature = f"{7:012}"
    server.answers = [_refusal(403, f"Refused: sig={signature}")]

    with pytest.raises(FilesUnavailable) as raised:
        _CALLS["list"](server.files(**{"adls.sas-token": f"sig={signature}"}))

    assert signature in server.asked[0]
    assert signature not in "".join(traceback.format_exception(raised.value))
    assert signature not in caplog.text


def test_many_calls_at_once_do_not_fill_the_log(server: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    server.answers = [_refusal(404, "BlobNotFound")]
    files = server.files()
    files.exists(_LOCATION)
    all_ask = threading.Barrier(20)
    server.before_answer = lambda: all_ask.wait(10)
    calls = [threading.Thread(target=files.exists, args=(_LOCATION,)) for _ in range(all_ask.parties)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()

    assert len(server.asked) == 1 + len(calls)
    assert caplog.text == ""


@pytest.mark.parametrize("call", ["write", "list"])
def test_what_takes_a_store_longer_is_waited_for_longer(
    server: Scripted, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Where the store hangs, other requests have given up by then."""
    monkeypatch.setattr(azure_store, "_ANSWER_S", 0.05)
    monkeypatch.setattr(azure_store, "_LONG_ANSWER_S", 30)
    server.answers = [(201, _AZURE, b"")] if call == "write" else [_page(_blob("<Name>wh/x</Name>"))]
    is_asked, given_up, is_over = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        is_first = not is_asked.is_set()
        is_asked.set()
        (given_up if is_first else is_over).wait(60)

    server.before_answer = hold
    files = server.files()
    outcomes: list[object] = []
    waiting = threading.Thread(target=lambda: outcomes.append(_CALLS[call](files)))
    waiting.start()
    assert is_asked.wait(60)

    with pytest.raises(FilesUnavailable, match="no answer in time"):
        files.exists(_LOCATION)
    given_up.set()
    waiting.join()
    is_over.set()

    assert len(outcomes) == 1


def test_why_there_is_no_connection_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(
        FilesUnavailable, match=f"Cannot write {_LOCATION}: no connection: .*Connection refused"
    ):
        Scripted(port).files().write_new(_LOCATION, b"")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("SnapshotsPresent", "the blob has snapshots, which do not go with it"),
        ("BlobImmutableDueToPolicy", "a policy keeps it"),
        ("BlobImmutableDueToLegalHold", "a legal hold keeps it"),
    ],
)
def test_copies_that_somebody_keeps_are_not_deleted(server: Scripted, code: str, message: str) -> None:
    server.answers = [_refusal(409, code)]

    with pytest.raises(AccessRefused, match=f"Cannot delete {_LOCATION}: {message}"):
        server.files().delete(_LOCATION)

    assert server.deletes_snapshots == [None]


def test_why_there_is_no_token_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    service = open_service("https://127.0.0.1:1", ChainedTokenCredential(EnvironmentCredential()))
    store = AzureStore(lambda _location: Blob(service, "lake", "wh/x"))

    for call in ("read", "list", "delete", "read"):
        with pytest.raises(FilesUnavailable, match=f"Cannot {call} {_ROOT}.*ChainedTokenCredential failed"):
            _CALLS[call](store)

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "EnvironmentCredential authentication unavailable" in record.getMessage()


def test_reasons_for_no_token_that_differ_are_each_logged(caplog: pytest.LogCaptureFixture) -> None:
    reasons = ["AADSTS1 Trace ID: 12ab", "AADSTS1 Trace ID: 77f0", "the secret sesame is not valid"]

    class Failing:
        def get_token(self, *_scopes: str, **_options: object) -> AccessToken:
            raise ClientAuthenticationError(message=reasons[0])

    service = open_service("https://127.0.0.1:1", Failing())
    store = AzureStore(lambda _location: Blob(service, "lake", "wh/x"), secrets=("sesame",))
    while reasons:
        with pytest.raises(FilesUnavailable):
            store.exists(_LOCATION)
        del reasons[0]

    first, second = caplog.messages
    assert "AADSTS1 Trace ID: 12ab" in first
    assert "the secret *** is not valid" in second


def test_a_name_that_no_host_can_have_is_no_location(server: Scripted) -> None:
    with pytest.raises(InvalidLocation, match="Cannot use 'abfss://lake@a"):
        server.files().exists(Location(f"abfss://lake@{'a' * 64}.dfs.core.windows.net/x"))
