"""Expiring snapshots over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.engine.model.document import MAX_LONG
from app.engine.model.files.manifests import DataFile
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.fileio.local import LocalFiles
from tests.builders.http_catalog import error_of, make_table, set_properties
from tests.builders.table_files import TableFiles

FAR_AHEAD_MS = 4_000_000_000_000
ALL_BUT_LAST = {"older-than-ms": FAR_AHEAD_MS, "retain-last": 1}


@pytest.fixture
def path(api: httpx.Client, ns: str) -> str:
    """A table with three data files, of which the last commit removed the first."""
    make_table(api, ns, "t")
    path = f"/v1/namespaces/{ns}/tables/t"
    files = TableFiles(LocalFiles())
    for added, removed in ((["a"], []), (["b"], []), (["c"], ["a"])):
        append(api, path, files, added, removed)
    return path


def load(api: httpx.Client, path: str) -> TableMetadata:
    return read_table_metadata(json.dumps(api.get(path).json()["metadata"]).encode())


def append(api: httpx.Client, path: str, files: TableFiles, added: list[str], removed: list[str]) -> None:
    snapshot = files.snapshot(load(api, path), added, removed)
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot.to_object()},
        {
            "action": "set-snapshot-ref",
            "ref-name": "main",
            "type": "branch",
            "snapshot-id": snapshot.snapshot_id,
        },
    ]
    response = api.post(path, json={"requirements": [], "updates": updates})
    assert response.status_code == 200, response.text


def expire(api: httpx.Client, path: str, key: str | None = None, **body: Any) -> httpx.Response:
    headers = {"idempotency-key": key} if key else {}
    spelled = {name.replace("_", "-"): value for name, value in body.items()}
    return api.post(f"{path}/expire", json=ALL_BUT_LAST | spelled, headers=headers)


def test_dry_run_counts_what_would_go(api: httpx.Client, path: str) -> None:
    before = api.get(path).json()

    told = expire(api, path, dry_run=True, key="ignored").json()

    assert told["dry-run"] is True
    assert told["metadata-location"] == before["metadata-location"]
    assert len(told["snapshots"]) == 2
    assert set(told["snapshots"][0]) == {"snapshot-id", "timestamp-ms"}
    assert {kind: found["count"] for kind, found in told["files"].items()} == {
        "data-files": 1,
        "position-delete-files": 0,
        "equality-delete-files": 0,
        "manifests": 1,
        "manifest-lists": 2,
        "statistics-files": 0,
    }
    assert told["files"]["data-files"]["size-bytes"] == 9
    assert "size-bytes" not in told["files"]["manifest-lists"]
    assert "files-deleted-after-ms" not in told
    assert api.get(path).json() == before


def test_snapshots_go_and_the_answer_says_when_the_files_will(api: httpx.Client, path: str) -> None:
    wanted = expire(api, path, dry_run=True).json()["snapshots"]

    done = expire(api, path, grace_period_ms=60_000).json()

    after = api.get(path).json()
    assert done["dry-run"] is False
    assert done["snapshots"] == wanted
    assert done["metadata-location"] == after["metadata-location"]
    assert len(after["metadata"]["snapshots"]) == 1
    assert done["files-deleted-after-ms"] >= after["metadata"]["last-updated-ms"] + 60_000
    assert "files" not in done


def test_request_that_is_sent_again_is_answered_again(api: httpx.Client, path: str) -> None:
    first = expire(api, path, key="expire-once")

    again = expire(api, path, key="expire-once")

    assert again.json() == first.json()
    assert len(first.json()["snapshots"]) == 2
    assert again.headers["idempotent-replayed"] == "true"
    assert error_of(expire(api, path, key="expire-once", retain_last=9))[0] == 422


def test_nothing_to_do_is_told_as_nothing(api: httpx.Client, path: str) -> None:
    expire(api, path)

    told = expire(api, path, key="nothing-left").json()

    assert told["snapshots"] == []
    assert "files-deleted-after-ms" not in told
    assert expire(api, path, key="nothing-left").json() == told


def test_refusals_are_worded_for_people(api: httpx.Client, path: str) -> None:
    current = api.get(path).json()["metadata"]["current-snapshot-id"]

    named = error_of(expire(api, path, snapshot_ids=[current]))
    api.post(path, json=set_properties(**{"gc.enabled": "false"}))
    off = error_of(expire(api, path))

    assert named == (
        400,
        "BadRequestException",
        f"Cannot expire {current}. Still referenced by refs: [main]",
    )
    assert off[:2] == (400, "BadRequestException")
    assert off[2].startswith("Cannot expire snapshots: GC is disabled")


@pytest.mark.parametrize(
    "body",
    [
        {"retain-last": 0},
        {"older-than-ms": -1},
        {"older-than-ms": "yesterday"},
        {"snapshot-ids": ["1"]},
        {"snapshot-ids": 1},
        {"cleanup": "some"},
        {"dry-run": "yes"},
        {"grace-period-ms": -1},
        [],
    ],
)
def test_request_that_makes_no_sense_is_refused(api: httpx.Client, path: str, body: Any) -> None:
    response = api.post(f"{path}/expire", json=body)

    assert error_of(response)[:2] == (400, "BadRequestException")


def test_table_that_is_not_there_is_not_found(api: httpx.Client, ns: str) -> None:
    missing = f"/v1/namespaces/{ns}/tables/missing"

    assert error_of(expire(api, missing))[:2] == (404, "NoSuchTableException")
    assert error_of(expire(api, missing, dry_run=True))[:2] == (404, "NoSuchTableException")


class Boasting(TableFiles):
    """Says of each data file that it has as many bytes as can be said."""

    def _data_file(self, metadata: TableMetadata, name: str) -> DataFile:
        return replace(super()._data_file(metadata, name), file_size_in_bytes=MAX_LONG)


def test_sizes_whose_sum_no_client_can_read(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    path, files = f"/v1/namespaces/{ns}/tables/t", Boasting(LocalFiles())
    append(api, path, files, ["a", "b", "c"], [])
    append(api, path, files, ["d"], ["a", "b", "c"])

    preview = expire(api, path, dry_run=True)
    first, last = (item["snapshot-id"] for item in api.get(path).json()["metadata"]["snapshots"])
    difference = api.get(f"{path}/diff", params={"from": first, "to": last})

    assert preview.status_code == 200, preview.text
    assert preview.json()["files"]["data-files"] == {"count": 3, "size-bytes": MAX_LONG}
    assert difference.status_code == 200, difference.text
    assert difference.json()["removed"]["bytes"] == MAX_LONG
