"""Clients that append over HTTP with manifests of their own, from whatever state of the table they have seen."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import httpx

from app.engine.model.files.manifests import ManifestContent
from app.engine.model.table_metadata import TableMetadata
from app.fileio.local import LocalFiles
from tests.builders.derived_requirements import requirements_for
from tests.builders.writing_engine import WritingEngine

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
}


@dataclass(frozen=True)
class Sent:
    """A commit as it is sent, and the one data file that it adds."""

    table: str
    body: dict[str, Any]
    snapshot_id: int
    file_path: str


@dataclass
class Appender:
    """One client of one server, whose files lie on the local disk."""

    url: str
    number: int
    timeout_s: float = 60

    def __post_init__(self) -> None:
        self.http = httpx.Client(base_url=self.url, timeout=self.timeout_s)
        self._numbers = itertools.count(self.number * 1_000_000)

    def load(self, table: str) -> TableMetadata:
        """Load a table of the namespace `ns`."""
        answer = self.http.get(f"/v1/namespaces/ns/tables/{table}")
        answer.raise_for_status()
        return TableMetadata.model_validate(answer.json()["metadata"])

    def prepare(self, table: str, seen: TableMetadata) -> Sent:
        """Write the files of an append that is built on what was seen."""
        made = self._engine(seen).append(["data"])
        needed = requirements_for(seen, made.updates)
        body = {
            "requirements": [item.model_dump(mode="json", by_alias=True) for item in needed],
            "updates": [
                item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in made.updates
            ],
        }
        engine = self._engine(made.after)
        own = [
            item
            for item in engine.manifests(made.snapshot)
            if item.added_snapshot_id == made.snapshot.snapshot_id
        ]
        (path,) = [entry.file.file_path for item in own for entry in engine.source.entries(item)]
        return Sent(table, body, made.snapshot.snapshot_id, path)

    def send(self, commit: Sent) -> httpx.Response:
        """Send a commit, perhaps once more."""
        return self.http.post(f"/v1/namespaces/ns/tables/{commit.table}", json=commit.body)

    def live_files(self, table: str) -> list[str]:
        """Return every live data file of the current snapshot, read from the disk."""
        metadata = self.load(table)
        engine = self._engine(metadata)
        return [entry.file.file_path for entry in engine.live(engine.head(), ManifestContent.DATA)]

    def _engine(self, metadata: TableMetadata) -> WritingEngine:
        return WritingEngine(metadata.format_version, files=LocalFiles(), numbers=self._numbers, on=metadata)


def make_rebasing_table(url: str, name: str) -> None:
    """Create a table in the namespace `ns` whose appends are rebased."""
    with httpx.Client(base_url=url, timeout=60) as http:
        http.post("/v1/namespaces", json={"namespace": ["ns"]})
        properties = {"icetower.rebase": "appends", "icetower.guard": "reject"}
        body = {"name": name, "schema": SCHEMA, "properties": properties}
        http.post("/v1/namespaces/ns/tables", json=body).raise_for_status()


def check_line(metadata: TableMetadata) -> None:
    """Check that the snapshots are one line, numbered without gaps."""
    parents = {item.snapshot_id: item.parent_snapshot_id for item in metadata.snapshots}
    line, at = [], metadata.current_snapshot_id
    while at is not None:
        line.append(at)
        at = parents[at]
    assert sorted(line) == sorted(parents)
    assert [item.sequence for item in metadata.snapshots] == list(range(1, len(line) + 1))
