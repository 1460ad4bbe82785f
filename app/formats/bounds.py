"""Bounds for files of metadata: asked before memory and time are spent on them."""

from __future__ import annotations

import gzip
import zlib
from typing import Final

from app.engine.model.ids import Location
from app.errors import InvalidMetadata
from app.fileio.bounded_reads import read_at_most
from app.fileio.files import FileIO

MAX_FILE_BYTES: Final = 256 << 20
_RAISED_BY: Final = "the setting max_metadata_bytes raises the limit"
_BYTES_A_VALUE: Final = 64
"""The parsed value takes about as much, however short its JSON; a file has more bytes for each on average."""
_UNSUSPICIOUS_BYTES: Final = 16 << 20
_MAX_GZIP_RATIO: Final = 100
"""Metadata shrinks to a tenth or a twentieth; a large file with a higher ratio was made to do harm."""


def too_large(reason: str) -> InvalidMetadata:
    """Return the error for a file over the limit."""
    return InvalidMetadata(f"{reason}: {_RAISED_BY}")


def read_bounded(files: FileIO, location: Location, max_bytes: int) -> bytes:
    """Return a file's content; a larger one is not read.

    Raises:
        InvalidMetadata: it is larger.
        FileMissing, FilesUnavailable, InvalidLocation: it cannot be read.
    """
    content = read_at_most(files, location, max_bytes)
    if content is None:
        raise too_large(f"{location} has more than {max_bytes} bytes")
    return content


def check_json(content: bytes, max_bytes: int) -> None:
    """Check that a document has so few values that it can be parsed.

    Raises:
        InvalidMetadata: it is too large, or has too many.
    """
    if len(content) > max_bytes:
        raise too_large(f"The metadata has more than {max_bytes} bytes")
    most = max_bytes // _BYTES_A_VALUE
    # A value takes a byte at least: only large documents are looked through.
    if len(content) > most and sum(map(content.count, (b",", b"[", b"{"))) > most:
        raise too_large(f"The metadata has more than {most} values")


def pack(content: bytes, max_bytes: int) -> bytes:
    """Pack with gzip, so that `unpack` takes it whatever it is."""
    packed = gzip.compress(content, compresslevel=6, mtime=0)
    if len(content) <= _unpacked_limit(packed, max_bytes):
        return packed
    # Where repetitions are not used, each byte takes a bit at least.
    packer = zlib.compressobj(wbits=31, strategy=zlib.Z_HUFFMAN_ONLY)
    return packer.compress(content) + packer.flush()


def _unpacked_limit(packed: bytes, max_bytes: int) -> int:
    return min(max_bytes, max(_UNSUSPICIOUS_BYTES, _MAX_GZIP_RATIO * len(packed)))


def unpack(content: bytes, max_bytes: int) -> bytes:
    """Unpack gzip within a limit: a small file can unpack to any size.

    Raises:
        InvalidMetadata: it is not gzip, or unpacks to too much.
    """
    limit = _unpacked_limit(content, max_bytes)
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(content, limit + 1)
    except zlib.error as error:
        raise InvalidMetadata(f"The file is named as gzip but cannot be unpacked: {error}") from error
    if len(unpacked) > limit:
        raise InvalidMetadata(f"The file is gzip and unpacks to more than {limit} bytes")
    if not unpacker.eof:
        raise InvalidMetadata("The file is gzip but ends too early")
    if unpacker.unused_data:
        raise InvalidMetadata("The file is gzip with something else behind it")
    return unpacked
