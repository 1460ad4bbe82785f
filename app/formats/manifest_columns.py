"""A parsed manifest as columns: little in memory, filtered without touching the entries that go."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.partition_spec import number_fields
from app.errors import InvalidMetadata
from app.formats.avro_files import AvroFile, open_avro
from app.formats.entry_layout import (
    ENTRY_FIELDS,
    FIRST_ROW_ID,
    PARTITION,
    RECORD_COUNT,
    STATUS,
    EntryLayout,
    layout_of,
)

Partition = tuple[Any, ...]


class ManifestColumns(Sequence[ManifestEntry]):
    """The entries of one manifest, in their order; each is made when it is asked for.

    Kept are the unpacked records, where each starts, and what nearly every question begins with: status and
    partition. Partitions are numbered: thousands of entries mostly have a few of them between them.
    """

    def __init__(self, manifest: ManifestFile, content: bytes) -> None:
        """Parse a manifest.

        Raises:
            InvalidMetadata: the bytes are no manifest, or contradict the list; names the file.
        """
        self._manifest = manifest
        try:
            file = open_avro(content)
            self._layout = layout_of(file.schema_text)
            self._read(file)
        except IndexError as error:
            raise self._invalid("it is cut off") from error
        except ValueError as error:
            raise self._invalid(error) from error

    def _read(self, file: AvroFile) -> None: ...
