"""Lists of files that clients made: Parquet, CSV or lines of JSON, with paths and times."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute
from pyarrow import csv, parquet

from app.engine.model.ids import Location
from app.errors import FileMissing, InvalidRequest
from app.fileio.files import FileIO, ListedFile
from app.fileio.locations import LONGEST_LOCATION
from app.fileio.tails import Tail
from app.fileio.wanted import check_wanted
from app.formats.bounds import read_bounded
from app.formats.parquet.footers import first_page, read_metadata, weight_of
from app.formats.parquet.not_parquet import NotParquetError
from app.formats.parquet.page_sizes import check_pages

PATH, TIME = "file_path", "last_modified"
"""The columns of Spark's `file_list_view`; others are not read."""
_ROWS_AT_ONCE: Final = 1_000
_HEAVIEST_FOOTER: Final = 16 << 20
_ENDINGS: Final = (".parquet", ".csv", ".json", ".ndjson", ".jsonl")


def read_file_list(files: FileIO, location: Location, max_file_bytes: int) -> Iterator[ListedFile]:
    """Yield the files that a list names, with times in epoch milliseconds; sizes are not known.

    Args:
        files: where the list is.
        location: a file, or a folder of such files, as Spark writes it.
        max_file_bytes: no larger file is read.

    Raises:
        InvalidRequest: it is not there, not one of the formats, or a row makes no sense; names the file.
        InvalidMetadata: it is larger than that.
        FilesUnavailable: the store does not answer.
        GivenUp: the client has gone.
    """
    found = [location]
    if not location.endswith(_ENDINGS) or files.find_file(location) is None:
        listed = (Location(file.location) for file in files.list_files(location))
        found = sorted(where for where in listed if _is_part(where, location))
    if not found:
        raise InvalidRequest(
            f"Invalid file-list {location}: there is no file that ends with {', '.join(_ENDINGS)}"
        )
    for where in found:
        try:
            content = read_bounded(files, where, max_file_bytes)
        except FileMissing as error:
            raise InvalidRequest(f"Invalid file-list {where}: no file is there") from error
        try:
            yield from _rows(where, content)
        except (
            pa.ArrowException,
            NotParquetError,
            OSError,
            ValueError,
            KeyError,
            TypeError,
            OverflowError,
        ) as error:
            raise InvalidRequest(
                f"Invalid file-list {where}: {PATH} and {TIME} cannot be read: {error}"
            ) from error


def _is_part(location: Location, folder: Location) -> bool:
    """Say whether a file belongs to the list: names that begin with `_` or `.` are Spark's own."""
    below = location[len(folder) :].split("/")
    return location.endswith(_ENDINGS) and not any(name.startswith(("_", ".")) for name in below)


def _rows(location: Location, content: bytes) -> Iterator[ListedFile]:
    if location.endswith(".parquet"):
        for batch in _parquet_batches(content):
            yield from _from_columns(batch)
    elif location.endswith(".csv"):
        only = csv.ConvertOptions(include_columns=[PATH, TIME])
        for batch in csv.open_csv(io.BytesIO(content), convert_options=only):
            yield from _from_columns(batch)
    else:
        # One after the other: a list of all lines would take many times as much as the file.
        for number, line in enumerate(io.BytesIO(content)):
            if number % _ROWS_AT_ONCE == 0:
                check_wanted()
            if line.strip():
                row = orjson.loads(line)
                yield _listed(row[PATH], row[TIME])


def _parquet_batches(content: bytes) -> Iterator[Any]:
    """Yield the rows of a Parquet file, a few at once: small pages can hold many long paths."""
    tail = Tail(len(content), content)
    if weight_of(tail, _HEAVIEST_FOOTER) > _HEAVIEST_FOOTER:
        raise ValueError("its footer has too many columns and row groups")
    metadata = read_metadata(tail)
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema in {PATH, TIME}:
                check_pages(content, first_page(column), column.total_compressed_size)
    file = parquet.ParquetFile(pa.BufferReader(content), metadata=metadata, read_dictionary=[PATH, TIME])
    yield from file.iter_batches(_ROWS_AT_ONCE, columns=[PATH, TIME])


def _from_columns(batch: Any) -> Iterator[ListedFile]:
    check_wanted()
    paths, times = batch.column(PATH), batch.column(TIME)
    for what, column in (("path", paths), ("time", times)):
        if pa.types.is_dictionary(column.type):
            _check_lengths(what, column.dictionary)
    if pa.types.is_timestamp(times.type):
        # To milliseconds: cut off, as Java does.
        times = times.cast(pa.timestamp("ms", times.type.tz), safe=False).cast(pa.int64())
    for path, at in zip(paths.to_pylist(), times.to_pylist(), strict=True):
        yield _listed(path, at)


def _check_lengths(what: str, texts: Any) -> None:
    """Check the texts of a dictionary before each is copied for all the rows that have it."""
    longest = pa.compute.max(pa.compute.binary_length(texts)).as_py()
    if longest is not None and longest > LONGEST_LOCATION:
        raise ValueError(f"a {what} has {longest} bytes")


def _listed(path: object, at: object) -> ListedFile:
    """Return a row; a time is epoch milliseconds, or ISO text, in UTC unless it says where."""
    if not isinstance(path, str) or not path:
        raise ValueError(f"a path is {path!r}")
    if isinstance(at, str):
        moment = datetime.fromisoformat(at)
        at = round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    if not isinstance(at, int) or isinstance(at, bool):
        raise TypeError(f"the time of {path} is {at!r}")
    return ListedFile(Location(path), 0, at)
