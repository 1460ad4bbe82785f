"""Avro's container: the header's metadata and schema, and the unpacked blocks of records."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Final, Generic, TypeVar

from app.fileio.wanted import check_wanted
from app.formats.avro.schema_types import record_type
from app.formats.avro.types import NULL, Record, read_long

Value = TypeVar("Value")

MAX_UNPACKED_BYTES: Final = 1 << 30
MAX_SCHEMA_CHARACTERS: Final = 256 << 10
"""It has some kilobytes; compiled it takes ten times its text, and many are kept."""
_BYTES_A_RECORD: Final = 256
"""A record counts as much at least: found, a short one takes as much time and memory as others. So does a block."""
_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_CHECKSUM_BYTES: Final = 4
_FEW: Final = 8
_FEW_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class Block:
    """Records one after the other, with nothing between them."""

    record_count: int
    content: bytes


@dataclass(frozen=True)
class KnownRecords(Generic[Value]):
    """The records of one file, with what they were made into."""

    schema_text: str
    content: bytes
    """All records, one after the other."""
    values: Sequence[Value]
    """Of each record, in the order of the file."""
    sizes: Sequence[int]
    """How many bytes the last record has, the last two, and so on up to all."""

    @classmethod
    def of(cls, schema_text: str, records: Sequence[bytes], values: Sequence[Value]) -> KnownRecords[Value]:
        """Return records that were packed here, with what they stand for."""
        return cls(schema_text, b"".join(records), values, list(accumulate(map(len, reversed(records)))))

    @cached_property
    def by_start(self) -> dict[bytes, tuple[bytes, Value]]:
        """The bytes of records and their values, by the bytes of their first field."""
        content = self.content
        places = [len(content) - size for size in (*reversed(self.sizes), 0)]
        if any(pos == end for pos, end in pairwise(places)):
            return {}  # Some records have no bytes.
        end_of_start = _end_of_start(record_type(self.schema_text, ()))
        return {
            content[pos : end_of_start(content, pos)]: (content[pos:end], value)
            for (pos, end), value in zip(pairwise(places), self.values, strict=True)
        }

    def count_shared(self, content: bytes, ends: Sequence[tuple[int, int]], kind: Record, count: int) -> int:
        """Return how many last records of another file are the last ones of this file.

        Looks for them behind its first few records only; 0 if they do not begin there. The schemas are the same.

        Args:
            content: the records of the other file.
            ends: where its blocks end, and how many records are left behind each.
            kind: the type of the records.
            count: how many there are.
        """
        pos, total = 0, len(content)
        for left in range(count, max(count - _FEW, 0), -1):
            start = len(self.content) - total + pos
            # A few bytes tell most apart, where records are as long as others.
            if (
                self._has_last(left, total - pos)
                and content.startswith(self.content[start : start + _FEW_BYTES], pos)
                and all(self._has_last(behind, total - end) for end, behind in ends if end > pos)
                and content.endswith(self.content[start:])
            ):
                return left
            try:
                pos = kind.skip(content, pos)
            except (ValueError, IndexError):
                return 0  # Reading it says what is wrong.
        return 0

    def _has_last(self, count: int, size: int) -> bool:
        """Return whether so many last records have this size."""
        if count:
            return count <= len(self.sizes) and self.sizes[count - 1] == size
        return not size


@dataclass(frozen=True, slots=True)
class AvroFile:
    """The parts of a file; `schema_text` is the JSON of the writer's schema."""

    metadata: Mapping[str, str]
    schema_text: str
    blocks: tuple[Block, ...]

    def records(
        self,
        ids_by_name: tuple[tuple[str, int], ...],
        make: Callable[[Mapping[int, Any]], Value],
        known: KnownRecords[Value] | None = None,
    ) -> KnownRecords[Value]:
        """Make a value of every record.

        Args:
            ids_by_name: the ids of fields to which the writer gave none.
            make: takes a record whole, by field id, and depends on nothing else.
            known: records of another file; one with the same bytes has the same value, and is not read again.

        Raises:
            ValueError: the records do not follow the schema, or what `make` raises.
            IndexError: a record is cut off.
        """
        kind = record_type(self.schema_text, ids_by_name)
        if known is not None and known.schema_text != self.schema_text:
            known = None
        content, ends = b"".join([block.content for block in self.blocks]), self._ends()
        pos, left = 0, sum(block.record_count for block in self.blocks)
        shared = 0 if known is None else known.count_shared(content, ends, kind, left)
        before = {} if known is None or shared else known.by_start
        end_of_start = _end_of_start(kind)
        values: list[Value] = []
        sizes: list[int] = []
        """The first one's comes first."""
        for end, left_behind in ends:
            check_wanted()
            while left > max(left_behind, shared):
                sizes.append(len(content) - pos)
                start = content[pos : end_of_start(content, pos)]
                same = before.get(start)
                # Where a record ends follows from its own bytes alone: one that begins with another is that one.
                if same is not None and content.startswith(same[0], pos):
                    pos += len(same[0])
                    values.append(same[1])
                else:
                    record, pos = kind.read(content, pos)
                    values.append(make(record))
                left -= 1
            if left != left_behind:
                break
            if pos != end:
                raise ValueError("a block does not have the records it says")
        sizes.reverse()
        if known is not None and shared:
            values += known.values[-shared:]
            sizes = [*known.sizes[:shared], *sizes]
        return KnownRecords(self.schema_text, content, values, sizes)

    def _ends(self) -> list[tuple[int, int]]:
        """Return where each block ends among all, and how many records are left behind it."""
        ends, end, left = [], 0, sum(block.record_count for block in self.blocks)
        for block in self.blocks:
            end += len(block.content)
            left -= block.record_count
            ends.append((end, left))
        return ends


