"""Which deletes apply to a data file: by sequence number, partition, path and values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import FLOATING_KINDS, UNORDERED_KINDS, from_bytes, is_nan
from app.engine.model.files.delete_files import DELETE_FILE_PATH_ID, is_deletion_vector, referenced_path
from app.engine.model.files.manifests import DataFile, FileContent, ManifestEntry, PartitionKey
from app.engine.model.ids import FieldId, Location
from app.engine.model.partition_spec import PartitionSpec, unpartitioned_specs
from app.engine.model.schema import Schema

Value = TypeVar("Value")


class DeleteIndex:
    """Delete files, found by the data file that they may apply to.

    One is only left out if what is known of it proves that it deletes no row of the data file.

    Spec: #scan-planning
    """

    def __init__(
        self, entries: Iterable[ManifestEntry], specs: Iterable[PartitionSpec], schemas: Iterable[Schema]
    ) -> None:
        """Sort delete files by what they are about. The schemas are the table's, the newest last."""
        unpartitioned = unpartitioned_specs(specs)
        everywhere: list[ManifestEntry] = []
        equality: dict[PartitionKey, list[ManifestEntry]] = defaultdict(list)
        positions: dict[PartitionKey, list[ManifestEntry]] = defaultdict(list)
        of_path: dict[Location, list[ManifestEntry]] = defaultdict(list)
        vectors: dict[Location, list[ManifestEntry]] = defaultdict(list)
        self.count = 0
        for entry in entries:
            self.count += 1
            file = entry.file
            if file.content is FileContent.EQUALITY_DELETES:
                (everywhere if file.spec_id in unpartitioned else equality[file.partition_key]).append(entry)
                continue
            path = referenced_path(file)
            if path is None:
                positions[file.partition_key].append(entry)
            else:
                (vectors if is_deletion_vector(file) else of_path)[path].append(entry)
        may_delete_rows = _RowOverlap(schemas)
        self._everywhere = _ByAge(everywhere, may_delete_rows, strictly_older=True)
        self._equality = {
            key: _ByAge(found, may_delete_rows, strictly_older=True) for key, found in equality.items()
        }
        self._positions = {key: _ByAge(found, _may_name) for key, found in positions.items()}
        self._of_path = {path: _ByAge(found, _always) for path, found in of_path.items()}
        self._vectors = {path: _ByAge(found, _always) for path, found in vectors.items()}

    def deletes_of(self, file: DataFile, data_sequence_number: int) -> Sequence[ManifestEntry]:
        """Return the deletes that apply to a data file of an age, always in the same order."""
        if not self.count:
            return ()
        path, place, age = file.file_path, file.partition_key, data_sequence_number
        found = self._everywhere.applying(file, age)
        if place in self._equality:
            found += self._equality[place].applying(file, age)
        vectors = self._vectors[path].applying(file, age) if path in self._vectors else []
        if vectors:
            # A deletion vector has taken in what position deletes said before it, and there is only one.
            return [*found, vectors[-1]]
        if place in self._positions:
            found += self._positions[place].applying(file, age)
        if path in self._of_path:
            found += self._of_path[path].applying(file, age)
        return found

    @property
    def needs_partitions(self) -> bool:
        """Whether there are deletes that are not found by the path of a data file alone."""
        return bool(self._everywhere.entries or self._equality or self._positions)

    def deletes_of_path(self, path: Location) -> Iterator[ManifestEntry]:
        """Yield the position deletes and vectors of this data file only, of all ages."""
        for by_path in (self._of_path, self._vectors):
            if path in by_path:
                yield from by_path[path].entries

    def surplus_vectors(self) -> Iterator[ManifestEntry]:
        """Yield surplus deletion vectors: all but the first of each data file."""
        for vectors in self._vectors.values():
            yield from vectors.entries[1:]


class _ByAge:
    """Delete files of one place, by data sequence number."""

    def __init__(
        self,
        entries: Iterable[ManifestEntry],
        may_apply: Callable[[DataFile, DataFile], bool],
        *,
        strictly_older: bool = False,
    ) -> None:
        self.entries = sorted(
            entries, key=lambda entry: (entry.data_sequence_number or 0, entry.file.file_path)
        )
        self._numbers = [entry.data_sequence_number or 0 for entry in self.entries]
        self._may_apply = may_apply
        self._first_after = bisect_right if strictly_older else bisect_left

    def applying(self, file: DataFile, data_sequence_number: int) -> list[ManifestEntry]:
        if not self.entries:
            return []
        first = self._first_after(self._numbers, data_sequence_number)
        return [delete for delete in self.entries[first:] if self._may_apply(delete.file, file)]


def _always(_delete: DataFile, _file: DataFile) -> bool:
    return True


