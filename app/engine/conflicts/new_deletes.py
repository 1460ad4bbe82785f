"""Which of the delete files that came in meanwhile apply to a given data file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from app.engine.conflicts.operations import PartitionKey
from app.engine.conflicts.scopes import comparable
from app.engine.model.delete_files import is_deletion_vector, referenced_path
from app.engine.model.ids import FieldId, Location
from app.engine.model.manifests import DataFile, FileContent, ManifestEntry
from app.engine.model.schema import Schema
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.types import NestedField, PrimitiveType
from app.engine.model.values import compare, from_bytes


class NewDeletes:
    """Delete files newer than an operation's base, found by the data file that they may apply to."""

    def __init__(self, metadata: TableMetadata, entries: Iterable[ManifestEntry]) -> None:
        self._schema = metadata.current_schema
        self._entries = tuple(entries)
        self._global: list[ManifestEntry] = []
        self._equality: dict[PartitionKey, list[ManifestEntry]] = defaultdict(list)
        self._positions: dict[PartitionKey, list[ManifestEntry]] = defaultdict(list)
        self._of_file: dict[Location, list[ManifestEntry]] = defaultdict(list)
        unpartitioned = {spec.spec_id for spec in metadata.partition_specs if spec.is_unpartitioned}
        for entry in self._entries:
            file = entry.file
            key = comparable((file.spec_id, file.partition))
            if file.content is FileContent.EQUALITY_DELETES:
                (self._global if file.spec_id in unpartitioned else self._equality[key]).append(entry)
                continue
            path = referenced_path(file)
            if path is None:
                self._positions[key].append(entry)
            else:
                self._of_file[path].append(entry)

    def all(self) -> Iterator[ManifestEntry]:
        """Yield every delete file, once."""
        yield from self._entries

    @property
    def needs_partitions(self) -> bool:
        """Whether it takes more than its path to tell what applies to a data file."""
        return bool(self._global or self._equality or self._positions)

    def doubled_vectors(self) -> Iterator[ManifestEntry]:
        """Yield the vectors of data files that got more than one."""
        for entries in self._of_file.values():
            vectors = [entry for entry in entries if is_deletion_vector(entry.file)]
            yield from vectors[1:]

    def for_path(self, path: Location) -> Iterator[ManifestEntry]:
        """Yield the position deletes and vectors that are of one data file only."""
        yield from self._of_file.get(path, ())

    def for_file(self, file: DataFile, *, with_equality: bool = True) -> Iterator[ManifestEntry]:
        """Yield the deletes that may apply to a data file which the base has."""
        key = comparable((file.spec_id, file.partition))
        yield from self.for_path(file.file_path)
        yield from self._positions.get(key, ())
        if with_equality:
            for entry in (*self._global, *self._equality.get(key, ())):
                if may_delete_rows(entry.file, file, self._schema):
                    yield entry


def may_delete_rows(deletes: DataFile, file: DataFile, schema: Schema) -> bool:
    """Tell whether equality deletes may be about rows of a data file, by the counts and bounds of both."""
    for field_id in deletes.equality_ids or ():
        column = schema.columns.get(FieldId(field_id))
        if column is not None and not _may_be_equal(deletes, file, column.field):
            return False
    return True


def _may_be_equal(deletes: DataFile, file: DataFile, field: NestedField) -> bool:
    if not isinstance(field.type, PrimitiveType):
        return True
    if _may_have_null(file, field) and _may_have_null(deletes, field):
        return True
    if _is_all_null(file, field) and _has_no_null(deletes, field):
        return False
    if _is_all_null(deletes, field) and _has_no_null(file, field):
        return False
    bounds = [
        (side or {}).get(field.id)
        for side in (file.lower_bounds, file.upper_bounds, deletes.lower_bounds, deletes.upper_bounds)
    ]
    if any(bound is None for bound in bounds):
        return True
    try:
        lower, upper, lower_delete, upper_delete = (
            from_bytes(field.type, bound) for bound in bounds if bound is not None
        )
    except ValueError:
        return True  # Bounds that say nothing keep nothing apart.
    return compare(lower_delete, upper) <= 0 and compare(lower, upper_delete) <= 0


def _count(counts: Mapping[int, int] | None, field: NestedField) -> int | None:
    return None if counts is None else counts.get(field.id)


def _may_have_null(file: DataFile, field: NestedField) -> bool:
    return not field.required and _count(file.null_value_counts, field) != 0


def _has_no_null(file: DataFile, field: NestedField) -> bool:
    return field.required or _count(file.null_value_counts, field) == 0


def _is_all_null(file: DataFile, field: NestedField) -> bool:
    nulls = _count(file.null_value_counts, field)
    return not field.required and nulls is not None and nulls == _count(file.value_counts, field)
