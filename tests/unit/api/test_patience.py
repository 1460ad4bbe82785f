"""Work that nothing waits for any more is given up between two files."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from app.api import patience
from app.engine.model.ids import Location
from app.fileio.bounded_reads import read_at_most
from app.fileio.local import LocalFiles
from tests.builders.http_catalog import error_of, http_catalog, make_namespace

APPENDS = 40
FILES = "/v1/namespaces/a/tables/t/snapshots/main/files"


class SlowFiles(LocalFiles):
    """Local files of which each manifest takes a moment, once a test says so, and the first one until it says so."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()
        self.count = 0
        self.is_slow = False

    def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
        if self.is_slow and location.endswith(".avro"):
            self.count += 1
            self.has_begun.set()
            assert self.may_go_on.wait(60)
            threading.Event().wait(0.05)
        return super().read_at_most(location, max_bytes)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> SlowFiles:
    monkeypatch.setattr(patience, "_LOOK_S", 0.0)
    return SlowFiles()


def fill(client: httpx.Client) -> None:
    make_namespace(client, "a")
    rows = pa.table({"id": pa.array([1])})
    table = RestCatalog("here", uri=str(client.base_url).rstrip("/")).create_table("a.t", rows.schema)
    for _ in range(APPENDS):
        table.append(rows)


def test_a_client_that_leaves_ends_the_reading_of_its_files(tmp_path: Path, files: SlowFiles) -> None:
    with http_catalog(tmp_path, files_of=lambda _warehouse: files, manifest_cache_bytes=0) as client:
        fill(client)
        files.is_slow = True
        with socket.create_connection(("127.0.0.1", client.base_url.port or 0)) as impatient:
            impatient.sendall(f"GET {FILES} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert files.has_begun.wait(60)
        files.may_go_on.set()
        # The server ends when all its requests have ended.

    assert 0 < files.count < APPENDS


def test_work_has_an_end(tmp_path: Path, files: SlowFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    with http_catalog(tmp_path, files_of=lambda _warehouse: files, manifest_cache_bytes=0) as client:
        fill(client)
        monkeypatch.setattr(patience, "LONGEST_WORK_S", 0.1)
        files.is_slow = True
        files.may_go_on.set()

        answer = client.get(FILES)

    assert error_of(answer)[:2] == (504, "GatewayTimeoutException")
    assert "given up after 0.1 s" in error_of(answer)[2]


def test_threads_that_work_for_a_request_may_ask_too(tmp_path: Path, files: SlowFiles) -> None:
    with http_catalog(tmp_path, files_of=lambda _warehouse: files) as client:
        fill(client)
        paths = [task["file-path"] for task in client.get(FILES).json()["files"]][:2]

        # The footers of several files are read side by side.
        answer = client.post(
            "/v1/namespaces/a/tables/t/append",
            json={"files": [{"file-path": path} for path in paths], "allow-duplicates": True},
        )

    assert answer.status_code == 200, answer.text


def test_outside_of_requests_all_work_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")

    assert read_at_most(LocalFiles(), Location(str(path)), 1) == b"x"
