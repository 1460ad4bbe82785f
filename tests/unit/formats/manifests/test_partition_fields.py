from __future__ import annotations

from uuid import UUID

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
