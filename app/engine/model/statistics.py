"""Table and partition statistics files, and encryption keys."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from app.engine.model.document import FIRST_ERROR, LONG, Document, Int, Long, Text
from app.engine.model.ids import Location, SnapshotId

_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
"""Not in fours, of which a pattern would remember each."""


def _check_base64(value: str) -> str:
    # Clients that decode it when they load a table could not load the table.
    if len(value) % 4 or not _BASE64.fullmatch(value):
        raise ValueError("not base64")
    return value


class BlobMetadata(Document):
    """One blob of a statistics file.

    Spec: #table-statistics
    """

    type: str
    snapshot_id: Annotated[SnapshotId, LONG]
    sequence_number: Long
    fields: Annotated[tuple[Int, ...], FIRST_ERROR]
    properties: Annotated[dict[str, Text], FIRST_ERROR] | None = None


class StatisticsFile(Document):
    """A Puffin file with statistics of one snapshot."""

    snapshot_id: Annotated[SnapshotId, LONG]
    statistics_path: Location
    file_size_in_bytes: Long
    file_footer_size_in_bytes: Long
    key_metadata: str | None = None
    blob_metadata: Annotated[tuple[BlobMetadata, ...], FIRST_ERROR]


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
    encrypted_key_metadata: Annotated[str, AfterValidator(_check_base64)]
    encrypted_by_id: str | None = None
    properties: Annotated[dict[str, Text], FIRST_ERROR] | None = None
