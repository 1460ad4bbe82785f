"""A server killed at each step of upkeep: the table is whole, and asked again, the work is done once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from pyiceberg.catalog import load_catalog

from tests.builders.parquet_files import parquet_rows
from tests.crash.crashes import Client, CrashingServer, check_table

pytestmark = pytest.mark.slow

FILES = 3
PATH = "/v1/namespaces/ns/tables/t"


def make_table(client: Client) -> None:
    """A table of three files, each in a manifest of its own."""
    location = client.make_table("t")["metadata"]["location"]
    folder = Path(location.removeprefix("file://"), "data")
    folder.mkdir()
    for name in range(FILES):
        (folder / f"{name}.parquet").write_bytes(parquet_rows(id=[name]))
        files = [{"file-path": f"{location}/data/{name}.parquet"}]
        assert client.http.post(f"{PATH}/append", json={"files": files}).status_code == 200


def rows_of(url: str) -> list[Any]:
    table = load_catalog("t", type="rest", uri=url).load_table("ns.t")
    found: list[Any] = sorted(table.scan().to_arrow()["id"].to_pylist())
    return found


@pytest.mark.parametrize(
    ("step", "lands"),
    [
        ("manifests_stored", False),
        ("in_line", False),
        ("before_write", False),
        ("after_write", False),
        ("before_put", False),
        ("after_put", True),
    ],
)
def test_rewrite_cut_off_by_a_kill_leaves_every_row_and_is_done_once(
    server: CrashingServer, step: str, lands: bool
) -> None:
    client = Client(server.url)
    make_table(client)
    headers = {"Idempotency-Key": "0193-rewrite-once"}
    server.arm(step)

    with pytest.raises(httpx.TransportError):
        client.http.post(f"{PATH}/rewrite-manifests", json={}, headers=headers)
    assert server.wait_until_dead() != 0
    server.start()

    found = client.load("t")
    check_table(found, set(), set())
    assert len(found["metadata"]["snapshots"]) == FILES + lands
    assert rows_of(server.url) == [0, 1, 2]
    again = client.http.post(f"{PATH}/rewrite-manifests", json={}, headers=headers)
    assert again.status_code == 200
    assert (again.json()["manifests-created"], again.json()["manifests-replaced"]) == (1, FILES)
    snapshots = client.load("t")["metadata"]["snapshots"]
    assert [snapshot["summary"]["operation"] for snapshot in snapshots] == ["append"] * FILES + ["replace"]
    assert again.json()["snapshot-id"] == snapshots[-1]["snapshot-id"]
    assert rows_of(server.url) == [0, 1, 2]
