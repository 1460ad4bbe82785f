"""Refused requests leave nothing behind: what a client sends is let go as soon as it is answered."""

from __future__ import annotations

import gc
import json
import re
import socket
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from app.cli.server.http_protocol import CatalogProtocol
from app.cli.server.lingering import LingeringTransport
from tests.bad_input.wire import chunked
from tests.builders.claimed_files import ClaimingWriter
from tests.builders.http_catalog import http_catalog, make_namespace, make_table
from tests.servers.icetower import icetower_process

BODY_BYTES = 1 << 20
REQUESTS = 20
PATIENCE_SECONDS = 60
PAUSE_SECONDS = 0.01
LIMIT = 100_000
PARTS_OF_CONNECTIONS = (CatalogProtocol, RequestResponseCycle, LingeringTransport)
HEAD = b"POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
OWN = ("/v1/namespaces/a/tables/t/rewrite-manifests", "/v1/undrop")
"""What is looked for here only after the whole body was understood."""


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Without the garbage collector, only what nothing refers to any more is freed."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (
            "/v1/namespaces/a/tables/t",
            {"requirements": [{"type": "assert-table-uuid", "uuid": "0"}], "updates": []},
            409,
        ),
        ("/v1/namespaces/a/tables/t", {"requirements": [], "updates": [{"action": "no-such"}]}, 400),
        ("/v1/namespaces/a/tables/gone", {"requirements": [], "updates": []}, 404),
        ("/v1/namespaces/a/register", {"name": "x", "metadata-location": "file:///elsewhere"}, 400),
        ("/v1/namespaces/a/tables/t/append", {"files": [{"file-path": "file:///elsewhere"}]}, 400),
        ("/v1/namespaces/a/tables/t/orphans", {"older-than-ms": -1}, 400),
        ("/v1/namespaces/a/tables/t/rewrite-manifests", {"branch": "gone"}, 404),
        ("/v1/namespaces/a/tables/t/maintenance/jobs", {"job": "expire-snapshots", "id": "odd"}, 400),
        (
            "/v1/namespaces/a/tables/t/validate",
            {
                "requirements": [{"type": "assert-ref-snapshot-id", "ref": "b", "snapshot-id": 1}],
                "updates": [],
            },
            200,
        ),
        ("/v1/undrop", {"id": 7}, 404),
        ("/v1/restore", {"at": "2026-01-01", "tables": [{"namespace": ["a"], "name": "t"}]}, 400),
    ],
    ids=[
        *("conflict", "malformed", "absent", "register"),
        *("append", "orphans", "rewrite", "job", "dry run", "undrop", "restore"),
    ],
)
def test_bodies_of_refused_requests_are_let_go(
    tmp_path: Path, path: str, body: dict[str, object], status: int
) -> None:
    with http_catalog(tmp_path) as api:
        make_namespace(api, "a")
        make_table(api, "a", "t")
        # Icetower's own bodies have no unknown field, and space belongs to any body.
        padding = {} if path in OWN else {"padding": "x" * BODY_BYTES}
        content = json.dumps({**body, **padding}).encode().ljust(BODY_BYTES)
        address = api.base_url.host, api.base_url.port

        def refused() -> None:
            # Not with httpx, whose own objects keep bodies in cycles.
            with closing(HTTPConnection(*address)) as connection:
                connection.request("POST", path, content, {"content-type": "application/json"})
                assert connection.getresponse().status == status

        refused()
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for _ in range(REQUESTS):
                refused()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert after - before < 3 * BODY_BYTES, f"{(after - before) / REQUESTS:.0f} bytes stay of each request"


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(
    "flaw",
    [
        {"table-uuid": "none"},
        {"schemas": [{"schema-id": 0, "fields": [{"id": 1, "name": "a", "required": True, "type": "none"}]}]},
    ],
    ids=["uuid", "type"],
)
def test_metadata_files_that_cannot_be_read_are_let_go(tmp_path: Path, flaw: dict[str, object]) -> None:
    """A collection would not find them: the errors of validators are inside one of pydantic."""
    with http_catalog(tmp_path) as api:
        make_namespace(api, "a")
        made = make_table(api, "a", "t")
        file = Path("/" + made["metadata-location"].removeprefix("file:").lstrip("/")).with_name(
            "v1.metadata.json"
        )
        properties = {"padding": "x" * BODY_BYTES}
        file.write_text(json.dumps({**made["metadata"], "properties": properties, **flaw}))

        def refused() -> None:
            body = {"name": "x", "metadata-location": str(file)}
            assert api.post("/v1/namespaces/a/register", json=body).status_code == 400

        refused()
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for _ in range(REQUESTS):
                refused()
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert after - before < 3 * BODY_BYTES, f"{(after - before) / REQUESTS:.0f} bytes stay of each file"


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("question", ["health", "maintenance", "profile", "snapshots/main/files"])
def test_manifests_that_cannot_be_read_are_let_go(tmp_path: Path, question: str) -> None:
    with http_catalog(tmp_path) as api:
        make_namespace(api, "a")
        writer = ClaimingWriter(api, "t")
        writer.commit([writer.file()])
        (manifest,) = (tmp_path / "warehouse").rglob("m0.avro")
        manifest.write_bytes(b"x" * BODY_BYTES)

        def asked() -> None:
            assert api.get(f"{writer.path}/{question}").status_code in {200, 500}

        asked()
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for _ in range(REQUESTS):
                asked()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert after - before < 3 * BODY_BYTES, f"{(after - before) / REQUESTS:.0f} bytes stay of each manifest"


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"Content-Length: %d\r\n\r\n" % BODY_BYTES + b"x" * BODY_BYTES,
        HEAD + b"Content-Length: %d\r\n\r\n" % LIMIT + b"x" * (LIMIT // 2),
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(b"x" * BODY_BYTES),
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nea60\r\n" + b"x" * (LIMIT // 2),
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + b"x" * (LIMIT // 2),
        b"GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3,
        b"GET /v1/config HTTP/1.1\r\n",
    ],
    ids=["refused", "cut off", "refused chunks", "cut-off chunks", "malformed", "pipelined", "half a head"],
)
def test_nothing_of_a_connection_is_left_when_it_has_ended(tmp_path: Path, sent: bytes) -> None:
    """A collection comes after thousands of objects only, and each connection would keep its body until then."""
    with http_catalog(tmp_path, max_body_bytes=LIMIT) as api:
        before = parts_of_connections()  # of other tests
        for _ in range(REQUESTS):
            send_and_end(api.base_url.port or 0, sent)
        # Its connection comes after those: when it is answered, the server has seen them all.
        httpx.get(api.base_url.join("/health"))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not parts_of_connections() <= before and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)

        assert parts_of_connections() <= before


