"""Manifest lists put together from packed lines: nothing is unpacked to records and packed again."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from isal import isal_zlib

from app.engine.model.files.manifests import ManifestFile
from app.engine.model.ids import SnapshotId
from app.formats.avro import open_avro
from app.formats.avro.types import write_long
from app.formats.manifests.lists import write_manifest_list

_SYNC_BYTES = 16
_KEPT = 200


@dataclass(frozen=True, slots=True)
class PackedList:
    """The lines of a manifest list, one after the other as Avro has them."""

    count: int
    lines: bytes

    @staticmethod
    def of(content: bytes) -> PackedList:
        """Take a file apart."""
        blocks = open_avro(content).blocks
        return PackedList(sum(block.record_count for block in blocks), b"".join(b.content for b in blocks))

    def with_first(
        self,
        manifest: ManifestFile,
        *,
        format_version: int,
        snapshot_id: SnapshotId,
        parent_id: SnapshotId | None,
        sequence_number: int,
    ) -> tuple[PackedList, bytes]:
        """Return this list behind one more manifest, and the file of that."""
        alone = write_manifest_list(
            [manifest],
            format_version=format_version,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number,
        ).content
        sync = alone[-_SYNC_BYTES:]
        header = alone[: alone.index(sync) + _SYNC_BYTES]
        grown = PackedList(self.count + 1, PackedList.of(alone).lines + self.lines)
        block = isal_zlib.compress(grown.lines, 2, -isal_zlib.MAX_WBITS)
        return grown, b"".join((header, write_long(grown.count), write_long(len(block)), block, sync))


EMPTY_LIST = PackedList(0, b"")


class PackedLists:
    """The lists that some threads read or wrote last, by location."""

    def __init__(self) -> None:
        self._kept: dict[str, PackedList] = {}
        self._lock = threading.Lock()

    def find(self, location: str) -> PackedList | None:
        """Return a list, or None if it is not kept."""
        return self._kept.get(location)

    def keep(self, location: str, found: PackedList) -> None:
        """Keep a list; the oldest goes."""
        with self._lock:
            self._kept[location] = found
            if len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
