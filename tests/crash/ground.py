"""The ground of one mutation: a namespace of its own, and what has to be there first."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.fileio.local import LocalFiles
from tests.builders.http_catalog import SCHEMA, VIEW_VERSION
from tests.builders.parquet_files import parquet_rows
from tests.builders.table_files import TableFiles


@dataclass
class Request:
    """One request that changes something."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def send(self, client: httpx.Client, key: str | None = None) -> httpx.Response:
        """Send it, under an Idempotency-Key if one is given."""
        headers = self.headers | ({} if key is None else {"Idempotency-Key": key})
        return client.request(self.method, self.path, json=self.body, headers=headers)


@dataclass(frozen=True)
class Ground:
    """A namespace of its own for one request."""

    client: httpx.Client
    ns: str
    files: TableFiles = field(default_factory=lambda: TableFiles(LocalFiles()))

    @property
    def path(self) -> str:
        return f"/v1/namespaces/{self.ns}"

    def do(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a request that must succeed, and return its answer."""
        answer = self.client.request(method, path, json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def table(self, name: str = "t", **properties: str) -> dict[str, Any]:
        body = {"name": name, "schema": SCHEMA, "properties": properties}
        made: dict[str, Any] = self.do("POST", f"{self.path}/tables", body)
        return made

    def view(self, name: str = "v") -> dict[str, Any]:
        made: dict[str, Any] = self.do("POST", f"{self.path}/views", view_body(name))
        return made

    def load(self, name: str = "t") -> TableMetadata:
        loaded = self.do("GET", f"{self.path}/tables/{name}")
        return read_table_metadata(json.dumps(loaded["metadata"]).encode())

    def snapshot(self, name: str = "t", branch: str = "main") -> dict[str, Any]:
        """Write the files of a snapshot, and return the commit of it."""
        seen = self.load(name)
        number, head = len(seen.snapshots), seen.current_snapshot
        snapshot = self.files.snapshot(seen, [f"{uuid.uuid4()}"], timestamp_ms=seen.last_updated_ms + number)
        return {
            "requirements": [
                {
                    "type": "assert-ref-snapshot-id",
                    "ref": branch,
                    "snapshot-id": head.snapshot_id if branch == "main" and head else None,
                }
            ],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot.to_object()},
                {
                    "action": "set-snapshot-ref",
                    "ref-name": branch,
                    "type": "branch",
                    "snapshot-id": snapshot.snapshot_id,
                },
            ],
        }

    def append(self, name: str = "t", times: int = 1) -> None:
        for _ in range(times):
            self.do("POST", f"{self.path}/tables/{name}", self.snapshot(name))

    def parquet(self, name: str = "t") -> str:
        location = self.load(name).location
        path = Path(location.removeprefix("file://"), "data", f"{uuid.uuid4()}.parquet")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(parquet_rows(id=[1, 2]))
        return f"{location}/data/{path.name}"


def view_body(name: str = "v") -> dict[str, Any]:
    return {"name": name, "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}
