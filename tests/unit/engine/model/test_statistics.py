"""Statistics files and encryption keys as documents."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from app.engine.model.statistics import EncryptedKey, PartitionStatisticsFile, StatisticsFile
from app.errors import InvalidMetadata
from tests.unit.engine.documents import Json, encoded

BLOB: Json = {
    "type": "apache-datasketches-theta-v1",
    "snapshot-id": 7,
    "sequence-number": 1,
    "fields": [1, 2],
    "properties": {"ndv": "5"},
    "vendor": 1,
}
FILE: Json = {
    "snapshot-id": 7,
    "statistics-path": "s3://b/s.puffin",
    "file-size-in-bytes": 400,
    "file-footer-size-in-bytes": 40,
    "key-metadata": "AA==",
    "blob-metadata": [BLOB],
    "vendor": [1],
}
PARTITION_FILE: Json = {
    "snapshot-id": 7,
    "statistics-path": "s3://b/p.parquet",
    "file-size-in-bytes": 400,
    "vendor": {},
}
KEY: Json = {
    "key-id": "k1",
    "encrypted-key-metadata": "c2VjcmV0",
    "encrypted-by-id": "kms",
    "properties": {"a": "b"},
    "vendor": True,
}


def test_documents_are_read_and_written_without_loss() -> None:
    assert json.loads(StatisticsFile.from_json(encoded(FILE)).to_json()) == FILE
    assert json.loads(PartitionStatisticsFile.from_json(encoded(PARTITION_FILE)).to_json()) == PARTITION_FILE
    assert json.loads(EncryptedKey.from_json(encoded(KEY)).to_json()) == KEY


@pytest.mark.parametrize("name", ["statistics-path", "file-size-in-bytes", "blob-metadata"])
def test_missing_part_is_refused(name: str) -> None:
    with pytest.raises(InvalidMetadata, match=f"^{name}: Field required$"):
        StatisticsFile.from_json(encoded({key: value for key, value in FILE.items() if key != name}))


@pytest.mark.parametrize(
    "text", ["secret!", "c2VjcmV", "=", "==", "c2Vj\n", "c2Vj=", "c2V=Vj==", "c===", "===="]
)
def test_key_that_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(InvalidMetadata, match=r"^encrypted-key-metadata: not base64$"):
        EncryptedKey.from_json(encoded(KEY | {"encrypted-key-metadata": text}))


def test_long_key_takes_no_more_memory_than_its_text() -> None:
    content = encoded(KEY | {"encrypted-key-metadata": "c2Vj" * 250_000})
    tracemalloc.start()
    try:
        EncryptedKey.from_json(content)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 4 * len(content)
