"""Loading tables and asking whether they exist."""

from __future__ import annotations

import gzip
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
import pytest
from prometheus_client import REGISTRY

from app.api.compression import MIN_GZIP_BYTES, SLOW_GZIP_BYTES
from app.fileio import local
from app.fileio.mounts import Mounts
from tests.builders.http_catalog import (
    error_of,
    http_catalog,
    make_namespace,
    make_table,
    make_view,
    set_properties,
)


def path_of(loaded: dict[str, Any]) -> Path:
    return Path(urlsplit(loaded["metadata-location"]).path)


def packed_answers() -> tuple[float, float]:
    """Return how many answers in gzip had to be made, and how many were there."""
    name = "icetower_answer_reads_total"
    missed, hit = (REGISTRY.get_sample_value(name, {"cache": found}) or 0 for found in ("miss", "hit"))
    return missed, hit


def add_snapshots(api: httpx.Client, url: str, *ids: int) -> None:
    """Add snapshots; the last one becomes the head of main."""
    metadata = api.get(url).json()["metadata"]
    for number, snapshot_id in enumerate(ids, start=1):
        snapshot = {
            "snapshot-id": snapshot_id,
            "sequence-number": metadata["last-sequence-number"] + number,
            "timestamp-ms": metadata["last-updated-ms"] + number,
            "manifest-list": f"{metadata['location']}/metadata/snap-{snapshot_id}.avro",
            "summary": {"operation": "append"},
        }
        updates = [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id},
        ]
        response = api.post(url, json={"requirements": [], "updates": updates})
        assert response.status_code == 200, response.text


def test_loaded_table_is_what_create_answered(api: httpx.Client, ns: str) -> None:
    created = make_table(api, ns, "t")

    assert api.get(f"/v1/namespaces/{ns}/tables/t").json() == created
    assert api.get(f"/v1/default/namespaces/{ns}/tables/t").json() == created


