"""The catalog under attack: what is in it, what names stand for, and whether anything has changed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from app.database.connections.database import Database
from tests.bad_input.commit_bodies import table_with_history
from tests.builders.http_catalog import make_namespace, make_table, make_view

MAX_BODY_BYTES = 1_000_000
_POINTERS = "id, namespace_id, kind, name, uuid, metadata_location, created_ms, updated_ms, registration"
_TABLES = {
    "warehouses": "*",
    "namespaces": "*",
    "pointers": _POINTERS,
    "pointer_history": "*",
    "file_deletions": "*",
}
"""Everything a refusal must leave alone. That a key was refused, or a writer lost a race, is remembered."""


@dataclass
class Victim:
    """A running catalog with something to lose."""

    client: httpx.Client
    database: Database
    folder: Path
    names: dict[str, str] = field(default_factory=dict)
    """What `$NAME` in an attack stands for."""
    _state: Mapping[str, Any] = field(default_factory=dict)

    @property
    def port(self) -> int:
        port = self.client.base_url.port
        assert port is not None
        return port

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    def named(self, text: str) -> str:
        """Return a text with every `$NAME` replaced."""
        # The longest first: a name may be the beginning of another.
        for name in sorted(self.names, key=len, reverse=True):
            text = text.replace(f"${name}", self.names[name])
        return text

    def named_in(self, body: bytes) -> bytes:
        """Return a body with every `$NAME` replaced, whatever else it holds."""
        return self.named(body.decode("latin-1")).encode("latin-1") if b"$" in body else body

    def fill(self) -> None:
        """Put in what the attacks are after."""
        client = self.client
        make_namespace(client, "a")
        make_namespace(client, "a", "b")
        make_namespace(client, "empty")
        table = make_table(client, "a", "t")
        view = make_view(client, "a", "v")
        histories = {version: table_with_history(client, "a", version) for version in (1, 2, 3)}
        outside = self.folder / "outside"
        outside.mkdir()
        (outside / "secret.json").write_text(json.dumps(table["metadata"]))
        other = {"name": "other", "root-location": f"file://{self.folder}/other"}
        client.post("/management/v1/warehouses", json=other).raise_for_status()
        client.post("/v1/other/namespaces", json={"namespace": ["elsewhere"]}).raise_for_status()
        self._write_files(table["metadata"], view["metadata"])
        self.names |= {
            "WAREHOUSE": f"file://{self.warehouse}",
            "PATH": str(self.warehouse),
            "OUTSIDE": f"file://{outside}",
            "LOCATION": histories[2]["metadata"]["location"],
            "UUID": histories[2]["metadata"]["table-uuid"],
            "METADATA": table["metadata-location"],
            "VIEW_METADATA": view["metadata-location"],
            "VIEW_LOCATION": view["metadata"]["location"],
            "VIEW_UUID": view["metadata"]["view-uuid"],
        }
        self._state = self._look()

    def _write_files(self, table: dict[str, Any], view: dict[str, Any]) -> None:
        """Lay files of all kinds into the warehouse, for registrations."""
        packed = gzip.compress(json.dumps(table).encode())
        (self.warehouse / "folder").mkdir()
        files: dict[str, bytes] = {
            "empty.json": b"",
            "text.json": b"root:x:0:0:root:/root:/bin/sh",
            "binary.json": bytes(range(256)),
            "cut.json": json.dumps(table).encode()[:-40],
            "deep.json": b"[" * 100_000,
            "cut.gz.metadata.json": packed[:-10],
            "unpacked.gz.metadata.json": json.dumps(table).encode(),
            "bomb.gz.metadata.json": gzip.compress(bytes(100 << 20)),
            "tail.gz.metadata.json": packed + packed,
            "view.json": json.dumps(view).encode(),
            "table.json": json.dumps(table).encode(),
        }
        changed: dict[str, dict[str, Any]] = {
            "v0.json": table | {"format-version": 0},
            "v4.json": table | {"format-version": 4},
            "v-text.json": table | {"format-version": "2"},
            "no-uuid.json": {key: value for key, value in table.items() if key != "table-uuid"},
            "odd-uuid.json": table | {"table-uuid": "a\x00b"},
            "no-schemas.json": table | {"schemas": []},
            "no-current-schema.json": table | {"current-schema-id": 7},
            "no-snapshot.json": table | {"current-snapshot-id": 7},
            "dangling.json": table | {"refs": {"x": {"type": "tag", "snapshot-id": 7}}},
            "outside.json": table | {"location": f"file://{self.folder}/outside"},
            "writes-outside.json": table | {"properties": {"write.data.path": "s3://elsewhere/x"}},
            "v1-broken-spec.json": {
                "format-version": 1,
                "location": table["location"],
                "last-updated-ms": 1,
                "last-column-id": 2,
                "schema": table["schemas"][0],
                "partition-spec": [{}],
            },
            "view-v2.json": view | {"format-version": 2},
            "view-no-version.json": view | {"current-version-id": 7},
            "view-outside.json": view | {"location": "s3://elsewhere/v"},
        }
        for name, content in files.items():
            (self.warehouse / name).write_bytes(content)
        for name, document in changed.items():
            (self.warehouse / name).write_text(json.dumps(document))

    def check_unchanged(self) -> None:
        """Fail if a row or a file came, went or changed; the next look starts from what is there then."""
        before, self._state = self._state, self._look()
        assert self._state == before

    def look_again(self) -> None:
        """Take what is there now for what must stay: a test has changed something on purpose."""
        self._state = self._look()

    def _look(self) -> dict[str, Any]:
        rows = {
            name: self.database.fetch(f"SELECT {columns} FROM {name} ORDER BY 1", ())
            for name, columns in _TABLES.items()
        }
        files = {
            str(path): (path.stat().st_size, path.stat().st_mtime_ns)
            for path in self.folder.rglob("*")
            if path.is_file() and not path.name.startswith("icetower.db")
        }
        return {**rows, "files": files}
