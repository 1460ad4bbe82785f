"""Which files of a table may hold rows that a scan looks for: asked of manifests, then partitions, then metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from app.engine.expressions.evaluation import partition_test
from app.engine.expressions.expressions import ALWAYS_FALSE, ALWAYS_TRUE, Expression, rewrite_not
from app.engine.expressions.metrics_evaluation import metrics_test
from app.engine.expressions.projection import project_bound
from app.engine.expressions.residuals import residual_function
from app.engine.expressions.summary_evaluation import summaries_test
from app.engine.expressions.value_ranges import value_ranges
from app.engine.model.entry_filters import live_entries
from app.engine.model.ids import SpecId
from app.engine.model.manifests import ManifestEntry, ManifestFile
from app.engine.model.partition_spec import PartitionSpec
from app.engine.scan.scan_scope import ScanScope

Partition = tuple[Any, ...]
_MOST_RESIDUALS = 100_000


class FileSelection:
    """A scan's filter, compiled once for each partition spec: files of each are asked with its own projection."""

    def __init__(self, scope: ScanScope, specs: Iterable[PartitionSpec]) -> None:
        self._scope = scope
        self._specs = {spec.spec_id: spec for spec in specs}
        self._by_spec: dict[SpecId, _SpecSelection] = {}
        self._may_match_metrics = metrics_test(scope.bound)
        self._ranges = value_ranges(scope.bound)
        self.is_everything = rewrite_not(scope.bound) == ALWAYS_TRUE

    def may_match(self, manifest: ManifestFile) -> bool:
        """Tell whether a manifest may name a file of the scan, or a delete file that matters to one."""
        if manifest.added_files_count == 0 and manifest.existing_files_count == 0:
            return False
        return self._of(manifest.partition_spec_id).may_match_summaries(manifest)

    def data_files(
        self, manifest: ManifestFile, entries: Iterable[ManifestEntry]
    ) -> Iterator[tuple[ManifestEntry, Expression]]:
        """Yield live entries that may have matching rows, each with what is still to be asked of its rows."""
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

    def delete_files(
        self, manifest: ManifestFile, entries: Iterable[ManifestEntry]
    ) -> Iterator[ManifestEntry]:
        """Yield live delete entries of partitions that may have matching rows.

        The metrics of a delete file are those of its deletes, not of the rows they are about: they say nothing here.
        """
        yield from live_entries(entries, self._of(manifest.partition_spec_id).is_wanted)

    def residual(self, spec_id: SpecId, partition: Partition) -> Expression:
        """Return what is still to be asked of the rows of a partition."""
        return self._of(spec_id).residual(partition)

    def _of(self, spec_id: SpecId) -> _SpecSelection:
        found = self._by_spec.get(spec_id)
        if found is None:
            found = self._by_spec[spec_id] = _SpecSelection(self._scope, self._specs.get(spec_id))
        return found


class _SpecSelection:
    """The filter on the files of one spec; a spec that the table does not know rules nothing out."""

    def __init__(self, scope: ScanScope, spec: PartitionSpec | None) -> None:
        self._scope = scope
        self._spec = spec
        self._residuals: dict[Partition, Expression] = {}

    @cached_property
    def may_match_summaries(self) -> Callable[[ManifestFile], bool]:
        return _yes if self._spec is None else summaries_test(project_bound(self._scope.bound, self._spec))

    @cached_property
    def is_wanted(self) -> Callable[[Partition], bool]:
        if self._spec is None:
            return _any_partition
        test, width = (
            partition_test(project_bound(self._scope.bound, self._spec)),
            len(self._spec.fields),
        )
        return lambda partition: len(partition) != width or test(partition)

    def is_all_wanted(self, partition: Partition) -> bool:
        """Tell whether every row of a partition matches."""
        return self.is_wanted(partition) and self.residual(partition) == ALWAYS_TRUE

    def is_partly_wanted(self, partition: Partition) -> bool:
        """Tell whether a row of a partition may match, but not every one does."""
        return self.is_wanted(partition) and self.residual(partition) not in (ALWAYS_TRUE, ALWAYS_FALSE)

    def residual(self, partition: Partition) -> Expression:
        found = self._residuals.get(partition)
        if found is None:
            found = self._residual_of(partition)
            # To a dictionary 0.0 and -0.0 are one key, to a filter they are two values.
            if len(self._residuals) < _MOST_RESIDUALS and not any(map(_is_float, partition)):
                self._residuals[partition] = found
        return found

    @cached_property
    def _residual_of(self) -> Callable[[Partition], Expression]:
        scope, spec = self._scope, self._spec
        if spec is None:
            return lambda _: scope.filter
        of, width = (
            residual_function(scope.filter, spec, scope.schema, case_sensitive=scope.case_sensitive),
            len(spec.fields),
        )
        return lambda partition: of(partition) if len(partition) == width else scope.filter


def _to_go_through_twice(entries: Iterable[ManifestEntry]) -> Iterable[ManifestEntry]:
    return list(entries) if isinstance(entries, Iterator) else entries


def _is_float(value: Any) -> bool:
    return isinstance(value, float)


def _yes(_: ManifestFile) -> bool:
    return True


def _any_partition(_: Partition) -> bool:
    return True
