"""Writers that append to one table as Iceberg's Java client does, in a process of their own.

Reads its orders as JSON from standard input, and writes what happened as JSON to standard output.
"""

from __future__ import annotations

import http.client
import json
import random
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.formats.manifests.lists import read_manifest_list, write_manifest_list
from app.formats.manifests.writer import write_manifest

RETRIES = 4
MIN_WAIT_S = 0.1
HEADERS = {"Content-Type": "application/json"}


@dataclass
class Orders:
    """What to do."""

    urls: list[str]
    path: str
    writers: int
    seconds: float
    latency_s: float
    rounds: int | None = None
    """How many commits each writer makes; None for as many as it can in the time."""


@dataclass
class Found:
    """What happened."""

    landed: int = 0
    gave_up: int = 0
    attempts: int = 0
    seconds: float = 0.0
    """From the start to the last commit that landed."""
    waits: list[float] = field(default_factory=list)
    """For each commit that landed, how long it took from its first load on."""
    errors: list[str] = field(default_factory=list)


class Writer:
    """One writer: one connection, one snapshot after the other."""

    def __init__(self, orders: Orders, number: int, found: Found, lock: threading.Lock) -> None:
        self._orders, self._number, self._found, self._lock = orders, number, found, lock
        self._chance = random.Random(number)
        self._pause = threading.Event()
        where = urlsplit(orders.urls[number % len(orders.urls)])
        assert where.hostname is not None
        self._http = http.client.HTTPConnection(where.hostname, where.port, timeout=120)

    def run(self, begun_s: float) -> None:
        """Commit until the time is over."""
        done = 0
        while time.monotonic() < begun_s + self._orders.seconds and done != self._orders.rounds:
            first_s = time.monotonic()
            attempts, landed = self._append()
            now_s = time.monotonic()
            done += 1
            with self._lock:
                self._found.attempts += attempts
                if landed:
                    self._found.landed += 1
                    self._found.waits.append(now_s - first_s)
                    self._found.seconds = max(self._found.seconds, now_s - begun_s)
                else:
                    self._found.gave_up += 1

    def _append(self) -> tuple[int, bool]:
        """Append one snapshot; return how many attempts it took, and whether it landed."""
        snapshot_id = SnapshotId(self._chance.getrandbits(62) + 1)
        manifest: ManifestFile | None = None
        for attempt in range(RETRIES + 1):
            if attempt:
                wait_s = MIN_WAIT_S * 2 ** (attempt - 1)
                self._pause.wait(wait_s + self._chance.uniform(0, 0.1 * wait_s))
            metadata = self._call("GET", None)[1]["metadata"]
            head = _head(metadata)
            if manifest is None:
                manifest = self._write_manifest(metadata, snapshot_id)
            kept: list[ManifestFile] = []
            if head is not None:
                self._storage()
                listed = Location(head["manifest-list"])
                kept = list(read_manifest_list(_path(listed).read_bytes(), listed))
            body = self._commit(metadata, head, snapshot_id, [manifest, *kept], attempt)
            status, answer = self._call("POST", body)
            if status == 200:
                return attempt + 1, True
            if status != 409:
                with self._lock:
                    self._found.errors.append(f"{status} {str(answer)[:300]}")
                return attempt + 1, False
        return RETRIES + 1, False

    def _write_manifest(self, metadata: dict[str, Any], snapshot_id: SnapshotId) -> ManifestFile:
        data = f"{metadata['location']}/data/{snapshot_id}.parquet"
        file = DataFile(
            content=FileContent.DATA,
            file_path=Location(data),
            file_format="PARQUET",
            spec_id=SpecId(0),
            partition=(),
            record_count=1000,
            file_size_in_bytes=100_000,
        )
        written = write_manifest(
            [ManifestEntry(EntryStatus.ADDED, None, None, None, file)],
            schema=Schema.model_validate(metadata["schemas"][-1]),
            spec=PartitionSpec(spec_id=SpecId(0), fields=()),
            format_version=metadata["format-version"],
            snapshot_id=snapshot_id,
        )
        location = Location(f"{metadata['location']}/metadata/{uuid.uuid4()}-m0.avro")
        self._store(location, written.content)
        return written.at(location)

    def _commit(
        self,
        metadata: dict[str, Any],
        head: dict[str, Any] | None,
        snapshot_id: SnapshotId,
        manifests: list[ManifestFile],
        attempt: int,
    ) -> dict[str, Any]:
        number = metadata["last-sequence-number"] + 1
        parent_id = head["snapshot-id"] if head else None
        location = Location(
            f"{metadata['location']}/metadata/snap-{snapshot_id}-{attempt + 1}-{uuid.uuid4()}.avro"
        )
        content = write_manifest_list(
            manifests,
            format_version=metadata["format-version"],
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=number,
        )
        self._store(location, content)
        totals = head["summary"] if head else {}
        snapshot: dict[str, Any] = {
            "snapshot-id": snapshot_id,
            "sequence-number": number,
            "timestamp-ms": max(int(time.time() * 1000), metadata["last-updated-ms"]),
            "manifest-list": location,
            "schema-id": 0,
            "summary": {
                "operation": "append",
                "added-data-files": "1",
                "added-records": "1000",
                "added-files-size": "100000",
                "total-data-files": str(int(totals.get("total-data-files", "0")) + 1),
                "total-records": str(int(totals.get("total-records", "0")) + 1000),
                "total-files-size": str(int(totals.get("total-files-size", "0")) + 100_000),
                "total-delete-files": "0",
                "total-position-deletes": "0",
                "total-equality-deletes": "0",
            },
        }
        if parent_id is not None:
            snapshot["parent-snapshot-id"] = parent_id
        return {
            "requirements": [
                {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
                {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent_id},
            ],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot},
                {
                    "action": "set-snapshot-ref",
                    "ref-name": "main",
                    "snapshot-id": snapshot_id,
                    "type": "branch",
                },
            ],
        }

    def _store(self, location: Location, content: bytes) -> None:
        self._storage()
        _path(location).write_bytes(content)

    def _storage(self) -> None:
        """Wait as long as an object store would take."""
        if self._orders.latency_s:
            self._pause.wait(self._orders.latency_s)

    def _call(self, method: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        self._http.request(method, self._orders.path, None if body is None else orjson.dumps(body), HEADERS)
        answer = self._http.getresponse()
        return answer.status, orjson.loads(answer.read())


def _path(location: Location) -> Path:
    return Path(location.removeprefix("file://"))


def _head(metadata: dict[str, Any]) -> dict[str, Any] | None:
    head_id = metadata.get("refs", {}).get("main", {}).get("snapshot-id")
    found = [snapshot for snapshot in metadata.get("snapshots", ()) if snapshot["snapshot-id"] == head_id]
    return found[0] if found else None


def run_writers(orders: Orders) -> Found:
    """Run writers in a process of their own, and return what happened.

    Raises:
        RuntimeError: a writer failed otherwise than by a lost race.
    """
    process = subprocess.run(
        [sys.executable, "-m", "tests.builders.contending_writers"],
        input=json.dumps(asdict(orders)),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode or "Traceback" in process.stderr:
        raise RuntimeError(process.stderr[-3000:])
    found = Found(**json.loads(process.stdout))
    if found.errors:
        raise RuntimeError("; ".join(found.errors[:5]))
    return found


def main() -> None:
    """Run the writers that standard input orders."""
    orders = Orders(**json.load(sys.stdin))
    found, lock = Found(), threading.Lock()
    writers = [Writer(orders, number, found, lock) for number in range(orders.writers)]
    begun_s = time.monotonic()
    threads = [threading.Thread(target=writer.run, args=(begun_s,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    json.dump(vars(found), sys.stdout)


if __name__ == "__main__":
    main()
