"""A server killed while it appends by reference: the whole snapshot or none, and asked again, once."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.builders.parquet_files import parquet_rows
from tests.crash.crashes import Client, CrashingServer, check_table

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("step", "lands"),
    [
        ("in_line", False),
        ("before_write", False),
        ("after_write", False),
        ("before_put", False),
        ("after_put", True),
    ],
)
def test_append_cut_off_by_a_kill_has_one_effect_when_it_is_sent_again(
    server: CrashingServer, step: str, lands: bool
) -> None:
    client = Client(server.url)
    location = client.make_table("t")["metadata"]["location"]
    folder = Path(location.removeprefix("file://"), "data")
    folder.mkdir()
    for name in ("1", "2"):
        (folder / f"{name}.parquet").write_bytes(parquet_rows(id=[1, 2]))
    path = "/v1/namespaces/ns/tables/t/append"
    first, second = ({"files": [{"file-path": f"{location}/data/{name}.parquet"}]} for name in ("1", "2"))
    headers = {"Idempotency-Key": "0193-only-once"}
    assert client.http.post(path, json=first).status_code == 200
    server.arm(step)

    with pytest.raises(httpx.TransportError):
        client.http.post(path, json=second, headers=headers)
    assert server.wait_until_dead() != 0
    server.start()

    found = client.load("t")
    check_table(found, set(), set())
    assert len(found["metadata"]["snapshots"]) == (2 if lands else 1)
    again = client.http.post(path, json=second, headers=headers)
    assert again.status_code == 200
    assert again.json()["added-records"] == 2
    snapshots = client.load("t")["metadata"]["snapshots"]
    assert [snapshot["summary"]["total-records"] for snapshot in snapshots] == ["2", "4"]
    assert again.json()["snapshot-id"] == snapshots[-1]["snapshot-id"]
    # Without the key, it is refused, and nothing is appended twice.
    refused = client.http.post(path, json=second)
    assert (refused.status_code, refused.json()["error"]["type"]) == (409, "AlreadyExistsException")
