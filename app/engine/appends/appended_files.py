"""Files to be appended: what is known of each, and which data file it becomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.engine.appends.columns import MappedColumns, map_columns
from app.engine.appends.footers import Footer
from app.engine.appends.metrics import bounds_hold, file_metrics
from app.engine.appends.name_mapping import NAME_MAPPING
from app.engine.appends.partitions import UNKNOWN, PartitionRules, SourceFacts
from app.engine.model.data_types.json_values import from_json_value
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.data_types.values import FLOATING_KINDS, UNORDERED_KINDS, from_bytes, is_nan
from app.engine.model.document import MAX_LONG
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.files.partition_values import schema_with_sources
from app.engine.model.ids import FieldId, Location, SortOrderId, SpecId
from app.engine.model.schema import Column, Schema
from app.engine.model.sort_order import UNSORTED_ORDER_ID
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidDataFile

_SHORTEST_CUT: Final = 1
"""Tables may ask for bounds as short as that."""
_SEVERAL_ORDERS: Final = UNORDERED_KINDS | {"uuid"}
"""Their bounds may be in any order: early writers compared uuids in another one."""
_MOST_ROWS: Final = 1 << 45
"""Of one file: the rows of a quarter of a million such files can be counted in one manifest."""


@dataclass(frozen=True)
class AppendedFile(ABC):
    """A file that is to be appended, before it is known to what exactly."""

    path: Location
    spec_id: SpecId | None
    """None for the table's default."""

    @abstractmethod
    def data_file(self, metadata: TableMetadata) -> DataFile:
        """Return the data file that it is in a table.

        Raises:
            InvalidDataFile: it does not fit the table.
        """

    def needs_name_mapping(self, metadata: TableMetadata) -> bool:  # noqa: ARG002 - most files have ids
        """Say whether readers need a name mapping for it that the table does not have."""
        return False

    def rules(self, metadata: TableMetadata) -> tuple[SpecId, PartitionRules]:
        """Return the spec that it is partitioned by, and what its partition values must be like."""
        spec_id = metadata.default_spec_id if self.spec_id is None else self.spec_id
        spec = metadata.find_spec(spec_id)
        if spec is None:
            raise InvalidDataFile(self.path, f"the table has no partition spec {spec_id}")
        return spec_id, PartitionRules(spec, schema_with_sources(metadata, spec))

    def checked_rows(self, count: int) -> int:
        """Return the number of its rows, if it can be that; raises `InvalidDataFile`."""
        if not 0 <= count <= _MOST_ROWS:
            raise InvalidDataFile(self.path, f"it is said to have {count} rows")
        return count


@dataclass(frozen=True)
class ParquetFile(AppendedFile):
    """A Parquet file with its footer."""

    footer: Footer
    partition: Mapping[str, Any]
    """Values that are given, by the names of the spec's fields, in single-value JSON."""
    partition_from_path: bool

    def data_file(self, metadata: TableMetadata) -> DataFile:
        """Return the data file, with metrics as the table wants them."""
        columns = map_columns(self.path, self.footer, metadata)
        schema = metadata.current_schema
        spec_id, rules = self.rules(metadata)

        def facts_of(field_id: FieldId) -> SourceFacts:
            leaf = columns.leaves.get(field_id)
            if leaf is not None:
                facts = leaf.facts
                return SourceFacts(facts.value_count, facts.null_count, facts.lower, facts.upper)
            column = schema.columns.get(field_id)
            if column is None:
                return UNKNOWN
            kind, default = column.field.type, column.field.initial_default
            try:
                constant = from_json_value(kind, default) if isinstance(kind, PrimitiveType) else None
            except ValueError as error:  # of another catalog's table
                raise InvalidDataFile(
                    self.path,
                    f"it has no column {column.name}, whose initial default makes no sense: {error}",
                ) from error
            return SourceFacts(constant=constant, is_absent=True)

        given = self._in_path(spec_id, rules, columns, schema) if self.partition_from_path else {}
        given |= rules.named(self.path, self.partition)
        partition = rules.completed(self.path, given, facts_of)
        rules.check(self.path, partition, facts_of)
        for field_id in rules.identity_sources(partition):
            columns.missing.pop(field_id, None)
        for name in columns.missing.values():
            raise InvalidDataFile(self.path, f"it has no column {name}, which the table requires")
        return DataFile(
            content=FileContent.DATA,
            file_path=self.path,
            file_format="PARQUET",
            spec_id=spec_id,
            partition=partition,
            record_count=self.checked_rows(self.footer.record_count),
            file_size_in_bytes=self.footer.file_size_in_bytes,
            split_offsets=self.footer.split_offsets,
            **file_metrics(columns, metadata),
        )

    def _in_path(
        self, spec_id: SpecId, rules: PartitionRules, columns: MappedColumns, schema: Schema
    ) -> dict[str, Any]:
        """Return the values in its path; raises `InvalidDataFile` if one would be lost."""
        absent = {
            field.name: field.id
            for field in schema.fields
            if isinstance(field.type, PrimitiveType) and field.id not in columns.leaves
        }
        lost = rules.lost_in_path(self.path, absent, self.partition)
        if lost is not None:
            raise InvalidDataFile(
                self.path,
                f"its folder gives column {lost} a value that readers would not find: the file does not have the "
                f"column, and partition spec {spec_id} has no identity field {lost} of it. Give another spec-id",
            )
        return rules.in_path(self.path)

    def needs_name_mapping(self, metadata: TableMetadata) -> bool:
        """Say whether it has no field ids, and the table no name mapping."""
        return not self.footer.has_field_ids and NAME_MAPPING not in metadata.properties