def _end_of_start(kind: Record) -> Callable[[bytes, int], int]:
    """Return what finds where a record's first field ends."""
    return kind.fields[0].kind.skip if kind.fields else NULL.skip


class TooLargeError(ValueError):
    """A file that unpacks to more than it may."""


def open_avro(content: bytes, max_unpacked_bytes: int = MAX_UNPACKED_BYTES) -> AvroFile:
    """Take an Avro file apart.

    Raises:
        ValueError: it is not an Avro file, is cut off, or (`TooLargeError`) unpacks to too much.
    """
    if content[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it is not an Avro file")
    try:
        return _open(content, max_unpacked_bytes)
    except IndexError as error:
        raise ValueError("it is cut off") from error


def cost_within(content: bytes, max_bytes: int) -> int | None:
    """Return what looking at all records of a file costs, in bytes; None if it is too much.

    A file that cannot be taken apart costs its own bytes: what reads it will say what is wrong.
    """
    try:
        blocks = open_avro(content, max_bytes).blocks
    except TooLargeError:
        return None
    except ValueError:
        return len(content)
    return max(len(content), sum(map(_cost_of, blocks)))


def _cost_of(block: Block) -> int:
    return max(len(block.content), max(block.record_count, 1) * _BYTES_A_RECORD)


def _open(content: bytes, max_unpacked_bytes: int) -> AvroFile:
    raw, pos = _read_metadata(content, len(_MAGIC))
    sync = content[pos : pos + _SYNC_BYTES]
    pos += _SYNC_BYTES
    schema_text = raw.pop("avro.schema", b"").decode()
    if len(schema_text) > MAX_SCHEMA_CHARACTERS:
        raise ValueError("its schema is too long")
    codec = raw.pop("avro.codec", b"null").decode()
    unpack = _CODECS.get(codec)
    if unpack is None:
        raise ValueError(f"it is packed with {codec[:50]!r}, which this build cannot unpack")
    blocks: list[Block] = []
    left = max_unpacked_bytes
    while pos < len(content):
        record_count, pos = read_long(content, pos)
        size, pos = read_long(content, pos)
        end = pos + size
        if record_count < 0 or size < 0:
            raise ValueError("a block has a negative size")
        if end + _SYNC_BYTES > len(content):
            raise ValueError("it is cut off")
        if content[end : end + _SYNC_BYTES] != sync:
            raise ValueError("a block does not end where it says")
        unpacked = unpack(content[pos:end], left)
        # Every record has a status or a path, so it takes a byte at least, and a larger count is wrong.
        if record_count > len(unpacked):
            raise ValueError("a block has fewer records than it says")
        blocks.append(Block(record_count, unpacked))
        left -= _cost_of(blocks[-1])
        if left < 0:
            raise TooLargeError(f"it has too many blocks or records for a file of {max_unpacked_bytes} bytes")
        pos = end + _SYNC_BYTES
    if len(sync) != _SYNC_BYTES:
        raise ValueError("it is cut off")
    metadata = {name: value.decode(errors="replace") for name, value in raw.items()}
    return AvroFile(metadata, schema_text, tuple(blocks))


def _read_metadata(content: bytes, pos: int) -> tuple[dict[str, bytes], int]:
    metadata: dict[str, bytes] = {}
    while True:
        count, pos = read_long(content, pos)
        if count == 0:
            return metadata, pos
        if count < 0:
            count = -count
            _, pos = read_long(content, pos)
        for _ in range(count):
            name, pos = _read_bytes(content, pos)
            metadata[name.decode()], pos = _read_bytes(content, pos)


def _read_bytes(content: bytes, pos: int) -> tuple[bytes, int]:
    length, pos = read_long(content, pos)
    if length < 0 or pos + length > len(content):
        raise ValueError("it is cut off")
    return content[pos : pos + length], pos + length


def _within(unpacked: bytes, limit: int) -> bytes:
    if len(unpacked) > limit:
        raise TooLargeError(f"it unpacks to more than it may: {limit} bytes are left")
    return unpacked


def _with(make: Callable[[], Any]) -> Callable[[bytes, int], bytes]:
    """Return a function that unpacks within a limit: a small block can unpack to any size."""

    def unpack(packed: bytes, limit: int) -> bytes:
        unpacker = make()
        try:
            unpacked: bytes = unpacker.decompress(packed, limit + 1)
        except (zlib.error, lzma.LZMAError, OSError) as error:
            raise ValueError(f"a block cannot be unpacked: {error}") from error
        if not unpacker.eof and len(unpacked) <= limit:
            raise ValueError("a packed block is cut off")
        return _within(unpacked, limit)

    return unpack


def _snappy(packed: bytes, limit: int) -> bytes:
    import pyarrow as pa

    # Snappy's text starts with the unpacked length, 7 bits a byte, lowest first; Avro puts a checksum behind it.
    text = packed[:-_CHECKSUM_BYTES]
    length = 0
    for position, byte in enumerate(text[:5]):
        length |= (byte & 127) << (7 * position)
        if byte < 128:
            break
    if length > limit:
        raise TooLargeError(f"it unpacks to more than it may: {limit} bytes are left")
    try:
        unpacked: bytes = pa.Codec("snappy").decompress(text, decompressed_size=length, asbytes=True)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"a block cannot be unpacked: {error}") from error
    if zlib.crc32(unpacked).to_bytes(4, "big") != packed[-_CHECKSUM_BYTES:]:
        raise ValueError("a block does not have the checksum it says")
    return unpacked


def _zstandard(packed: bytes, limit: int) -> bytes:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            return _within(stream.read(limit + 1), limit)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"a block cannot be unpacked: {error}") from error


_CODECS: Final[Mapping[str, Callable[[bytes, int], bytes]]] = {
    "null": _within,
    "deflate": _with(lambda: zlib.decompressobj(wbits=-15)),
    "bzip2": _with(bz2.BZ2Decompressor),
    "xz": _with(lzma.LZMADecompressor),
    "snappy": _snappy,
    "zstandard": _zstandard,
}
