"""JSON of appends by reference: the files, and what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from app.api.bodies.json_body import MOST_COLUMNS, ExtensionBody
from app.api.bodies.table.commits import Requirements
from app.catalog.appends import AppendRequest, WantedFile
from app.engine.model.document import FIRST_ERROR, INT, Bool, Int, Long
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import FieldId, Location, SortOrderId, SpecId
from app.engine.model.refs import MAIN_BRANCH
from app.errors import InvalidDataFile, InvalidRequest

_FORMATS = frozenset({"PARQUET", "ORC", "AVRO"})
_NOT_OF_DATA_FILES = (
    "key_metadata",
    "first_row_id",
    "equality_ids",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


class CountsBody(ExtensionBody):
    keys: Annotated[tuple[Annotated[FieldId, INT], ...], MOST_COLUMNS]
    values: tuple[Long, ...]


class BoundsBody(ExtensionBody):
    keys: Annotated[tuple[Annotated[FieldId, INT], ...], MOST_COLUMNS]
    values: tuple[str, ...]


class DataFileBody(ExtensionBody):
    spec_id: Annotated[SpecId, INT]
    partition: tuple[Any, ...] = ()
    content: Literal["data", "position-deletes", "equality-deletes"]
    file_path: Annotated[Location, Field(min_length=1)]
    file_format: str
    file_size_in_bytes: Annotated[Long, Field(gt=0)]
    record_count: Annotated[Long, Field(ge=0)]
    split_offsets: tuple[Annotated[Long, Field(ge=0)], ...] | None = None
    sort_order_id: Annotated[SortOrderId, INT] | None = None
    column_sizes: CountsBody | None = None
    value_counts: CountsBody | None = None
    null_value_counts: CountsBody | None = None
    nan_value_counts: CountsBody | None = None
    lower_bounds: BoundsBody | None = None
    upper_bounds: BoundsBody | None = None
    key_metadata: Any = None
    first_row_id: Any = None
    equality_ids: Any = None
    referenced_data_file: Any = None
    content_offset: Any = None
    content_size_in_bytes: Any = None

    def wanted(self) -> WantedFile:
        """Return the file for the use case; raises `InvalidDataFile`."""
        path = self.file_path
        if self.content != "data":
            raise InvalidDataFile(path, f"its content is {self.content}, and only data can be appended")
        if self.file_format.upper() not in _FORMATS:
            raise InvalidDataFile(path, "its file-format is not parquet, orc or avro")
        for name in _NOT_OF_DATA_FILES:
            if getattr(self, name) is not None:
                raise InvalidDataFile(
                    path, f"it has {name.replace('_', '-')}, which a file to be appended cannot have"
                )
        offsets = self.split_offsets
        if offsets is not None and list(offsets) != sorted(offsets):
            raise InvalidDataFile(path, "its split-offsets are not in ascending order")
        described = DataFile(
            content=FileContent.DATA,
            file_path=path,
            file_format=self.file_format.upper(),
            spec_id=self.spec_id,
            partition=(),
            record_count=self.record_count,
            file_size_in_bytes=self.file_size_in_bytes,
            column_sizes=_counts(path, "column-sizes", self.column_sizes),
            value_counts=_counts(path, "value-counts", self.value_counts),
            null_value_counts=_counts(path, "null-value-counts", self.null_value_counts),
            nan_value_counts=_counts(path, "nan-value-counts", self.nan_value_counts),
            lower_bounds=_bounds(path, "lower-bounds", self.lower_bounds),
            upper_bounds=_bounds(path, "upper-bounds", self.upper_bounds),
            split_offsets=offsets,
            sort_order_id=self.sort_order_id,
        )
        return WantedFile(path, self.spec_id, {}, described, self.partition)


class AppendedFileBody(ExtensionBody):
    file_path: Annotated[Location, Field(min_length=1)] | None = None
    spec_id: Int | None = None
    partition: dict[str, Any] | None = None
    data_file: DataFileBody | None = None

    def wanted(self, place: int) -> WantedFile:
        """Return the file for the use case; raises `InvalidRequest` and `InvalidDataFile`."""
        if (self.file_path is None) == (self.data_file is None):
            raise InvalidRequest(f"Invalid body: files[{place}] needs either file-path or data-file")
        if self.data_file is not None:
            if self.spec_id is not None or self.partition is not None:
                raise InvalidRequest(
                    f"Invalid body: files[{place}] has a data-file, which says spec-id and partition itself"
                )
            return self.data_file.wanted()
        assert self.file_path is not None
        spec_id = None if self.spec_id is None else SpecId(self.spec_id)
        return WantedFile(self.file_path, spec_id, self.partition or {})


class AppendFilesBody(ExtensionBody):
    files: Annotated[tuple[AppendedFileBody, ...], FIRST_ERROR, Field(min_length=1)]
    branch: Annotated[str, Field(min_length=1)] = MAIN_BRANCH
    summary: dict[str, str] = Field(default_factory=dict)
    allow_duplicates: Bool = False
    partition_from_path: Bool = False
    requirements: Requirements | None = None

    def request(self) -> AppendRequest:
        """Return the request for the use case; raises `InvalidRequest` and `InvalidDataFile`."""
        return AppendRequest(
            [file.wanted(place) for place, file in enumerate(self.files)],
            self.branch,
            self.summary,
            self.allow_duplicates,
            self.partition_from_path,
            self.requirements or (),
        )


def _counts(path: str, name: str, given: CountsBody | None) -> dict[int, int] | None:
    return None if given is None else dict(_pairs(path, name, given.keys, given.values))


def _bounds(path: str, name: str, given: BoundsBody | None) -> dict[int, bytes] | None:
    if given is None:
        return None
    try:
        return {key: bytes.fromhex(value) for key, value in _pairs(path, name, given.keys, given.values)}
    except ValueError as error:
        raise InvalidDataFile(path, f"its {name} are not the hexadecimal digits of bytes") from error


def _pairs(path: str, name: str, keys: tuple[int, ...], values: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
    """Yield keys and values one by one, so that other threads run: see `MOST_COLUMNS`."""
    if len(keys) != len(values):
        raise InvalidDataFile(path, f"its {name} have {len(keys)} keys and {len(values)} values")
    seen: set[int] = set()
    for key, value in zip(keys, values, strict=True):
        if key in seen:
            raise InvalidDataFile(path, f"its {name} have a field id twice")
        seen.add(key)
        yield key, value
