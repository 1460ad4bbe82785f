"""A table to plan scans of: very many files in manifests that our engine writes, with metrics of twelve columns."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.writer import write_manifest

NAMESPACE = "planning"
FIRST_DAY = 20_000
"""In days since 1970."""
_DAY_MICROS = 86_400 * 10**6
_SNAPSHOT = SnapshotId(1)
_KINDS = (
    "long",
    "timestamp",
    "long",
    "long",
    "int",
    "int",
    "double",
    "double",
    "string",
    "string",
    "string",
    "date",
)
_COLUMNS = [
    {"id": number, "name": f"c{number}", "required": False, "type": kind}
    for number, kind in enumerate(_KINDS, start=1)
]
SCHEMA = {"type": "struct", "schema-id": 0, "fields": _COLUMNS}
SPEC = {"spec-id": 0, "fields": [{"name": "day", "transform": "day", "source-id": 2, "field-id": 1000}]}
TIME = "c2"


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the table is, and whether a manifest has few days or all of them."""

    files: int
    manifests: int
    days: int
    by_day: bool

    @property
    def name(self) -> str:
        return "by_day" if self.by_day else "mixed"


def make_table(http: httpx.Client, warehouse: Path, shape: Shape) -> str:
    """Create the table, write its manifests, commit them as one append, and return its path below `/v1`."""
    http.post("/v1/namespaces", json={"namespace": [NAMESPACE]})
    created = http.post(
        f"/v1/namespaces/{NAMESPACE}/tables",
        json={"name": shape.name, "schema": SCHEMA, "partition-spec": SPEC},
    )
    created.raise_for_status()
    metadata = created.json()["metadata"]
    schema = Schema.from_object(metadata["schemas"][0])
    spec = PartitionSpec.from_object(metadata["partition-specs"][0])
    folder = Path(metadata["location"].removeprefix("file://")) / "metadata"
    assert folder.is_relative_to(warehouse)
    folder.mkdir(parents=True, exist_ok=True)
    manifests = []
    for number, files in enumerate(_by_manifest(shape, metadata["location"])):
        written = write_manifest(files, schema=schema, spec=spec, format_version=2, snapshot_id=_SNAPSHOT)
        path = folder / f"m-{number}.avro"
        path.write_bytes(written.content)
        manifests.append(written.at(Location(f"file://{path}")))
    return _commit(http, shape, folder, manifests)


def _commit(http: httpx.Client, shape: Shape, folder: Path, manifests: Iterable[ManifestFile]) -> str:
    numbered, _ = assign_numbers(list(manifests), sequence_number=1)
    content = write_manifest_list(
        numbered, format_version=2, snapshot_id=_SNAPSHOT, parent_snapshot_id=None, sequence_number=1
    ).content
    (folder / "list.avro").write_bytes(content)
    snapshot = {
        "snapshot-id": _SNAPSHOT,
        "sequence-number": 1,
        "timestamp-ms": time.time_ns() // 1_000_000,
        "manifest-list": f"file://{folder / 'list.avro'}",
        "summary": {"operation": "append", "total-data-files": str(shape.files)},
        "schema-id": 0,
    }
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": _SNAPSHOT},
    ]
    path = f"/v1/namespaces/{NAMESPACE}/tables/{shape.name}"
    answer = http.post(path, json={"requirements": [], "updates": updates})
    if answer.status_code != 200:
        raise RuntimeError(answer.text)
    return path


def _by_manifest(shape: Shape, location: str) -> Iterator[list[ManifestEntry]]:
    each = shape.files // shape.manifests
    for number in range(shape.manifests):
        first = number * each
        yield [_entry(shape, location, at) for at in range(first, first + each)]


def _entry(shape: Shape, location: str, number: int) -> ManifestEntry:
    day = number * shape.days // shape.files if shape.by_day else number % shape.days
    start = (FIRST_DAY + day) * _DAY_MICROS
    lower, upper = (_bounds(number, moment) for moment in (start, start + _DAY_MICROS - 1))
    file = DataFile(
        FileContent.DATA,
        Location(f"{location}/data/day={FIRST_DAY + day}/part-{number:08}-5a0b1c2d-3e4f.parquet"),
        "parquet",
        SpecId(0),
        (FIRST_DAY + day,),
        100_000,
        64 << 20,
        column_sizes=_SIZES,
        value_counts=_VALUES,
        null_value_counts=_NULLS,
        nan_value_counts=_NANS,
        lower_bounds=lower,
        upper_bounds=upper,
        split_offsets=(4, 32 << 20),
        sort_order_id=None,
    )
    return ManifestEntry(EntryStatus.ADDED, _SNAPSHOT, None, None, file)


_IDS = range(1, len(_KINDS) + 1)
_SIZES = dict.fromkeys(_IDS, 5_000_000)
_VALUES = dict.fromkeys(_IDS, 100_000)
_NULLS = dict.fromkeys(_IDS, 0)
_NANS = {7: 0, 8: 0}


def _bounds(number: int, moment: int) -> dict[int, bytes]:
    long, double, text = struct.pack("<q", number), struct.pack("<d", float(number)), b"value %08d" % number
    small = struct.pack("<i", number & 0xFFFF)
    return {
        1: long, 2: struct.pack("<q", moment), 3: long, 4: long, 5: small, 6: small,
        7: double, 8: double, 9: text, 10: text, 11: text, 12: small,
    }  # fmt: skip
