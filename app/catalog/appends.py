"""Appending files that are in storage already: looked at first, then landed with others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, Final

from app.catalog.commits.appends import Appended, AppendedByReference
from app.catalog.commits.landing import Landing
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.locations import check_location
from app.catalog.context.threads.side_work import do_all_in
from app.database.connections.clock import MAY_BE_OFF_MS
from app.engine.appends.appended_files import AppendedFile, ParquetFile, ReadyFile
from app.engine.change.requirements import Requirement
from app.engine.model.files.manifests import DataFile
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SpecId
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.table_metadata import TableMetadata
from app.errors import FileMissing, InvalidDataFile, InvalidLocation, InvalidRequest
from app.fileio.locations import place_of
from app.fileio.tails import read_tail
from app.formats.parquet.footer_weights import WEIGHT_OF_A_PART
from app.formats.parquet.footers import footer_bytes, read_footer, weight_of
from app.formats.parquet.not_parquet import NotParquetError

MOST_FILES: Final = 1_000
"""How many files one request may append."""
MOST_FOOTER_BYTES: Final = 64 << 20
"""How much one request may have read of footers in all, and how much they may weigh together."""
_FIRST_LOOK_BYTES: Final = 64 << 10
"""Most footers are smaller, and are read in one request to the store."""
_THREADS: Final = 8
_FEW: Final = 10
"""So many described files are fitted to the table at once."""
_RESERVED_KEYS: Final = frozenset({"operation", "changed-partition-count"})
_RESERVED_PREFIXES: Final = ("added-", "deleted-", "removed-", "total-")
_MOST_SUMMARY_KEYS: Final = 100
_MOST_SUMMARY_TEXT: Final = 10_000


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file of an append request: a path, or a data file that the client has described."""

    path: Location
    spec_id: SpecId | None = None
    partition: Mapping[str, Any] = field(default_factory=dict)
    """Values by the names of the spec's fields, in single-value JSON."""
    described: DataFile | None = None
    described_partition: tuple[Any, ...] = ()
    """The partition of the described file, in single-value JSON."""


@dataclass(frozen=True, slots=True)
class AppendRequest:
    """What one request wants appended."""

    files: Sequence[WantedFile]
    branch: str = MAIN_BRANCH
    summary: Mapping[str, str] = field(default_factory=dict)
    allow_duplicates: bool = False
    partition_from_path: bool = False
    requirements: Sequence[Requirement] = ()


def begin_append(
    catalog: Catalog, identifier: TableIdentifier, request: AppendRequest, asks_as: str | None = None
) -> Landing[TableMetadata, Appended]:
    """Look at the files, and stand in the table's line; the caller finishes, or leaves.

    Those who stand there together land as one snapshot.

    Args:
        asks_as: what it is called in the table's queue, if it has to ask for the slots of others: `Landing.finish`
            then raises `Reserved`.

    Raises:
        NoSuchTable: no table has this name.
        InvalidRequest: there are too many files, or the summary has a key that the server sets.
        InvalidLocation: a file is outside the places that the warehouse may use.
        InvalidDataFile: a file is not there, cannot be read, or does not fit the table.
        NotSupported: the table is encrypted.
        FilesUnavailable: the store does not answer; nothing was changed.
    """
    catalog.permit("append_files", identifier)
    _check(request)
    looked_ms = catalog.now_ms() - MAY_BE_OFF_MS  # surely before: deletions end by the database's own clock
    intention = AppendedByReference(
        identifier,
        request.branch,
        _Looks(catalog, partition_from_path=request.partition_from_path).look_at_all(request.files),
        request.requirements,
        tuple(sorted(request.summary.items())),
        request.allow_duplicates,
        looked_ms,
        asks_as,
    )
    if len(request.files) > _FEW or any(file.described is None for file in request.files):
        # What takes a while is done before others may have to wait for it.
        _, metadata = catalog.read_now(TABLES, identifier)
        intention.fit(metadata)
    return Landing(catalog, intention)


