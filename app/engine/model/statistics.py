"""Table and partition statistics files, and encryption keys."""

from __future__ import annotations

from typing import Annotated

from app.engine.model.document import LONG, Document, Int, JsonValue, Long
from app.engine.model.ids import Location, SnapshotId


class BlobMetadata(Document):
    """One blob of a statistics file.

    Spec: #table-statistics
    """

    type: str
    snapshot_id: Annotated[SnapshotId, LONG]
    sequence_number: Long
    fields: tuple[Int, ...]
    properties: dict[str, str] | None = None


class StatisticsFile(Document):
    """A Puffin file with statistics of one snapshot."""

    snapshot_id: Annotated[SnapshotId, LONG]
    statistics_path: Location
    file_size_in_bytes: Long
    file_footer_size_in_bytes: Long
    key_metadata: JsonValue = None
    blob_metadata: tuple[BlobMetadata, ...]


class PartitionStatisticsFile(Document):
    """A file with statistics of a snapshot's partitions.

    Spec: #partition-statistics
    """

    snapshot_id: Annotated[SnapshotId, LONG]
    statistics_path: Location
    file_size_in_bytes: Long


class EncryptedKey(Document):
    """A key that encrypts other keys or manifest lists; the bytes stay as base64 text.

    Spec: #encryption-keys
    """

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = None
