"""Which files of a table may match: by a filter on rows, or by their partitions.

Manifests are asked by their summaries, then files by their partition, then by their metrics.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from app.engine.expressions.binding import bind
from app.engine.expressions.evaluation import partition_test
from app.engine.expressions.expressions import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    AlwaysTrue,
    BoundExpression,
    Expression,
)
from app.engine.expressions.metrics_evaluation import FileTest, metrics_test, strict_metrics_test
from app.engine.expressions.projection import project_bound
from app.engine.expressions.residuals import residual_function
from app.engine.expressions.summary_evaluation import summaries_test
from app.engine.expressions.value_ranges import value_ranges
from app.engine.model.files.entry_filters import ColumnarEntries, PartitionTest, columnar, live_entries
from app.engine.model.files.manifests import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    Partition,
    PartitionKey,
    partition_key,
)
from app.engine.model.ids import SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.engine.selection.deletes import with_proofs_only

_MOST_RESIDUALS = 100_000


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A filter on rows: as it was given, and bound to its columns."""

    filter: Expression
    bound: BoundExpression
    schema: Schema
    case_sensitive: bool = True

    @classmethod
    def of(cls, filter_: Expression, schema: Schema, *, case_sensitive: bool = True) -> RowFilter:
        """Bind a filter to a schema.

        Raises:
            InvalidFilter: the filter does not fit the schema.
        """
        return cls(filter_, bind(filter_, schema, case_sensitive=case_sensitive), schema, case_sensitive)


