"""Which deletes apply to a data file: by sequence number and partition, by path, by the values deleted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from app.engine.model.delete_files import DELETE_FILE_PATH_ID, is_deletion_vector, referenced_path
from app.engine.model.ids import FieldId, SpecId
from app.engine.model.manifests import DataFile, FileContent, ManifestEntry
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Column, Schema
from app.engine.model.types import PrimitiveType
from app.engine.model.values import FLOATING_KINDS, from_bytes, is_nan, order_key

Partition = tuple[Any, ...]
_PartitionKey = tuple[SpecId, Partition]


class DeleteIndex:
    """The delete files of a scan, found by the data file that they are about.

    Spec: #scan-planning
    """

    def __init__(
        self, entries: Iterable[ManifestEntry], specs: Iterable[PartitionSpec], schemas: Iterable[Schema]
    ) -> None:
        unpartitioned = {spec.spec_id for spec in specs if spec.is_unpartitioned}
        may_delete_rows = _RowOverlap(schemas)
        everywhere: list[ManifestEntry] = []
        equality: dict[_PartitionKey, list[ManifestEntry]] = defaultdict(list)
        positions: dict[_PartitionKey, list[ManifestEntry]] = defaultdict(list)
        of_path: dict[str, list[ManifestEntry]] = defaultdict(list)
        vectors: dict[str, list[ManifestEntry]] = defaultdict(list)
        self.count = 0
        for entry in entries:
            self.count += 1
            file = entry.file
            if file.content is FileContent.EQUALITY_DELETES:
                if file.spec_id in unpartitioned:
                    everywhere.append(entry)
                else:
                    equality[file.spec_id, partition_key(file.partition)].append(entry)
                continue
            path = referenced_path(file)
            if path is None:
                positions[file.spec_id, partition_key(file.partition)].append(entry)
            elif is_deletion_vector(file):
                vectors[path].append(entry)
            else:
                of_path[path].append(entry)
        self._everywhere = _ByAge(everywhere, may_delete_rows, strictly_older=True)
        self._equality = {
            key: _ByAge(found, may_delete_rows, strictly_older=True) for key, found in equality.items()
        }
        self._positions = {key: _ByAge(found, _may_name) for key, found in positions.items()}
        self._of_path = {path: _ByAge(found, _always) for path, found in of_path.items()}
        self._vectors = {path: _ByAge(found, _always) for path, found in vectors.items()}

    def deletes_of(self, entry: ManifestEntry) -> Sequence[DataFile]:
        """Return the delete files that apply to a data file, in an order that is always the same."""
        if not self.count:
            return ()
        file, age = entry.file, entry.data_sequence_number or 0
        place = (file.spec_id, partition_key(file.partition))
        found = self._everywhere.applying(file, age)
        if place in self._equality:
            found += self._equality[place].applying(file, age)
        vectors = self._vectors[file.file_path].applying(file, age) if file.file_path in self._vectors else []
        if vectors:
            # A deletion vector has taken in what position deletes said before it, and there is only one.
            return [*found, vectors[-1]]
        if place in self._positions:
            found += self._positions[place].applying(file, age)
        if file.file_path in self._of_path:
            found += self._of_path[file.file_path].applying(file, age)
        return found


class _ByAge:
    """Delete files of one place, by data sequence number."""

    def __init__(
        self,
        entries: Iterable[ManifestEntry],
        may_apply: Callable[[DataFile, DataFile], bool],
        *,
        strictly_older: bool = False,
    ) -> None:
        ordered = sorted(entries, key=lambda entry: (entry.data_sequence_number or 0, entry.file.file_path))
        self._numbers = [entry.data_sequence_number or 0 for entry in ordered]
        self._files = [entry.file for entry in ordered]
        self._may_apply = may_apply
        self._first_after = bisect_right if strictly_older else bisect_left

    def applying(self, file: DataFile, data_sequence_number: int) -> list[DataFile]:
        if not self._files:
            return []
        first = self._first_after(self._numbers, data_sequence_number)
        return [delete for delete in self._files[first:] if self._may_apply(delete, file)]


def partition_key(partition: Partition) -> Partition:
    """Return what is equal for equal partitions: to Python NaN is not itself, and -0.0 is 0.0."""
    if any(isinstance(value, float) for value in partition):
        return tuple(order_key(value) for value in partition)
    return partition


def _always(_delete: DataFile, _file: DataFile) -> bool:
    return True


def _may_name(delete: DataFile, file: DataFile) -> bool:
    """Tell whether position deletes may be about a data file, by the bounds of their paths."""
    path = file.file_path.encode()
    lower = (delete.lower_bounds or {}).get(DELETE_FILE_PATH_ID)
    upper = (delete.upper_bounds or {}).get(DELETE_FILE_PATH_ID)
    return (lower is None or bytes(lower) <= path) and (upper is None or path <= bytes(upper))


class _RowOverlap:
    """Tells whether equality deletes may delete a row of a data file, by the bounds and counts of their columns."""

    def __init__(self, schemas: Iterable[Schema]) -> None:
        # A column that was widened reads all its old bounds by its newest type, which comes last.
        self._columns: dict[FieldId, Column] = {}
        for schema in schemas:
            self._columns.update(schema.columns)

    def __call__(self, delete: DataFile, file: DataFile) -> bool:
        return all(self._may_equal(FieldId(each), delete, file) for each in delete.equality_ids or ())

    def _may_equal(self, field_id: FieldId, delete: DataFile, file: DataFile) -> bool:
        column = self._columns.get(field_id)
        kind = column.field.type if column is not None else None
        # Early writers put the bounds of uuids in another order.
        if column is None or not isinstance(kind, PrimitiveType) or kind.kind == "uuid":
            return True
        if _may_lack_struct(column):
            # Some writers count nulls only where there is a struct around them.
            return True
        delete_nulls, file_nulls = (_nulls(each, field_id) for each in (delete, file))
        if delete_nulls is not _NONE and file_nulls is not _NONE:
            return True
        if kind.kind in FLOATING_KINDS and not all(_has_no_nan(each, field_id) for each in (delete, file)):
            return True
        if (delete_nulls is _ALL and file_nulls is _NONE) or (file_nulls is _ALL and delete_nulls is _NONE):
            return False
        try:
            lows, highs = (
                [_bound(bounds, field_id, kind) for bounds in pair]
                for pair in (
                    (delete.lower_bounds, file.lower_bounds),
                    (delete.upper_bounds, file.upper_bounds),
                )
            )
        except ValueError:
            return True  # no value of the type that the column now has
        if None in lows or None in highs:
            return True
        return bool(lows[0] <= highs[1] and lows[1] <= highs[0])


_NONE, _SOME, _ALL = "none", "some", "all"


def _nulls(file: DataFile, field_id: FieldId) -> str:
    """Return how many of a column's values may be null; counts that are missing leave it open."""
    nulls = (file.null_value_counts or {}).get(field_id)
    if nulls == 0:
        return _NONE
    values = (file.value_counts or {}).get(field_id)
    return _ALL if nulls is not None and values is not None and nulls >= values else _SOME


def _may_lack_struct(column: Column) -> bool:
    place = column.parent
    while place is not None:
        if not place.field.required:
            return True
        place = place.parent
    return False


def _has_no_nan(file: DataFile, field_id: FieldId) -> bool:
    return (file.nan_value_counts or {}).get(field_id) == 0


def _bound(bounds: Any, field_id: FieldId, kind: PrimitiveType) -> Any:
    content = (bounds or {}).get(field_id)
    if content is None:
        return None
    value = from_bytes(kind, bytes(content))
    return None if is_nan(value) else order_key(value)