@dataclass(frozen=True)
class ReadyFile(AppendedFile):
    """A data file that another program has described, as scan planning describes them."""

    partition: tuple[Any, ...]
    """The values of the spec's fields in their order, in single-value JSON."""
    described: DataFile
    """All the rest of it."""

    def data_file(self, metadata: TableMetadata) -> DataFile:
        """Return the data file as it was described, once all of it fits the table."""
        path, file = self.path, self.described
        spec_id, rules = self.rules(metadata)
        partition = rules.listed(path, self.partition)
        known = self._known(metadata)
        self._check_counts(known)
        bounds = self._bounds(known)
        self._check_sense(known, bounds)
        if file.sort_order_id is not None:
            self._check_sort_order(metadata, file.sort_order_id)

        def facts_of(field_id: FieldId) -> SourceFacts:
            lower, upper = bounds.get(field_id, (None, None))
            values, nulls = file.value_counts or {}, file.null_value_counts or {}
            return SourceFacts(
                values.get(field_id), nulls.get(field_id), lower, upper, shortest_cut=_SHORTEST_CUT
            )

        rules.check(path, partition, facts_of)
        return DataFile(
            content=FileContent.DATA,
            file_path=path,
            file_format=file.file_format,
            spec_id=spec_id,
            partition=partition,
            record_count=self.checked_rows(file.record_count),
            file_size_in_bytes=file.file_size_in_bytes,
            column_sizes=file.column_sizes,
            value_counts=file.value_counts,
            null_value_counts=file.null_value_counts,
            nan_value_counts=file.nan_value_counts,
            lower_bounds=self._holding(file.lower_bounds, known),
            upper_bounds=self._holding(file.upper_bounds, known),
            split_offsets=file.split_offsets,
            sort_order_id=file.sort_order_id,
        )

    def _known(self, metadata: TableMetadata) -> Mapping[FieldId, Column]:
        """Return the columns that may be described: of an older schema, too, if one is."""
        file, current = self.described, metadata.current_schema.columns
        described = (
            file.column_sizes,
            file.value_counts,
            file.null_value_counts,
            file.nan_value_counts,
            file.lower_bounds,
            file.upper_bounds,
        )
        if all(current.keys() >= of_fields.keys() for of_fields in described if of_fields):
            return current  # mostly so, and looked up faster
        return ChainMap(current, *(schema.columns for schema in metadata.schemas))

    def _holding(
        self, bounds: Mapping[int, bytes] | None, known: Mapping[FieldId, Column]
    ) -> dict[int, bytes] | None:
        """Return those bounds that readers may have."""
        if bounds is None:
            return None
        nulls, nans = self.described.null_value_counts or {}, self.described.nan_value_counts or {}

        def hold(field_id: int) -> bool:
            column = known[FieldId(field_id)]
            has_no_nulls = column.parent is None and column.field.required
            assert isinstance(column.field.type, PrimitiveType)
            null_count = nulls.get(field_id, 0 if has_no_nulls else None)
            return bounds_hold(column.field.type, null_count, nans.get(field_id))

        return {field_id: bound for field_id, bound in bounds.items() if hold(field_id)}

    def _check_sort_order(self, metadata: TableMetadata, sort_order_id: SortOrderId) -> None:
        known = {UNSORTED_ORDER_ID, *(order.order_id for order in metadata.sort_orders)}
        if sort_order_id not in known:
            raise InvalidDataFile(self.path, f"the table has no sort order {sort_order_id}")

    def _check_counts(self, known: Mapping[FieldId, Column]) -> None:
        file = self.described
        for name, counts in (
            ("column-sizes", file.column_sizes),
            ("value-counts", file.value_counts),
            ("null-value-counts", file.null_value_counts),
            ("nan-value-counts", file.nan_value_counts),
        ):
            for field_id, count in (counts or {}).items():
                if field_id not in known:
                    raise InvalidDataFile(
                        self.path, f"its {name} have field id {field_id}, which is no column of the table"
                    )
                if not 0 <= count <= MAX_LONG:
                    raise InvalidDataFile(self.path, f"its {name} have {count} for field id {field_id}")

    def _check_sense(
        self, known: Mapping[FieldId, Column], bounds: Mapping[FieldId, tuple[Any, Any]]
    ) -> None:
        """Check what readers would leave out rows or whole files for, if it were wrong."""
        file, rows = self.described, self.described.record_count
        values, nulls, nans = (
            counts or {} for counts in (file.value_counts, file.null_value_counts, file.nan_value_counts)
        )
        for field_id, count in values.items():
            # A row has one value of each column, but in lists and maps; what is inside of structs, some do not count.
            if count == rows:
                continue
            column = known[FieldId(field_id)]
            if not column.is_repeated and (count > rows or column.parent is None):
                raise InvalidDataFile(
                    self.path,
                    f"its value-counts have {count} for field id {field_id}, and its record-count is {rows}",
                )
        for field_id, count in nans.items():
            # Readers leave out files that have nothing but NaN in a column, whatever its type is.
            kind = known[FieldId(field_id)].field.type
            if count and not (isinstance(kind, PrimitiveType) and kind.kind in FLOATING_KINDS):
                raise InvalidDataFile(
                    self.path,
                    f"its nan-value-counts have {count} for field id {field_id}, which is of type {kind}",
                )
        for field_id, count in nulls.items():
            column = known[FieldId(field_id)]
            if count and column.parent is None and column.field.required:
                raise InvalidDataFile(
                    self.path,
                    f"its null-value-counts have {count} for field id {field_id}, which is required in the table",
                )
        for field_id in nulls.keys() | nans.keys():
            some = nulls.get(field_id, 0) + nans.get(field_id, 0)
            if not some:
                continue
            most = values.get(field_id, some if known[FieldId(field_id)].is_repeated else rows)
            if some > most:
                name = "null-value-counts" if field_id in nulls else "nan-value-counts"
                raise InvalidDataFile(
                    self.path, f"its {name} have {some} for field id {field_id}, which has {most} values"
                )
        for field_id, (lower, upper) in bounds.items():
            kind = known[field_id].field.type
            if isinstance(kind, PrimitiveType) and kind.kind in _SEVERAL_ORDERS:
                continue
            if lower is not None and upper is not None and lower > upper:
                raise InvalidDataFile(
                    self.path, f"its lower bound for field id {field_id} is above the upper one"
                )
        if file.split_offsets and file.split_offsets[-1] >= file.file_size_in_bytes:
            raise InvalidDataFile(self.path, "its split-offsets are beyond its end")

    def _bounds(self, known: Mapping[FieldId, Column]) -> dict[FieldId, tuple[Any, Any]]:
        """Return the lower and upper bounds as values, None where there is none."""
        found: dict[FieldId, tuple[Any, Any]] = {}
        for name, bounds in (
            ("lower-bounds", self.described.lower_bounds),
            ("upper-bounds", self.described.upper_bounds),
        ):
            for field_id, content in (bounds or {}).items():
                column = known.get(FieldId(field_id))
                kind = None if column is None else column.field.type
                if not isinstance(kind, PrimitiveType):
                    raise InvalidDataFile(
                        self.path,
                        f"its {name} have field id {field_id}, which is no such column of the table",
                    )
                try:
                    value = from_bytes(kind, content)
                except ValueError as error:
                    raise InvalidDataFile(
                        self.path, f"its {name} for field id {field_id}: {error}"
                    ) from error
                value = None if is_nan(value) else value
                lower, _ = found.get(FieldId(field_id), (None, None))
                found[FieldId(field_id)] = (value, None) if name == "lower-bounds" else (lower, value)
        return found