class FileSelection:
    """The files that may match a filter, by the projection for each partition spec.

    A file is only left out if its partition or its metrics prove that none of its rows matches. An equality delete
    file is asked what it says of the rows that it deletes; position deletes say nothing of them.
    """

    def __init__(
        self, rows: RowFilter, specs: Iterable[PartitionSpec], *, asks_metrics_of_deletes: bool = False
    ) -> None:
        """Compile a filter.

        Args:
            specs: the partition specs of the table; files of any other spec are not asked by their partition.
            asks_metrics_of_deletes: take all metrics of delete files for those of the rows that they delete.
        """
        self._rows = rows
        self._specs = {spec.spec_id: spec for spec in specs}
        self._asks_metrics_of_deletes = asks_metrics_of_deletes
        self._by_spec: dict[SpecId, _SpecSelection] = {}
        self._by_residual: dict[Expression, tuple[FileTest, FileTest]] = {}
        self._may_match_metrics = metrics_test(rows.bound)
        self._ranges = value_ranges(rows.bound)
        self.is_everything = isinstance(rows.bound, AlwaysTrue)

    def may_hold(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest may name a file of the selection, live or not."""
        return self._of(manifest.partition_spec_id).may_match_summaries(manifest)

    def may_hold_live(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest may name a live file of the selection."""
        return manifest.may_have_live_files and self.may_hold(manifest)

    def may_match(self, file: DataFile) -> bool:
        """Return whether a file is one of the selection."""
        if not self._of(file.spec_id).is_wanted(file.partition):
            return False
        if self._asks_metrics(is_data=file.content is FileContent.DATA):
            return self._may_match_metrics(file)
        return self._may_delete(file)

    def live(self, manifest: ManifestFile, entries: Iterable[ManifestEntry]) -> Iterator[ManifestEntry]:
        """Yield the entries of live files of the selection."""
        is_wanted = self._of(manifest.partition_spec_id).is_wanted
        if not self._asks_metrics(is_data=manifest.content is ManifestContent.DATA):
            found = live_entries(entries, is_wanted)
            return found if self.is_everything else (entry for entry in found if self._may_delete(entry.file))
        may_match_metrics = self._may_match_metrics
        found = live_entries(entries, is_wanted, self._ranges)
        return (entry for entry in found if may_match_metrics(entry.file))

    def placed(
        self, manifest: ManifestFile, entries: Iterable[ManifestEntry], after: int = -1
    ) -> Iterator[tuple[int, ManifestEntry]]:
        """Yield the entries of live files of the selection behind a position, each with its own."""
        found: Iterable[tuple[int, ManifestEntry]] = enumerate(entries)
        columns = columnar(entries)
        if columns is not None:
            is_data = manifest.content is ManifestContent.DATA
            ranges = self._ranges if self._asks_metrics(is_data=is_data) else ()
            positions = columns.live_positions(self._of(manifest.partition_spec_id).is_wanted, ranges)
            positions = positions[bisect_right(positions, after) :]
            found = zip(positions, columns.entries_at(positions), strict=True)
        for at, entry in found:
            if at > after and entry.is_live and self.may_match(entry.file):
                yield at, entry

    def _asks_metrics(self, *, is_data: bool) -> bool:
        return not self.is_everything and (is_data or self._asks_metrics_of_deletes)

    def _may_delete(self, file: DataFile) -> bool:
        """Return whether a delete file may delete a row that matches; True for any other file."""
        if self.is_everything or file.content is not FileContent.EQUALITY_DELETES:
            return True
        return self._may_match_metrics(with_proofs_only(file, self._rows.schema))

    def data_files(
        self, manifest: ManifestFile, entries: Iterable[ManifestEntry]
    ) -> Iterator[tuple[ManifestEntry, Expression]]:
        """Yield the entries of live data files of the selection, each with its residual filter.

        Where entries have positions, they come in the order of `data_positions`.
        """
        of_spec = self._of(manifest.partition_spec_id)
        if self.is_everything:
            for entry in live_entries(entries, _any_partition):
                yield entry, ALWAYS_TRUE
            return
        entries = _to_go_through_twice(entries)
        residual = of_spec.residual
        # Partitions all of whose rows match need no look at metrics, which costs more than all the rest.
        for entry in live_entries(entries, of_spec.is_all_wanted):
            yield entry, ALWAYS_TRUE
        may_match_metrics = self._may_match_metrics
        for entry in live_entries(entries, of_spec.is_partly_wanted, self._ranges):
            if may_match_metrics(entry.file):
                yield entry, residual(entry.file.partition)

    def data_positions(self, manifest: ManifestFile, entries: ColumnarEntries) -> Sequence[int]:
        """Return where the live data files of the selection are; no entry is made of most of them."""
        if self.is_everything:
            return entries.live_positions(_any_partition)
        of_spec, may_match_metrics = self._of(manifest.partition_spec_id), self._may_match_metrics
        whole = entries.live_positions(of_spec.is_all_wanted)
        in_part = entries.live_positions(of_spec.is_partly_wanted, self._ranges)
        asked = zip(in_part, entries.entries_at(in_part), strict=True)
        return [*whole, *(at for at, entry in asked if may_match_metrics(entry.file))]

    def residual(self, spec_id: SpecId, partition: Partition) -> Expression:
        """Return what the rows of a partition must still be asked."""
        return ALWAYS_TRUE if self.is_everything else self._of(spec_id).residual(partition)

    def all_match(self, file: DataFile) -> bool:
        """Return whether every row of a data file surely matches, by partition or metrics."""
        of_spec = self._of(file.spec_id)
        return of_spec.is_wanted(file.partition) and (
            of_spec.is_all_wanted(file.partition) or self._all_match_metrics(file)
        )

    @cached_property
    def _all_match_metrics(self) -> FileTest:
        return strict_metrics_test(self._rows.bound)

    def matches_in_part(self, file: DataFile) -> bool:
        """Return whether some rows of a data file may match and others may not."""
        residual = self.residual(file.spec_id, file.partition)
        tests = self._by_residual.get(residual)
        if tests is None:
            left = RowFilter.of(residual, self._rows.schema, case_sensitive=self._rows.case_sensitive).bound
            tests = self._by_residual[residual] = (metrics_test(left), strict_metrics_test(left))
        may_match, all_match = tests
        return may_match(file) and not all_match(file)

    def _of(self, spec_id: SpecId) -> _SpecSelection:
        found = self._by_spec.get(spec_id)
        if found is None:
            found = self._by_spec[spec_id] = _SpecSelection(self._rows, self._specs.get(spec_id))
        return found


class _SpecSelection:
    """The filter on the files of one spec; an unknown spec excludes no file."""

    def __init__(self, rows: RowFilter, spec: PartitionSpec | None) -> None:
        self._rows = rows
        self._spec = spec
        self._residuals: dict[Partition, Expression] = {}

    @cached_property
    def may_match_summaries(self) -> Callable[[ManifestFile], bool]:
        return (
            _any_manifest
            if self._spec is None
            else summaries_test(project_bound(self._rows.bound, self._spec))
        )

    @cached_property
    def is_wanted(self) -> PartitionTest:
        if self._spec is None:
            return _any_partition
        test, width = partition_test(project_bound(self._rows.bound, self._spec)), len(self._spec.fields)
        return lambda partition: len(partition) != width or test(partition)

    def is_all_wanted(self, partition: Partition) -> bool:
        """Return whether every row of a partition matches."""
        return self.is_wanted(partition) and self.residual(partition) == ALWAYS_TRUE

    def is_partly_wanted(self, partition: Partition) -> bool:
        """Return whether some rows of a partition may match and others not."""
        return self.is_wanted(partition) and self.residual(partition) not in (ALWAYS_TRUE, ALWAYS_FALSE)

    def residual(self, partition: Partition) -> Expression:
        found = self._residuals.get(partition)
        if found is None:
            found = self._residual_of(partition)
            # To a dictionary 0.0 and -0.0 are one key, to a filter they are two values.
            if len(self._residuals) < _MOST_RESIDUALS and not any(
                isinstance(value, float) for value in partition
            ):
                self._residuals[partition] = found
        return found

    @cached_property
    def _residual_of(self) -> Callable[[Partition], Expression]:
        rows, spec = self._rows, self._spec
        if spec is None:
            return lambda _: rows.filter
        of = residual_function(rows.filter, spec, rows.schema, case_sensitive=rows.case_sensitive)
        width = len(spec.fields)
        return lambda partition: of(partition) if len(partition) == width else rows.filter


class PartitionSelection:
    """The files that are in some partitions, whatever their rows are."""

    def __init__(self, partitions: Iterable[PartitionKey]) -> None:
        self._partitions = frozenset(partitions)
        self._spec_ids = {spec_id for spec_id, _ in self._partitions}

    def may_hold(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest may name a file of the selection, live or not."""
        return manifest.partition_spec_id in self._spec_ids

    def may_match(self, file: DataFile) -> bool:
        """Return whether a file is one of the selection."""
        return file.partition_key in self._partitions

    def live(self, manifest: ManifestFile, entries: Iterable[ManifestEntry]) -> Iterator[ManifestEntry]:
        """Yield the entries of live files of the selection."""
        spec_id = manifest.partition_spec_id
        return live_entries(entries, lambda values: partition_key(spec_id, values) in self._partitions)


def _to_go_through_twice(entries: Iterable[ManifestEntry]) -> Iterable[ManifestEntry]:
    return list(entries) if isinstance(entries, Iterator) else entries


def _any_manifest(_: ManifestFile) -> bool:
    return True


def _any_partition(_: Partition) -> bool:
    return True
