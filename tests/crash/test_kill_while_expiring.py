"""A server killed while it deletes expired files: the next one goes on, and what is reached stays."""

from __future__ import annotations

import json
import time

import httpx
import pytest

from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.fileio.local import LocalFiles
from tests.builders.table_files import TableFiles
from tests.crash.crashes import Client, CrashingServer

pytestmark = pytest.mark.slow
TABLE = "/v1/namespaces/ns/tables/t"
EVERYTHING = {"older-than-ms": 4_000_000_000_000, "retain-last": 1, "grace-period-ms": 0}
LATER = {"grace-period-ms": 3_600_000}
"""Files go once the answer has come."""


def load(client: Client) -> TableMetadata:
    return read_table_metadata(json.dumps(client.load("t")["metadata"]).encode())


def write_history(client: Client, files: TableFiles) -> None:
    client.make_table("t")
    for number in range(6):
        removed = [f"f{number - 2}"] if number >= 2 else []
        snapshot = files.snapshot(load(client), [f"f{number}"], removed)
        updates = [
            {"action": "add-snapshot", "snapshot": snapshot.to_object()},
            {
                "action": "set-snapshot-ref",
                "ref-name": "main",
                "type": "branch",
                "snapshot-id": snapshot.snapshot_id,
            },
        ]
        client.http.post(TABLE, json={"requirements": [], "updates": updates}).raise_for_status()


def reached(client: Client, files: TableFiles) -> set[str]:
    found: set[str] = set()
    for snapshot in load(client).snapshots:
        found.add(str(snapshot.manifest_list))
        for manifest in files.manifests[snapshot.snapshot_id]:
            found.add(manifest.manifest_path)
            found |= {
                entry.file.file_path for entry in files.entries[manifest.manifest_path] if entry.is_live
            }
    return found


def there(location: str) -> set[str]:
    return {
        item.location
        for item in LocalFiles().list_files(Location(location))
        if not item.location.endswith(".metadata.json")
    }


def wait_until_only(location: str, expected: set[str]) -> None:
    deadline = time.monotonic() + 60
    while there(location) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    assert there(location) == expected


@pytest.mark.parametrize(
    "step", ["expired_content_deleted", "expired_manifests_deleted", "expired_lists_deleted"]
)
def test_deletion_goes_on_after_a_kill(server: CrashingServer, step: str) -> None:
    client, files = Client(server.url), TableFiles(LocalFiles())
    write_history(client, files)
    location = load(client).location
    done = client.http.post(f"{TABLE}/expire", json=EVERYTHING | LATER)
    assert done.status_code == 200, done.text
    assert len(done.json()["snapshots"]) == 5
    server.arm(step)
    server.let_deletions_begin()
    server.wait_until_dead()

    server.start()

    expected = reached(client, files)
    assert expected <= there(location)
    # The dead worker's lease has to run out first: that takes minutes, which the database is told have passed.
    server.forget_leases()
    wait_until_only(location, expected)


def test_expiry_cut_off_by_a_kill_is_done_once_with_its_files(server: CrashingServer) -> None:
    client, files = Client(server.url), TableFiles(LocalFiles())
    write_history(client, files)
    location = load(client).location
    headers = {"Idempotency-Key": "expire-once"}
    server.arm("after_put")
    with pytest.raises(httpx.TransportError):
        client.http.post(f"{TABLE}/expire", json=EVERYTHING, headers=headers)
    server.wait_until_dead()

    server.start()

    again = client.http.post(f"{TABLE}/expire", json=EVERYTHING, headers=headers)
    assert again.status_code == 200, again.text
    assert len(again.json()["snapshots"]) == 5
    assert len(load(client).snapshots) == 1
    # The dead server may have leased the entry at its last moment.
    server.forget_leases()
    wait_until_only(location, reached(client, files))
