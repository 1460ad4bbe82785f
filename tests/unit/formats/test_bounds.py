"""Files that were made to cost more than they should."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from app.engine.model.ids import Location
from app.engine.model.table_metadata import read_table_metadata
from app.errors import InvalidMetadata
from app.fileio.local import LocalFiles
from app.fileio.memory import MemoryFiles
from app.formats.avro import TooLargeError, cost_within, open_avro
from app.formats.avro.types import write_long
from app.formats.bounds import MAX_FILE_BYTES, check_json, pack, read_bounded, unpack
from app.formats.manifests.lists import read_manifest_list
from app.formats.metadata.files import MetadataFiles
from tests.builders.manifest_records import manifest_list_of

ROOT = Path(__file__).parents[3]
METADATA = Location("memory://wh/t/metadata/v1.metadata.json")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "v1.metadata.json"
    path.touch()
    os.truncate(path, 7 << 30)  # takes no space on disk
    tracemalloc.start()

    with pytest.raises(
        InvalidMetadata, match=f"{path} has more than {MAX_FILE_BYTES} bytes: the setting max"
    ):
        read_bounded(LocalFiles(), Location(str(path)), MAX_FILE_BYTES)

    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("unpacked", [b"[]," * (20 << 20), b" " * (60 << 20)], ids=["values", "blanks"])
def test_a_small_file_may_not_unpack_to_much(unpacked: bytes) -> None:
    packed = gzip.compress(unpacked, 1)
    assert len(packed) < 1 << 20

    with pytest.raises(InvalidMetadata, match="unpacks to more than"):
        unpack(packed, MAX_FILE_BYTES)


def test_what_packs_as_well_as_metadata_does_is_unpacked() -> None:
    unpacked = os.urandom(1 << 20) * 40

    assert unpack(gzip.compress(unpacked), MAX_FILE_BYTES) == unpacked


def test_what_is_packed_here_is_unpacked_however_well_it_shrinks() -> None:
    """Packed as others do it, a view with a long generated query could not be read again."""
    files, metadata = MemoryFiles(), MetadataFiles(0, 0)
    query = "SELECT a FROM somewhere UNION ALL " * 600_000
    content = json.dumps({"view-uuid": "7", "sql": query}).encode()
    packed = Location(METADATA.replace("v1", "v1.gz"))

    metadata.write(files, packed, content)

    assert metadata.identify(files, packed)[1] > 1, "it cannot be read"
    assert unpack(pack(content, len(content)), len(content)) == content
    assert len(files.read(packed)) < len(content)


@pytest.mark.parametrize("values", [b"[],", b"{},", b'"",', b"1,", b'"k":1,'])
def test_a_document_of_too_many_values_is_refused_before_it_is_parsed(values: bytes) -> None:
    with pytest.raises(InvalidMetadata, match="more than 1024 values: the setting max_metadata_bytes raises"):
        check_json(b'{"unknown": [' + values * 1_100 + b"]}", 1 << 16)


def test_a_long_text_is_one_value() -> None:
    check_json(b'{"properties": {"a": "' + b"x" * 60_000 + b'"}}', 1 << 16)


def test_what_could_not_be_read_again_is_not_written() -> None:
    files, metadata = MemoryFiles(), MetadataFiles(0, 0, max_file_bytes=1 << 16)

    for content in (b" " * (1 << 17), b"[]," * 1_000):
        with pytest.raises(InvalidMetadata, match="max_metadata_bytes raises the limit"):
            metadata.write(files, METADATA, content)
    assert not files.exists(METADATA)


def test_the_memory_that_a_hostile_file_takes_is_bounded(tmp_path: Path) -> None:
    """A file of 58 KB took more than 2 GB."""
    path = tmp_path / "v1.gz.metadata.json"
    path.write_bytes(gzip.compress(b'{"format-version":2,"unknown":[' + b"[]," * (20 << 20) + b"[]]}", 9))
    code = f"""
import resource
from app.errors import InvalidMetadata
from app.fileio.local import LocalFiles
from app.formats.metadata.files import MetadataFiles
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    MetadataFiles(0, 0).read_table(LocalFiles(), {str(path)!r})
except InvalidMetadata:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)

    assert int(done.stdout) < 100 << 10  # KiB


def test_nesting_has_a_limit() -> None:
    with pytest.raises(InvalidMetadata):
        read_table_metadata(b'{"unknown":' + b"[" * 100_000 + b"]" * 100_000 + b"}")


def test_a_list_may_not_have_more_manifests_than_its_limit_allows() -> None:
    content = manifest_list_of(100_000)
    assert len(content) < 1 << 20

    with pytest.raises(
        InvalidMetadata, match=r"Cannot read manifest list .*: the setting max_metadata_bytes"
    ):
        read_manifest_list(content, METADATA, 64 << 20)
    assert cost_within(content, 16 << 20) is None


@pytest.mark.parametrize("codec", [b"null", b"deflate"])
def test_a_file_may_not_have_more_empty_blocks_than_its_limit_allows(codec: bytes) -> None:
    """Each takes twenty bytes of the file and hundreds in memory."""
    sync, packed = b"\x07" * 16, b"" if codec == b"null" else b"\x03\x00"
    header = b"Obj\x01\x02\x14avro.codec" + write_long(len(codec)) + codec + b"\x00" + sync
    block = b"\x00" + write_long(len(packed)) + packed + sync

    with pytest.raises(TooLargeError, match="it has too many blocks or records for a file of 65536 bytes"):
        open_avro(header + block * 300, 1 << 16)
    assert cost_within(header + block * 300, 1 << 16) is None
    assert len(open_avro(header + block * 200, 1 << 16).blocks) == 200
