"""Tables behind HTTP whose writer claims what it likes: manifests are written here, and committed as clients do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.formats.manifests.lists import write_manifest_list
from app.formats.manifests.writer import write_manifest

FIELDS = ({"id": 1, "name": "id", "required": False, "type": "long"},)
LARGEST = 2**63 - 1


def spec_document(source_id: int = 1) -> dict[str, Any]:
    """Return a spec of one field, a column as it is."""
    part = {"name": "part", "transform": "identity", "source-id": source_id, "field-id": 1000}
    return {"spec-id": 0, "fields": [part]}


@dataclass
class ClaimingWriter:
    """A writer of one table in the namespace `a`, on the disk of the server."""

    client: httpx.Client
    name: str
    columns: tuple[Mapping[str, Any], ...] = FIELDS
    """All columns of the table; it is partitioned by the first one."""
    written_as: str | None = None
    """The type that the first column has in manifests, if it is another one than in the table."""
    location: str = field(init=False)

    def __post_init__(self) -> None:
        body = {"name": self.name, "schema": self._schema(self.columns), "partition-spec": spec_document()}
        made = self.client.post("/v1/namespaces/a/tables", json=body)
        assert made.status_code == 200, made.text
        self.location = made.json()["metadata"]["location"]

    @property
    def path(self) -> str:
        return f"/v1/namespaces/a/tables/{self.name}"

    def _schema(self, columns: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        return {"type": "struct", "schema-id": 0, "fields": list(columns)}

    def file(self, number: int = 0, **claims: Any) -> DataFile:
        """Return a data file of ten rows in the partition 1, unless it is said otherwise."""
        facts: dict[str, Any] = {
            "content": FileContent.DATA,
            "file_path": Location(f"{self.location}/data/{number}.parquet"),
            "file_format": "parquet",
            "spec_id": SpecId(0),
            "partition": (1,),
            "record_count": 10,
            "file_size_in_bytes": 1_000,
        }
        return DataFile(**{**facts, **claims})

    def commit(self, *groups: Iterable[DataFile], summary: Mapping[str, str] | None = None) -> None:
        """Append a manifest of each group of files, in the first snapshot of the table."""
        manifests = [self._manifest(f"m{number}.avro", files) for number, files in enumerate(groups)]
        snapshot = {
            "snapshot-id": 1,
            "timestamp-ms": 1_700_000_000_000,
            "sequence-number": 1,
            "manifest-list": self._store("list.avro", _list_of(manifests)),
            "summary": {"operation": "append", **(summary or {})},
            "schema-id": 0,
        }
        ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1}
        body = {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": snapshot}, ref]}
        answer = self.client.post(self.path, json=body)
        assert answer.status_code == 200, answer.text

    def _manifest(self, name: str, files: Iterable[DataFile]) -> ManifestFile:
        first, *others = self.columns
        columns = [{**first, "type": self.written_as or first["type"]}, *others]
        entries = [ManifestEntry(EntryStatus.ADDED, None, None, None, file) for file in files]
        is_of_data = all(entry.file.content is FileContent.DATA for entry in entries)
        written = write_manifest(
            entries,
            schema=Schema.from_object(self._schema(columns)),
            spec=PartitionSpec.from_object(spec_document()),
            format_version=2,
            content=ManifestContent.DATA if is_of_data else ManifestContent.DELETES,
            snapshot_id=SnapshotId(1),
        )
        manifest = written.at(self._store(name, written.content))
        return replace(manifest, added_rows_count=min(LARGEST, manifest.added_rows_count or 0))

    def _store(self, name: str, content: bytes) -> Location:
        path = Path(self.location.removeprefix("file://"), "metadata", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return Location(f"{self.location}/metadata/{name}")


def _list_of(manifests: Iterable[ManifestFile]) -> bytes:
    return write_manifest_list(
        manifests, format_version=2, snapshot_id=SnapshotId(1), parent_snapshot_id=None, sequence_number=1
    ).content
