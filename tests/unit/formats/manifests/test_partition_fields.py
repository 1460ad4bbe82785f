from __future__ import annotations

import io
from typing import Any
from uuid import UUID

import fastavro
import pytest

from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.partition_fields import typed
from app.formats.manifests.writer import write_manifest

VALUE = UUID("9c12d441-03fe-4693-9a96-a0705ddf69c1")


def test_uuid_that_a_writer_stored_as_plain_bytes_is_one() -> None:
    uuid, binary = PrimitiveType("uuid", "uuid"), PrimitiveType("binary", "binary")

    assert typed((uuid, binary, uuid), (VALUE.bytes, VALUE.bytes, None)) == (VALUE, VALUE.bytes, None)
    assert typed((uuid, binary, uuid), (VALUE, b"", VALUE)) == (VALUE, b"", VALUE)


def test_such_a_value_is_written_as_a_uuid() -> None:
    schema = Schema.from_object(
        {"type": "struct", "fields": [{"id": 1, "name": "u", "required": False, "type": "uuid"}]}
    )
    spec = PartitionSpec.from_object(
        {
            "spec-id": 0,
            "fields": [{"source-id": 1, "field-id": 1000, "name": "u", "transform": "identity"}],
        }
    )
    file = DataFile(FileContent.DATA, Location("s3://b/f"), "parquet", SpecId(0), (VALUE.bytes,), 1, 1)
    entry = ManifestEntry(EntryStatus.ADDED, SnapshotId(1), 1, 1, file)

    written = write_manifest([entry], schema=schema, spec=spec, format_version=2, snapshot_id=SnapshotId(1))

    (read,) = ManifestColumns(written.at(Location("s3://b/m")), written.content)
    assert read.file.partition == (VALUE,)
    assert written.manifest.partitions is not None
    assert written.manifest.partitions[0].lower_bound == VALUE.bytes


@pytest.mark.parametrize("names", [("a b", "a_x20b"), ("a_x20b", "a b"), ("9", "_9", "_9_1001")])
def test_names_that_avro_would_confuse_are_told_apart(names: tuple[str, ...]) -> None:
    """Readers find no field, or another one's value, where two fields of a record have one name."""
    columns = [{"id": at, "name": f"c{at}", "required": False, "type": "int"} for at in range(len(names))]
    fields = [
        {"source-id": at, "field-id": 1000 + at, "name": name, "transform": "identity"}
        for at, name in enumerate(names)
    ]
    schema = Schema.from_object({"type": "struct", "fields": columns})
    spec = PartitionSpec.from_object({"spec-id": 0, "fields": fields})
    values = tuple(range(len(names)))
    file = DataFile(FileContent.DATA, Location("s3://b/f"), "parquet", SpecId(0), values, 1, 1)
    entry = ManifestEntry(EntryStatus.ADDED, SnapshotId(1), 1, 1, file)

    written = write_manifest([entry], schema=schema, spec=spec, format_version=2, snapshot_id=SnapshotId(1))

    records: list[Any] = list(fastavro.reader(io.BytesIO(written.content)))
    assert tuple(records[0]["data_file"]["partition"].values()) == values
    (read,) = ManifestColumns(written.at(Location("s3://b/m")), written.content)
    assert read.file.partition == values
