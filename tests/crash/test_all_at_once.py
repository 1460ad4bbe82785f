"""Everything that may happen to tables at once, while servers are killed: each acknowledged file is there, once."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.errors import FileMissing
from app.fileio.local import LocalFiles
from app.formats.manifests.source import FileManifestSource, ManifestCache
from tests.builders.databases import migrated, migrated_database_of
from tests.builders.http_appends import SCHEMA, Appender
from tests.builders.parquet_files import parquet_rows
from tests.crash.crashes import CrashingServer

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

SECONDS = 20
CERTAIN_S = 60
"""In which every client finds out what became of its request: one whose server died is given up after 30 s."""
ON_ITS_WAY_S = 3
"""How long after it was sent a request may still reach a server."""
PROPERTIES = {
    "rebased": {"icetower.rebase": "appends"},
    "plain": {},
    "purged": {"icetower.rebase": "appends"},
}
TABLES = "/v1/namespaces/ns/tables"


class Caller:
    """A client of all servers that finds out what became of each of its requests."""

    def __init__(self, servers: list[CrashingServer], number: int) -> None:
        self.number, self.chance = number, random.Random(number)
        self.key = ""
        """Of the last change."""
        self._http = [httpx.Client(base_url=server.url, timeout=30) for server in servers]

    def ask(self, path: str) -> httpx.Response:
        """Return the answer of a server that runs."""
        deadline_s = time.monotonic() + CERTAIN_S
        while time.monotonic() < deadline_s:
            with suppress(httpx.TransportError):
                answer = self.chance.choice(self._http).get(path)
                if answer.status_code != 503:
                    return answer
            time.sleep(0.05)
        raise AssertionError(f"no server answers {path}")

    def find(self, name: str) -> dict[str, Any] | None:
        """Return a table's metadata, if it is there now."""
        answer = self.ask(f"{TABLES}/{name}")
        assert answer.status_code in (200, 404), answer.text
        return answer.json()["metadata"] if answer.status_code == 200 else None

    def lands(self, method: str, path: str, body: object = None) -> bool:
        """Send a change once, and return whether it has landed."""
        self.key = key = f"key-{self.number}-{uuid.uuid4()}"
        client = self.chance.choice(self._http)
        # Now and then a client leaves before the answer.
        timeout_s = 0.02 if self.chance.random() < 0.1 else 30
        with suppress(httpx.TransportError):
            answer = client.request(
                method, path, json=body, headers={"Idempotency-Key": key}, timeout=timeout_s
            )
            if answer.status_code != 500:
                assert answer.is_success or answer.status_code in (404, 409, 503), answer.text
                return answer.is_success
            assert answer.json()["error"]["type"] == "CommitStateUnknownException", answer.text
        return self._has_landed(key)

    def _has_landed(self, key: str) -> bool:
        sent_s = time.monotonic()
        while (asked_s := time.monotonic()) < sent_s + CERTAIN_S:
            answer = self.ask(f"/v1/commits?idempotency-key={key}")
            if answer.status_code == 404 and asked_s > sent_s + ON_ITS_WAY_S:
                return False
            if answer.status_code == 200:
                (outcome,) = [receipt["outcome"] for receipt in answer.json()["commits"]]
                if outcome in ("landed", "unchanged", "failed"):
                    return bool(outcome != "failed")
            time.sleep(0.1)
        raise AssertionError(f"what became of {key} is never known")


