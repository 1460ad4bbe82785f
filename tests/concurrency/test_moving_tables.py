"""A table whose old metadata files are deleted at once is there at every moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.database.warehouses import Warehouse
from app.fileio.local import LocalFiles
from tests.builders.http_catalog import error_of, http_catalog, make_namespace, make_table, set_properties

TABLE = "/v1/namespaces/a/tables/t"
DELETE_AT_ONCE = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}


class Interrupted:
    """The files of a warehouse; something can happen when a thread has found a pointer and asks for them."""

    def __init__(self) -> None:
        self.interruptions: list[Callable[[], object]] = []
        self._files = LocalFiles()

    def files_of(self, _warehouse: Warehouse) -> LocalFiles:
        if self.interruptions and threading.current_thread().name != "catalog under test":
            self.interruptions.pop()()
        return self._files


@pytest.fixture(scope="module")
def files() -> Interrupted:
    return Interrupted()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("moving")


@pytest.fixture(scope="module")
def api(folder: Path, files: Interrupted) -> Iterator[httpx.Client]:
    # Nothing is kept, so that every request reads the file.
    with http_catalog(folder, files_of=files.files_of, metadata_cache_bytes=0) as client:
        make_namespace(client, "a")
        make_table(client, "a", "t")
        client.post(TABLE, json=set_properties(**DELETE_AT_ONCE)).raise_for_status()
        yield client


@pytest.fixture(scope="module")
def other(folder: Path) -> Iterator[httpx.Client]:
    """Another server on the same database: its commits do not wait for those of the first."""
    with http_catalog(folder) as client:
        yield client


def move_on(client: httpx.Client) -> None:
    """Commit so often that the file of the first moment is deleted."""
    before = Path(client.get(TABLE).json()["metadata-location"].removeprefix("file://"))
    for number in range(3):
        client.post(TABLE, json=set_properties(number=str(number))).raise_for_status()
    assert not before.exists()


REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", TABLE, None),
    ("GET", f"{TABLE}?snapshots=refs", None),
    ("GET", f"{TABLE}/snapshots", None),
    ("GET", f"{TABLE}/history", None),
    ("GET", f"{TABLE}/refs", None),
    ("POST", TABLE, set_properties(a="b")),
    ("POST", f"{TABLE}/validate", set_properties(a="b")),
    ("POST", f"{TABLE}/plan", {}),
    ("POST", f"{TABLE}/expire", {"dry-run": True}),
]


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS, ids=[f"{m} {p}" for m, p, _ in REQUESTS])
@pytest.mark.parametrize("times", [1, 3])
def test_a_file_that_a_commit_deletes_meanwhile_is_not_missed(
    api: httpx.Client,
    other: httpx.Client,
    files: Interrupted,
    method: str,
    path: str,
    body: Any,
    times: int,
) -> None:
    files.interruptions = [lambda: undisturbed(other, files)] * times

    answer = api.request(method, path, json=body)

    assert answer.status_code == 200, answer.text
    assert files.interruptions == []


def undisturbed(client: httpx.Client, files: Interrupted) -> None:
    later, files.interruptions = files.interruptions, []
    move_on(client)
    files.interruptions = later


def test_a_file_that_is_lost_is_still_missed(api: httpx.Client) -> None:
    make_table(api, "a", "lost")
    path = "/v1/namespaces/a/tables/lost"
    Path(api.get(path).json()["metadata-location"].removeprefix("file://")).unlink()

    for answer in (api.get(path), api.get(f"{path}/refs"), api.post(path, json=set_properties(a="b"))):
        assert error_of(answer)[:2] == (404, "NotFoundException")


def test_a_table_that_is_dropped_meanwhile_is_gone(api: httpx.Client, files: Interrupted) -> None:
    make_table(api, "a", "dropped")
    path = "/v1/namespaces/a/tables/dropped"
    location = Path(api.get(path).json()["metadata-location"].removeprefix("file://"))

    def drop() -> None:
        api.delete(path).raise_for_status()
        location.unlink()

    for request in (path, f"{path}/refs"):
        files.interruptions = [drop]
        assert error_of(api.get(request))[:2] == (404, "NoSuchTableException")
        make_table(api, "a", "dropped")
        location = Path(api.get(path).json()["metadata-location"].removeprefix("file://"))