def test_memory_of_bodies_that_are_cut_off_goes_back_to_the_system(tmp_path: Path) -> None:
    """The C library would keep it: after such a burst a process was more than twice as large as before."""
    sent = HEAD + b"Content-Length: %d\r\n\r\n" % (10 * BODY_BYTES) + b"x" * (9 * BODY_BYTES)
    with (
        icetower_process(tmp_path, file_deletion_interval_seconds="0.2") as url,
        ThreadPoolExecutor(16) as pool,
    ):
        port = httpx.URL(url).port or 0
        send_and_end(port, sent)
        before = resident_bytes(url)
        for _ in range(3):
            list(pool.map(lambda _: send_and_end(port, sent), range(64)))
            deadline = time.monotonic() + PATIENCE_SECONDS
            while resident_bytes(url) > 1.1 * before and time.monotonic() < deadline:
                time.sleep(PAUSE_SECONDS)
            assert resident_bytes(url) <= 1.1 * before


def resident_bytes(url: str) -> float:
    found = re.search(
        r"^process_resident_memory_bytes (\S+)$", httpx.get(f"{url}/metrics").text, re.MULTILINE
    )
    assert found is not None
    return float(found[1])


def parts_of_connections() -> Counter[type]:
    """Return how much there is of connections, by type."""
    return Counter(type(each) for each in gc.get_objects() if isinstance(each, PARTS_OF_CONNECTIONS))


def send_and_end(port: int, sent: bytes) -> None:
    # A refusal may come, and the connection go, before everything was sent.
    with (
        suppress(BrokenPipeError, ConnectionResetError),
        socket.create_connection(("127.0.0.1", port)) as own,
    ):
        own.sendall(sent)
