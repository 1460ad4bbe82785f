"""Writers that append to one table as Iceberg's Java client does, in a process of their own.

Reads its orders as JSON from standard input, and writes what happened as JSON to standard output. Manifests are never
merged, as with Java's `newFastAppend`. What one of the writers has parsed or packed, no other parses or packs again:
the processor time of the writers should not decide how fast a server seems to be.
"""

from __future__ import annotations

import itertools
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

import orjson
from isal import isal_zlib

from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.formats.manifests.writer import write_manifest
from tests.builders.packed_lists import EMPTY_LIST, PackedList, PackedLists
from tests.builders.plain_http import PlainConnection

_GZIP = b"\x1f\x8b"
_GZIP_CONTAINER = 31
RETRIES = 4
MIN_WAIT_S = 0.1
SWITCH_S = 0.0005
"""How long one thread may keep the others waiting: with the default of 5 ms, each writer is as slow as all of them."""


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
    store: tuple[str, str] | None = None
    """The root of an object store, and the folder in which its files are."""
    shares_connections: bool = False
    """Whether each request takes the connection that was free last, as the threads of one client do."""


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
    landed_at: list[float] = field(default_factory=list)
    """For each of them, when it landed, in seconds from the start."""
    lasted_s: float = 0.0
    """From the start until the last writer ended."""
    processor_s: float = 0.0
    """Processor time of the writers, all together."""
    errors: list[str] = field(default_factory=list)


class Known:
    """What one of the writers has seen, and the others need not parse again."""

    def __init__(self) -> None:
        self.lists = PackedLists()
        self._last: tuple[bytes, dict[str, Any]] = (b"", {})

    def metadata(self, answer: bytes) -> dict[str, Any]:
        """Return the metadata in the answer to a load."""
        content, found = self._last
        if content != answer:
            is_packed = answer.startswith(_GZIP)
            found = orjson.loads(isal_zlib.decompress(answer, _GZIP_CONTAINER) if is_packed else answer)[
                "metadata"
            ]
            self._last = (answer, found)
        return found


class Connections:
    """Connections of one client, to one server after the other."""

    def __init__(self, urls: list[str]) -> None:
        self._urls = itertools.cycle(urls)
        self._free: list[PlainConnection] = []
        """The one that was used last comes last."""
        self._lock = threading.Lock()

    def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request on a connection that is free; return the status and the body of its answer."""
        with self._lock:
            # Java's and Python's clients ask for gzip.
            taken = self._free.pop() if self._free else PlainConnection(next(self._urls), accepts_gzip=True)
        answer = taken.request(method, path, body)
        with self._lock:
            self._free.append(taken)
        return answer


class Writer:
    """One writer: one snapshot after the other."""

    def __init__(
        self,
        orders: Orders,
        number: int,
        found: Found,
        known: Known,
        lock: threading.Lock,
        connections: Connections,
    ) -> None:
        self._orders, self._found, self._known, self._lock = orders, found, known, lock
        self._chance = random.Random(number)
        self._pause = threading.Event()
        self._http = connections

    def run(self, begun_s: float) -> None:
        """Commit until the time is over."""
        done = 0
        orders = self._orders
        while time.monotonic() < begun_s + orders.seconds and done != orders.rounds:
            first_s = time.monotonic()
            attempts, landed = self._append()
            now_s = time.monotonic()
            done += 1
            with self._lock:
                self._found.attempts += attempts
                if landed:
                    self._found.landed += 1
                    self._found.waits.append(now_s - first_s)
                    self._found.landed_at.append(now_s - begun_s)
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
            status, answer = self._http.request("GET", self._orders.path)
            if status != 200:
                return attempt + 1, self._failed(status, answer)
            metadata = self._known.metadata(answer)
            head = _head(metadata)
            if manifest is None:
                manifest = self._write_manifest(metadata, snapshot_id)
            kept = EMPTY_LIST if head is None else self._read_list(head["manifest-list"])
            body = self._commit(metadata, head, snapshot_id, manifest, kept, attempt)
            status, answer = self._http.request("POST", self._orders.path, orjson.dumps(body))
            if status == 200:
                return attempt + 1, True
            if status != 409:
                return attempt + 1, self._failed(status, answer)
        return RETRIES + 1, False

    def _failed(self, status: int, answer: bytes) -> bool:
        with self._lock:
            self._found.errors.append(f"{status} {answer[:300].decode(errors='replace')}")
        return False

    def _read_list(self, location: str) -> PackedList:
        self._storage()
        found = self._known.lists.find(location)
        if found is None:
            found = PackedList.of(self._path(location).read_bytes())
            self._known.lists.keep(location, found)
        return found

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
        manifest: ManifestFile,
        kept: PackedList,
        attempt: int,
    ) -> dict[str, Any]:
        number = metadata["last-sequence-number"] + 1
        parent_id = head["snapshot-id"] if head else None
        location = Location(
            f"{metadata['location']}/metadata/snap-{snapshot_id}-{attempt + 1}-{uuid.uuid4()}.avro"
        )
        grown, content = kept.with_first(
            manifest,
            format_version=metadata["format-version"],
            snapshot_id=snapshot_id,
            parent_id=parent_id,
            sequence_number=number,
        )
        self._store(location, content)
        self._known.lists.keep(location, grown)
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
        self._path(location).write_bytes(content)

    def _storage(self) -> None:
        """Wait as long as an object store would take."""
        if self._orders.latency_s:
            self._pause.wait(self._orders.latency_s)

    def _path(self, location: str) -> Path:
        if self._orders.store is not None:
            root, folder = self._orders.store
            return Path(folder + location.removeprefix(root))
        return Path(location.removeprefix("file://"))


def _head(metadata: dict[str, Any]) -> dict[str, Any] | None:
    head_id = metadata.get("refs", {}).get("main", {}).get("snapshot-id")
    snapshots = reversed(metadata.get("snapshots", ()))
    return next((snapshot for snapshot in snapshots if snapshot["snapshot-id"] == head_id), None)


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
    sys.setswitchinterval(SWITCH_S)
    found, known, lock = Found(), Known(), threading.Lock()
    together = Connections(orders.urls)
    writers = [
        Writer(
            orders,
            number,
            found,
            known,
            lock,
            # One writer alone needs one connection.
            together if orders.shares_connections else Connections([orders.urls[number % len(orders.urls)]]),
        )
        for number in range(orders.writers)
    ]
    begun_s, used_s = time.monotonic(), time.process_time()
    threads = [threading.Thread(target=writer.run, args=(begun_s,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.lasted_s = time.monotonic() - begun_s
    found.processor_s = time.process_time() - used_s
    json.dump(vars(found), sys.stdout)


if __name__ == "__main__":
    main()