class Load:
    """What goes on at the same time, and what is known to have become of each data file."""

    def __init__(self, servers: list[CrashingServer]) -> None:
        self.servers = servers
        self.has_landed: dict[str, dict[str, bool]] = {}
        """By the uuid of a table and the path of the file."""
        self._over = threading.Event()

    def run(self) -> None:
        """Let all go on for some seconds while one server after the other is killed; raise what went wrong."""
        chance = random.Random(9)
        works = [
            *(self._appends(number, name) for number, name in enumerate([*PROPERTIES, "rebased", "plain"])),
            *(self._appends_by_reference(number, name) for number, name in enumerate(PROPERTIES, 10)),
            self._upkeep(20),
            self._comings_and_goings(21),
            self._purges(22),
        ]
        with ThreadPoolExecutor(len(works)) as pool:
            actors = [pool.submit(self._keep_on, work) for work in works]
            end_s = time.monotonic() + SECONDS
            try:
                while time.monotonic() < end_s:
                    threading.Event().wait(chance.uniform(1, 4))
                    victim = chance.choice(self.servers)
                    victim.kill()
                    victim.start()
            finally:
                self._over.set()
            for actor in actors:
                actor.result()

    def _keep_on(self, work: Callable[[], None]) -> None:
        while not self._over.is_set():
            work()

    def _note(self, metadata: dict[str, Any], path: str, *, landed: bool) -> None:
        self.has_landed.setdefault(metadata["table-uuid"], {})[path] = landed

    def _appends(self, number: int, name: str) -> Callable[[], None]:
        """Commit with manifests of one's own; half of the time on top of what is known from before."""
        caller, writer = Caller(self.servers, number), Appender(self.servers[0].url, number + 1)
        known: list[dict[str, Any]] = []

        def work() -> None:
            if not known or caller.chance.random() < 0.5:
                known[:] = [found] if (found := caller.find(name)) else []
            for metadata in known:
                try:
                    sent = writer.prepare(name, TableMetadata.model_validate(metadata))
                except FileMissing:  # expired or purged meanwhile
                    known.clear()
                    return
                landed = caller.lands("POST", f"{TABLES}/{name}", sent.body)
                self._note(metadata, sent.file_path, landed=landed)
                if not landed:
                    known.clear()

        return work

    def _appends_by_reference(self, number: int, name: str) -> Callable[[], None]:
        caller = Caller(self.servers, number)

        def work() -> None:
            metadata = caller.find(name)
            if metadata is not None:
                # A table of the name may be another one by the time that the request comes.
                path = f"{metadata['location']}/data/{uuid.uuid4()}.parquet"
                LocalFiles().write_new(Location(path), parquet_rows(id=[1, 2]))
                same = {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]}
                body = {"files": [{"file-path": path}], "requirements": [same]}
                self._note(metadata, path, landed=caller.lands("POST", f"{TABLES}/{name}/append", body))

        return work

    def _upkeep(self, number: int) -> Callable[[], None]:
        caller = Caller(self.servers, number)

        def work() -> None:
            name = caller.chance.choice(list(PROPERTIES))
            expiry: dict[str, Any] = {
                "retain-last": 2,
                "older-than-ms": int(time.time() * 1000),
                "grace-period-ms": 0,
            }
            if name == "plain":
                # What deletes files of a table and is killed keeps the table from coming back for ten minutes.
                expiry["cleanup"] = "none"
            caller.lands("POST", f"{TABLES}/{name}/expire", expiry)
            caller.lands("POST", f"{TABLES}/{name}/rewrite-manifests", {"all": True})
            self._over.wait(caller.chance.uniform(0.2, 0.8))

        return work

    def _comings_and_goings(self, number: int) -> Callable[[], None]:
        """Drop, rename and unregister tables, and bring each back."""
        caller = Caller(self.servers, number)

        def back(path: str, body: object) -> None:
            deadline_s = time.monotonic() + CERTAIN_S
            while not caller.lands("POST", path, body):
                assert time.monotonic() < deadline_s, f"{body} never comes back"

        def work() -> None:
            self._over.wait(caller.chance.uniform(0.3, 1))
            name = caller.chance.choice(["rebased", "plain"])
            how = caller.chance.choice(["drop", "unregister", "rename"]) if name == "plain" else "rename"
            table, here = f"{TABLES}/{name}", {"namespace": ["ns"], "name": name}
            if how == "drop" and caller.lands("DELETE", table):
                back("/v1/undrop", here)
            if how == "unregister" and caller.lands("POST", f"{table}/unregister"):
                (receipt,) = caller.ask(f"/v1/commits?idempotency-key={caller.key}").json()["commits"]
                location = receipt["changes"][0]["metadata-location-before"]
                back("/v1/namespaces/ns/register", {"name": name, "metadata-location": location})
            away = here | {"name": f"{name}_away"}
            if how == "rename" and caller.lands(
                "POST", "/v1/tables/rename", {"source": here, "destination": away}
            ):
                back("/v1/tables/rename", {"source": away, "destination": here})

        return work

    def _purges(self, number: int) -> Callable[[], None]:
        """Purge a table, and make another one of its name."""
        caller = Caller(self.servers, number)

        def work() -> None:
            self._over.wait(caller.chance.uniform(1, 3))
            if caller.find("purged") is None:
                caller.lands(
                    "POST", TABLES, {"name": "purged", "schema": SCHEMA, "properties": PROPERTIES["purged"]}
                )
            elif not self._over.is_set():
                caller.lands("DELETE", f"{TABLES}/purged?purgeRequested=true")

        return work


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[CrashingServer]]:
    """Two servers on one database and one warehouse."""
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres_server")
        url = postgres.url(migrated_database_of(postgres))
    else:
        url = migrated(f"sqlite:///{tmp_path / 'icetower.db'}")
    settings = {"database_url": url, "default_warehouse_location": str(tmp_path / "warehouse")}
    settings["default_warehouse_overrides"] = '{"icetower.guard": "reject"}'
    with ExitStack() as running:
        started = []
        for number in range(2):
            folder = tmp_path / f"server-{number}"
            folder.mkdir()
            started.append(running.enter_context(CrashingServer(folder, settings)))
        yield started


