"""A server killed while orphans are marked or deleted: the next one goes on, and what is reached stays."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.fileio.local import LocalFiles
from tests.builders.table_files import TableFiles
from tests.crash.crashes import Client, CrashingServer
from tests.crash.test_kill_while_expiring import (
    LATER,
    TABLE,
    load,
    reached,
    there,
    wait_until_only,
    write_history,
)

pytestmark = pytest.mark.slow

ORPHANS = 600
"""More than two batches."""
DAY_S = 24 * 3600.0
MARK = {"dry-run": False, "grace-period-ms": 0}


def write_orphans(location: str) -> set[str]:
    """Write old files that nothing reaches into a table's folder, and return where they are."""
    folder = Path(location.removeprefix("file://")) / "data"
    made = set()
    for number in range(ORPHANS):
        path = folder / f"left-{number}.parquet"
        path.write_bytes(b"left")
        then = path.stat().st_mtime - 10 * DAY_S
        os.utime(path, (then, then))
        made.add(f"{location}/data/{path.name}")
    return made


def runs(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.http.get(f"{TABLE}/orphans").json()["runs"]
    return found


@pytest.mark.parametrize("step", ["orphans_found", "orphans_marked"])
def test_marking_happens_or_not(server: CrashingServer, step: str) -> None:
    client, files = Client(server.url), TableFiles(LocalFiles())
    write_history(client, files)
    location = load(client).location
    orphans = write_orphans(location)
    server.arm(step)
    with pytest.raises(httpx.TransportError):
        client.http.post(f"{TABLE}/orphans", json=MARK | LATER)
    server.wait_until_dead()

    server.start()

    marked = [(run["state"], run["marked-files"]) for run in runs(client)]
    assert marked == ([("queued", ORPHANS)] if step == "orphans_marked" else [])
    assert orphans <= there(location)


def test_marking_cut_off_by_a_kill_is_done_once(server: CrashingServer) -> None:
    client, files = Client(server.url), TableFiles(LocalFiles())
    write_history(client, files)
    location = load(client).location
    write_orphans(location)
    headers = {"Idempotency-Key": "mark-once"}
    server.arm("orphans_marked")
    with pytest.raises(httpx.TransportError):
        client.http.post(f"{TABLE}/orphans", json=MARK, headers=headers)
    server.wait_until_dead()

    server.start()

    again = client.http.post(f"{TABLE}/orphans", json=MARK, headers=headers)
    assert (again.status_code, again.json()["orphan-files"]) == (200, ORPHANS)
    # The dead server may have leased the entry at its last moment.
    server.forget_leases()
    wait_until_only(location, reached(client, files))
    assert len(runs(client)) == 1


@pytest.mark.parametrize(
    "step", ["orphans_checked", "orphans_batch_checked", "orphans_batch_deleted", "orphans_batch_done"]
)
def test_deletion_of_orphans_goes_on_after_a_kill(server: CrashingServer, step: str) -> None:
    client, files = Client(server.url), TableFiles(LocalFiles())
    write_history(client, files)
    location = load(client).location
    orphans = write_orphans(location)
    marked = client.http.post(f"{TABLE}/orphans", json=MARK | LATER)
    assert (marked.status_code, marked.json()["orphan-files"]) == (200, ORPHANS)
    server.arm(step)
    server.let_deletions_begin()
    server.wait_until_dead()

    server.start()

    expected = reached(client, files)
    assert expected <= there(location)
    assert bool(orphans - there(location)) == (step in {"orphans_batch_deleted", "orphans_batch_done"})
    # The dead worker's lease has to run out first: that takes minutes, which the database is told have passed.
    server.forget_leases()
    wait_until_only(location, expected)
    deadline = time.monotonic() + 60
    while runs(client)[0]["state"] == "queued" and time.monotonic() < deadline:
        time.sleep(0.05)
    (run,) = runs(client)
    assert run["state"] == "done"
    assert run["deleted-files"] + run["kept-files"] == ORPHANS
