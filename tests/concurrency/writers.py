"""Writers that commit as clients do: load, build on what was seen, commit, and on a conflict begin again."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

Result = TypeVar("Result")
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
}
UNEXPECTED = "a commit must end in 200 or 409"


def at_once(count: int, work: Callable[[int], Result]) -> list[Result]:
    """Run `work` in so many threads, all let go at one moment; raise what any of them raised."""
    gate = threading.Barrier(count)

    def wait_and_work(number: int) -> Result:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(wait_and_work, range(count)))


@dataclass
class Writer:
    """One client of one server, and what it was told."""

    url: str
    number: int
    acknowledged: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.http = httpx.Client(base_url=self.url, timeout=60)
        self.chance = random.Random(self.number)
        self.pause = threading.Event()
        self.snapshot_ids = itertools.count(self.number * 1_000_000 + 1)

    def append(self, table: str, branch: str = "main") -> None:
        """Append one snapshot to a branch, however often others come first."""
        for attempt in range(200):
            metadata = self.http.get(f"/v1/namespaces/ns/tables/{table}").json()["metadata"]
            answer = self.http.post(f"/v1/namespaces/ns/tables/{table}", json=self._append(metadata, branch))
            snapshot_id = self._last_id
            if answer.status_code == 200:
                self.acknowledged.append(snapshot_id)
                return
            assert answer.status_code == 409, f"{UNEXPECTED}: {answer.status_code} {answer.text}"
            self.refused.append(snapshot_id)
            self.pause.wait(self.chance.uniform(0, min(0.2, 0.005 * 2**attempt)))
        raise AssertionError(f"writer {self.number} starved on {table}")

    def _append(self, metadata: dict[str, Any], branch: str) -> dict[str, Any]:
        self._last_id = next(self.snapshot_ids)
        head = metadata["refs"].get(branch, {}).get("snapshot-id")
        snapshot = {
            "snapshot-id": self._last_id,
            "sequence-number": metadata["last-sequence-number"] + 1,
            "timestamp-ms": metadata["last-updated-ms"] + 1,
            "manifest-list": f"{metadata['location']}/metadata/snap-{self._last_id}.avro",
            "summary": {"operation": "append"},
        }
        if head is not None:
            snapshot["parent-snapshot-id"] = head
        return {
            "requirements": [
                {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
                {"type": "assert-ref-snapshot-id", "ref": branch, "snapshot-id": head},
            ],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot},
                {
                    "action": "set-snapshot-ref",
                    "ref-name": branch,
                    "snapshot-id": self._last_id,
                    "type": "branch",
                },
            ],
        }


def make_tables(url: str, *names: str) -> None:
    """Create tables in the namespace `ns`."""
    with httpx.Client(base_url=url, timeout=60) as http:
        http.post("/v1/namespaces", json={"namespace": ["ns"]})
        for name in names:
            http.post("/v1/namespaces/ns/tables", json={"name": name, "schema": SCHEMA}).raise_for_status()


def load(url: str, name: str) -> dict[str, Any]:
    """Return a table's metadata."""
    answer = httpx.get(f"{url}/v1/namespaces/ns/tables/{name}", timeout=60)
    answer.raise_for_status()
    metadata: dict[str, Any] = answer.json()["metadata"]
    return metadata


def check_history(metadata: dict[str, Any], writers: list[Writer]) -> None:
    """Check that the table's history is one line that has every acknowledged commit once, and no refused one."""
    found = [snapshot["snapshot-id"] for snapshot in metadata["snapshots"]]
    acknowledged = [snapshot_id for writer in writers for snapshot_id in writer.acknowledged]
    assert sorted(found) == sorted(acknowledged)
    parents = {
        snapshot["snapshot-id"]: snapshot.get("parent-snapshot-id") for snapshot in metadata["snapshots"]
    }
    line = []
    head = metadata["current-snapshot-id"]
    while head is not None:
        line.append(head)
        head = parents[head]
    assert sorted(line) == sorted(found), "the history forks"
    numbers = [snapshot["sequence-number"] for snapshot in metadata["snapshots"]]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    # A writer sees its own commits in the order in which it made them.
    position = {snapshot_id: place for place, snapshot_id in enumerate(reversed(line))}
    for writer in writers:
        mine = [position[snapshot_id] for snapshot_id in writer.acknowledged if snapshot_id in position]
        assert mine == sorted(mine)