def _may_name(delete: DataFile, file: DataFile) -> bool:
    """Return whether position deletes may be about a data file, by the bounds of their paths."""
    path = file.file_path.encode()
    lower = (delete.lower_bounds or {}).get(DELETE_FILE_PATH_ID)
    upper = (delete.upper_bounds or {}).get(DELETE_FILE_PATH_ID)
    return (lower is None or bytes(lower) <= path) and (upper is None or path <= bytes(upper))


@dataclass(frozen=True, slots=True)
class _EqualityColumn:
    """A column whose counts and bounds can prove that two files have no value in common."""

    id: FieldId
    kind: PrimitiveType
    is_required: bool


class _RowOverlap:
    """Whether equality deletes may delete a row of a data file, by counts and bounds."""

    def __init__(self, schemas: Iterable[Schema]) -> None:
        self._schemas = tuple(schemas)
        self._columns: dict[int, _EqualityColumn | None] = {}

    def __call__(self, delete: DataFile, file: DataFile) -> bool:
        for field_id in delete.equality_ids or ():
            if field_id not in self._columns:
                self._columns[field_id] = _equality_column(self._schemas, FieldId(field_id))
            column = self._columns[field_id]
            if column is not None and not _may_be_equal(column, delete, file):
                return False
        return True


def _equality_column(schemas: Sequence[Schema], field_id: FieldId) -> _EqualityColumn | None:
    """Return a column of the table; None if its counts and bounds prove nothing."""
    found = [schema.columns[field_id] for schema in schemas if field_id in schema.columns]
    if not found or any(not parent.field.required for column in found for parent in column.outer):
        # Some writers count nulls only where there is a struct around them.
        return None
    # A column that was widened reads all its old bounds by its newest type.
    kind = found[-1].field.type
    if not isinstance(kind, PrimitiveType) or kind.kind == "uuid" or kind.kind in UNORDERED_KINDS:
        # Early writers put the bounds of uuids in another order.
        return None
    return _EqualityColumn(field_id, kind, all(column.field.required for column in found))


def with_proofs_only(delete: DataFile, schema: Schema) -> DataFile:
    """Return an equality delete file with those metrics that hold for the rows it deletes.

    These are equal to its own rows in the equality columns, and in no other column.
    """
    known: set[int] = set()
    for field_id in delete.equality_ids or ():
        column = _equality_column((schema,), FieldId(field_id))
        if column is not None and (column.kind.kind not in FLOATING_KINDS or _has_no_nan(delete, column)):
            known.add(field_id)

    def only_known(metrics: Mapping[int, Value] | None) -> dict[int, Value]:
        return {field_id: metrics[field_id] for field_id in known if metrics and field_id in metrics}

    return replace(
        delete,
        value_counts=only_known(delete.value_counts),
        null_value_counts=only_known(delete.null_value_counts),
        nan_value_counts=only_known(delete.nan_value_counts),
        lower_bounds=only_known(delete.lower_bounds),
        upper_bounds=only_known(delete.upper_bounds),
    )


def _may_be_equal(column: _EqualityColumn, delete: DataFile, file: DataFile) -> bool:
    nulls = (_nulls(delete, column), _nulls(file, column))
    if _NONE not in nulls:
        return True
    if column.kind.kind in FLOATING_KINDS and not (_has_no_nan(delete, column) and _has_no_nan(file, column)):
        return True
    if _ALL in nulls:
        return False
    try:
        lows = (_bound(delete.lower_bounds, column), _bound(file.lower_bounds, column))
        highs = (_bound(delete.upper_bounds, column), _bound(file.upper_bounds, column))
    except ValueError:
        return True  # no value of the type that the column now has
    return None in lows or None in highs or bool(lows[0] <= highs[1] and lows[1] <= highs[0])


_NONE, _SOME, _ALL = "none", "some", "all"


def _nulls(file: DataFile, column: _EqualityColumn) -> str:
    """Return how many of a column's values may be null; counts that are missing leave it open."""
    nulls = (file.null_value_counts or {}).get(column.id)
    if nulls == 0 or (nulls is None and column.is_required):
        return _NONE
    values = (file.value_counts or {}).get(column.id)
    return _ALL if nulls is not None and values is not None and nulls >= values else _SOME


def _has_no_nan(file: DataFile, column: _EqualityColumn) -> bool:
    return (file.nan_value_counts or {}).get(column.id) == 0


def _bound(bounds: Any, column: _EqualityColumn) -> Any:
    content = (bounds or {}).get(column.id)
    if content is None:
        return None
    value = from_bytes(column.kind, bytes(content))
    # As a number: some engines take -0.0 for 0.0.
    return None if is_nan(value) else value
