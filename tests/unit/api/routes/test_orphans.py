"""Orphans over HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.testing import icetower_catalog
from tests.builders.http_catalog import make_table

TEN_DAYS_S = 10 * 24 * 3600.0


@pytest.fixture(scope="module")
def own_server() -> Iterator[str]:
    """A server of its own: tables of other tests name manifests that are not there, which refuses every search."""
    with icetower_catalog() as url:
        yield url


@pytest.fixture
def http(own_server: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=own_server) as client:
        yield client


@pytest.fixture
def path(http: httpx.Client, request: pytest.FixtureRequest) -> str:
    """A table with one old file that nothing reaches."""
    namespace = f"ns_{abs(hash(request.node.name))}"
    http.post("/v1/namespaces", json={"namespace": [namespace]}).raise_for_status()
    make_table(http, namespace, "t")
    path = f"/v1/namespaces/{namespace}/tables/t"
    file = folder(http, path) / "data" / "left.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"left")
    then = file.stat().st_mtime - TEN_DAYS_S
    os.utime(file, (then, then))
    return path


def folder(http: httpx.Client, path: str) -> Path:
    location: str = http.get(path).json()["metadata"]["location"]
    return Path(location.removeprefix("file://"))


def orphans(http: httpx.Client, path: str, key: str | None = None, **body: Any) -> httpx.Response:
    headers = {"idempotency-key": key} if key else {}
    spelled = {name.replace("_", "-"): value for name, value in body.items()}
    return http.post(f"{path}/orphans", json=spelled, headers=headers)


def runs(http: httpx.Client, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = http.get(f"{path}/orphans").json()["runs"]
    return found


def test_unless_told_otherwise_nothing_is_marked(http: httpx.Client, path: str) -> None:
    found = orphans(http, path).json()

    assert (found["dry-run"], found["orphan-files"], found["orphan-bytes"]) == (True, 1, 4)
    assert [Path(file["location"]).name for file in found["sample"]] == ["left.parquet"]
    assert "files-deleted-after-ms" not in found
    assert runs(http, path) == []


def test_marked_files_are_in_the_runs(http: httpx.Client, path: str) -> None:
    marked = orphans(http, path, dry_run=False, grace_period_ms=3_600_000).json()

    (run,) = runs(http, path)
    assert run["report"] == marked
    assert (run["state"], run["marked-files"], run["deleted-files"], run["kept-files"]) == ("queued", 1, 0, 0)
    assert abs(run["files-deleted-after-ms"] - marked["files-deleted-after-ms"]) < 60_000


def test_a_request_that_is_sent_again_is_answered_again(http: httpx.Client, path: str) -> None:
    wish: dict[str, Any] = {"dry_run": False, "grace_period_ms": 3_600_000}
    first = orphans(http, path, key=path, **wish)
    again = orphans(http, path, key=path, **wish)

    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert len(runs(http, path)) == 1
    other = orphans(http, path, **wish)
    assert (other.status_code, other.json()["error"]["type"]) == (409, "CommitFailedException")


def test_that_nothing_was_found_is_answered_again_too(http: httpx.Client, path: str) -> None:
    (folder(http, path) / "data" / "left.parquet").unlink()

    first = orphans(http, path, key=f"none {path}", dry_run=False)
    (folder(http, path) / "data" / "late.parquet").write_bytes(b"late")
    again = orphans(http, path, key=f"none {path}", dry_run=False)

    assert (first.json()["orphan-files"], first.json()["dry-run"]) == (0, False)
    assert again.content == first.content


def test_all_of_them_as_lines(http: httpx.Client, path: str) -> None:
    headers = {"accept": "application/x-ndjson"}

    answer = http.post(f"{path}/orphans", json={}, headers=headers)

    assert answer.headers["content-type"] == "application/x-ndjson"
    (line,) = map(json.loads, answer.text.splitlines())
    assert line.keys() == {"file_path", "last_modified", "size_bytes"}
    refused = http.post(f"{path}/orphans", json={"dry-run": False}, headers=headers)
    assert (refused.status_code, runs(http, path)) == (400, [])