def test_everything_at_once_loses_and_invents_nothing(servers: list[CrashingServer]) -> None:
    caller = Caller(servers, 99)
    assert caller.lands("POST", "/v1/namespaces", {"namespace": ["ns"]})
    for name, properties in PROPERTIES.items():
        while caller.find(name) is None:
            caller.lands("POST", TABLES, {"name": name, "schema": SCHEMA, "properties": properties})
    load = Load(servers)

    load.run()

    for name in PROPERTIES:
        metadata = caller.find(name)
        assert metadata is not None or name == "purged"
        if metadata is not None:
            check_files(
                TableMetadata.model_validate(metadata), load.has_landed.get(metadata["table-uuid"], {})
            )
            check_line(metadata)
    # So much has really gone on.
    assert sum(sum(files.values()) for files in load.has_landed.values()) > SECONDS


def check_files(metadata: TableMetadata, has_landed: dict[str, bool]) -> None:
    """Check that the table has what has landed, once, and nothing else, and that what it names is there."""
    source = FileManifestSource(LocalFiles(), ManifestCache(16 << 20))
    for snapshot in metadata.snapshots:
        entries = [entry for manifest in source.manifests(snapshot) for entry in source.entries(manifest)]
        live = Counter(str(entry.file.file_path) for entry in entries if entry.is_live)
        assert set(live.values()) <= {1}, live.most_common(3)
        if snapshot.snapshot_id == metadata.current_snapshot_id:
            there = {path for path, landed in has_landed.items() if landed}
            assert there <= set(live), f"lost: {sorted(there - set(live))[:3]}"
            assert set(live) <= there, f"invented: {sorted(set(live) - there)[:3]}"
        # Files with other names are those of clients that only write manifests.
        appended = [path for path in live if "/data/data-" not in path]
        assert [path for path in appended if not LocalFiles().exists(Location(path))] == []


def check_line(metadata: dict[str, Any]) -> None:
    """Check that snapshots are one line with growing numbers, and that the log names each file once, and is there."""
    by_id = {snapshot["snapshot-id"]: snapshot for snapshot in metadata.get("snapshots", [])}
    line, at = [], metadata.get("current-snapshot-id")
    while at in by_id:
        line.append(by_id[at]["sequence-number"])
        at = by_id[at].get("parent-snapshot-id")
    assert len(line) == len(by_id), "the history forks"
    assert line == sorted(set(line), reverse=True)
    logged = [entry["metadata-file"] for entry in metadata["metadata-log"]]
    assert len(set(logged)) == len(logged)
    assert [location for location in logged if not LocalFiles().exists(Location(location))] == []