def _check(request: AppendRequest) -> None:
    if len(request.files) > MOST_FILES:
        raise InvalidRequest(
            f"Cannot append {len(request.files)} files in one request: at most {MOST_FILES} can be"
        )
    places = set()
    for file in request.files:
        place = place_of(file.path)
        if place in places and not request.allow_duplicates:
            raise InvalidDataFile(file.path, "the request names it twice")
        places.add(place)
    for key in request.summary:
        if key in _RESERVED_KEYS or key.startswith(_RESERVED_PREFIXES):
            raise InvalidRequest(f"Cannot set {key[:100]!r} in the summary: the server counts it itself")
    if len(request.summary) > _MOST_SUMMARY_KEYS or _length(request.summary) > _MOST_SUMMARY_TEXT:
        raise InvalidRequest(
            f"The summary may have {_MOST_SUMMARY_KEYS} keys and {_MOST_SUMMARY_TEXT} characters at most"
        )


def _length(summary: Mapping[str, str]) -> int:
    return sum(len(key) + len(value) for key, value in summary.items())


class _Looks:
    """Looks at the files of one request, many at a time and within a number of bytes."""

    def __init__(self, catalog: Catalog, *, partition_from_path: bool) -> None:
        self._catalog = catalog
        self._partition_from_path = partition_from_path
        self._left_bytes = MOST_FOOTER_BYTES
        self._lock = Lock()

    def look_at_all(self, files: Sequence[WantedFile]) -> list[AppendedFile]:
        """Return what is known of each file; the first that is wrong is named."""
        for file in files:
            check_location(self._catalog, file.path, "location of a data file")
        if len(files) == 1:
            return [self._look_at(files[0])]
        found: dict[int, AppendedFile] = {}

        def look_at(place: int) -> None:
            found[place] = self._look_at(files[place])

        with ThreadPoolExecutor(min(_THREADS, len(files)), "data files") as pool:
            # Each thread gives up when the client of this request goes.
            do_all_in(pool, [partial(copy_context().run, look_at, place) for place in range(len(files))])
        return [found[place] for place in range(len(files))]

    def _look_at(self, file: WantedFile) -> AppendedFile:
        look: Callable[[WantedFile], AppendedFile] = (
            self._read_footer if file.described is None else self._check_size
        )
        try:
            return look(file)
        except FileMissing as error:
            raise InvalidDataFile(file.path, "there is no such file") from error
        except NotParquetError as error:
            raise InvalidDataFile(file.path, str(error)) from error
        except InvalidLocation as error:
            raise InvalidDataFile(file.path, str(error)) from error

    def _read_footer(self, file: WantedFile) -> AppendedFile:
        tail = read_tail(self._catalog.files, file.path, _FIRST_LOOK_BYTES)
        size_bytes = footer_bytes(tail)
        self._spend(file.path, size_bytes)
        if size_bytes > len(tail.content):
            tail = read_tail(self._catalog.files, file.path, size_bytes)
        self._spend(file.path, weight_of(tail, MOST_FOOTER_BYTES) - size_bytes)
        return ParquetFile(
            file.path, file.spec_id, read_footer(tail), file.partition, self._partition_from_path
        )

    def _spend(self, path: Location, size_bytes: int) -> None:
        with self._lock:
            self._left_bytes -= size_bytes
            if self._left_bytes < 0:
                raise InvalidDataFile(
                    path,
                    f"the footers of one request may have {MOST_FOOTER_BYTES} bytes at most, together, where "
                    f"each column of a row group counts as {WEIGHT_OF_A_PART} bytes at least",
                )

    def _check_size(self, file: WantedFile) -> AppendedFile:
        assert file.described is not None
        found = read_tail(self._catalog.files, file.path, 0).size_bytes
        said = file.described.file_size_in_bytes
        if found != said:
            raise InvalidDataFile(file.path, f"it has {found} bytes, and file-size-in-bytes says {said}")
        return ReadyFile(file.path, file.spec_id, file.described_partition, file.described)