def test_etag_header_is_spelled_as_java_looks_it_up(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"
    loaded = api.get(url)
    unchanged = api.get(url, headers={"if-none-match": loaded.headers["etag"]})
    committed = api.post(url, json=set_properties(a="b"))

    for response in (loaded, unchanged, committed):
        assert b"ETag" in [name for name, _ in response.headers.raw]


def test_unchanged_table_is_not_sent_again(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"
    tag = api.get(url).headers["etag"]

    unchanged = api.get(url, headers={"if-none-match": tag})
    api.post(url, json=set_properties(a="b"))
    changed = api.get(url, headers={"if-none-match": tag})

    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged.headers["etag"] == tag
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


def test_commit_answers_with_the_tag_that_a_load_then_has(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"

    committed = api.post(url, json=set_properties(a="b"))

    assert api.get(url).headers["etag"] == committed.headers["etag"]


def test_refs_mode_holds_referenced_snapshots_under_a_tag_of_its_own(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"
    add_snapshots(api, url, 11, 12, 13)

    everything, referenced = api.get(url), api.get(url, params={"snapshots": "refs"})

    assert [item["snapshot-id"] for item in everything.json()["metadata"]["snapshots"]] == [11, 12, 13]
    assert [item["snapshot-id"] for item in referenced.json()["metadata"]["snapshots"]] == [13]
    assert len(referenced.json()["metadata"]["snapshot-log"]) == 3
    assert everything.headers["etag"] != referenced.headers["etag"]
    again = api.get(url, params={"snapshots": "refs"}, headers={"if-none-match": everything.headers["etag"]})
    assert again.status_code == 200


@pytest.mark.parametrize("mode", ["none", "ALL", "refs,all"])
def test_unknown_mode_is_refused(api: httpx.Client, ns: str, mode: str) -> None:
    make_table(api, ns, "t")

    assert error_of(api.get(f"/v1/namespaces/{ns}/tables/t", params={"snapshots": mode}))[0] == 400


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("size", [MIN_GZIP_BYTES, SLOW_GZIP_BYTES])
def test_large_answer_is_compressed_when_asked_for(api: httpx.Client, ns: str, times: int, size: int) -> None:
    make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"
    api.post(url, json=set_properties(large="x" * size, **{"scan-planning-mode": "server"}))
    plain = api.get(url)

    for _ in range(times - 1):
        api.get(url, headers={"accept-encoding": "gzip"})
    with api.stream("GET", url, headers={"accept-encoding": "gzip"}) as packed:
        raw = b"".join(packed.iter_raw())

    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw) == plain.content
    assert int(plain.headers["content-length"]) == len(plain.content)
    assert plain.json()["config"] == {"scan-planning-mode": "server"}
    assert packed.headers["etag"] == plain.headers["etag"]
    assert plain.headers["vary"] == packed.headers["vary"] == "accept-encoding"


@pytest.mark.parametrize("config", [{}, {"scan-planning-mode": "server"}])
def test_commit_is_answered_in_gzip_without_the_settings_of_a_load(
    api: httpx.Client, ns: str, config: dict[str, str]
) -> None:
    make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"
    change = set_properties(large="x" * MIN_GZIP_BYTES, **config)

    with api.stream("POST", url, json=change, headers={"accept-encoding": "gzip"}) as packed:
        raw = b"".join(packed.iter_raw())
    loaded = api.get(url, headers={"accept-encoding": "gzip"})

    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == len(raw)
    assert packed.headers["vary"] == "accept-encoding"
    committed = orjson.loads(gzip.decompress(raw))
    assert committed.keys() == {"metadata-location", "metadata"}
    assert loaded.json() == committed | ({"config": config} if config else {})


def test_version_is_packed_once_for_those_who_commit_it_and_those_who_load_it(
    api: httpx.Client, ns: str
) -> None:
    make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"
    change = set_properties(large="x" * MIN_GZIP_BYTES)
    before = packed_answers()

    api.post(url, json=change, headers={"accept-encoding": "gzip"}).raise_for_status()
    api.get(url, headers={"accept-encoding": "gzip"}).raise_for_status()

    assert packed_answers() == (before[0] + 1, before[1] + 1)


@pytest.mark.parametrize("url", ["/v1/namespaces/{ns}/tables/nope", "/v1/namespaces/{ns}%1Fnope/tables/t"])
def test_missing_table_is_not_found_whether_or_not_its_namespace_is(
    api: httpx.Client, ns: str, url: str
) -> None:
    url = url.format(ns=ns)

    status, kind, message = error_of(api.get(url))

    assert (status, kind) == (404, "NoSuchTableException")
    assert message.startswith("Table does not exist: ")
    assert api.head(url).status_code == 404


def test_view_is_no_table(api: httpx.Client, ns: str) -> None:
    make_view(api, ns, "v")

    assert error_of(api.get(f"/v1/namespaces/{ns}/tables/v"))[:2] == (404, "NoSuchTableException")
    assert api.head(f"/v1/namespaces/{ns}/tables/v").status_code == 404


def test_probe_answers_without_a_body(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")

    probed = api.head(f"/v1/namespaces/{ns}/tables/t")

    assert (probed.status_code, probed.content) == (204, b"")


def test_vanished_metadata_file_is_noticed_although_it_was_read_before(api: httpx.Client, ns: str) -> None:
    created = make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"
    assert api.get(url).status_code == 200
    path_of(created).unlink()

    status, kind, message = error_of(api.get(url))

    assert (status, kind) == (404, "NotFoundException")
    assert message == f"Failed to open input stream for file: {created['metadata-location']}"


def test_broken_metadata_file_is_a_server_error(tmp_path: Path) -> None:
    with http_catalog(tmp_path, metadata_cache_bytes=0) as api:
        make_namespace(api, "a")
        path_of(make_table(api, "a", "t")).write_bytes(b"{}")

        assert error_of(api.get("/v1/namespaces/a/tables/t"))[:2] == (500, "InternalServerError")


def test_table_whose_metadata_file_is_gone_does_not_exist_for_head_either(api: httpx.Client, ns: str) -> None:
    created = make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"
    assert api.head(url).status_code == 204

    path_of(created).unlink()

    gone = api.head(url)
    assert (gone.status_code, gone.content) == (404, b"")
    assert api.get(url).status_code == 404


def test_copy_of_a_client_is_not_current_once_the_file_is_gone(api: httpx.Client, ns: str) -> None:
    loaded = make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"
    tag = api.get(url).headers["etag"]
    path_of(loaded).unlink()

    answer = api.get(url, headers={"if-none-match": tag})

    assert error_of(answer)[:2] == (404, "NotFoundException")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_mount_that_does_not_answer_stops_only_who_asks_for_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    look, asked, may_answer = os.stat, threading.Event(), threading.Event()
    device, listing = tmp_path.stat().st_dev, tmp_path / "mountinfo"
    listing.write_text(f"1 1 {os.major(device)}:{os.minor(device)} / / rw - nfs4 host:/ rw\n")
    monkeypatch.setattr(local, "MOUNTS", Mounts(str(listing)))

    def hang(path: Any, *rest: Any, **more: Any) -> os.stat_result:
        if str(path).endswith(".metadata.json"):
            asked.set()
            may_answer.wait()
        return look(path, *rest, **more)

    with http_catalog(tmp_path) as api, ThreadPoolExecutor(1) as beside:
        make_namespace(api, "a")
        make_table(api, "a", "t")
        assert api.get("/v1/namespaces/a/tables/t").status_code == 200
        monkeypatch.setattr(os, "stat", hang)
        try:
            answer = beside.submit(api.request, method, "/v1/namespaces/a/tables/t")
            assert asked.wait(60)
            healthy = api.get("/health", timeout=10)
        finally:
            may_answer.set()

    assert healthy.status_code == 200
    assert answer.result().is_success
