"""Scopes: which files an operation cares about, by a filter on rows or by partitions; each spec has its own tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from app.engine.conflicts.operations import PartitionKey
from app.engine.expressions.binding import bind
from app.engine.expressions.evaluation import partition_test
from app.engine.expressions.expression_json import to_json
from app.engine.expressions.expressions import ALWAYS_TRUE, AlwaysTrue, Expression
from app.engine.expressions.metrics_evaluation import metrics_test, strict_metrics_test
from app.engine.expressions.projection import project_bound
from app.engine.expressions.residuals import residual_function
from app.engine.expressions.summary_evaluation import summaries_test
from app.engine.expressions.value_ranges import value_ranges
from app.engine.model.entry_filters import PartitionTest, live_entries
from app.engine.model.ids import SpecId
from app.engine.model.manifests import DataFile, ManifestEntry, ManifestFile
from app.engine.model.partition_values import PartitionValues
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.values import order_key

FileTest = Callable[[DataFile], bool]
MAX_SHOWN_LENGTH = 300


class Scope(Protocol):
    """Some of a table's files."""

    def may_hold(self, manifest: ManifestFile) -> bool:
        """Tell whether a manifest may name such a file."""
        ...

    def covers(self, file: DataFile) -> bool:
        """Tell whether a data file or delete file is, or may be, one of them."""
        ...

    def live(self, manifest: ManifestFile, entries: Iterable[ManifestEntry]) -> Iterator[ManifestEntry]:
        """Yield the live ones of a manifest's entries that are covered; the others are hardly looked at."""
        ...

    @property
    def words(self) -> str:
        """What the files have in common, to go on after `records matching`."""
        ...


class RowScope:
    """Files that may hold a row which matches a filter, by partition and by metrics.

    The metrics of delete files are asked too, as the reference does: those of equality deletes are about the values
    that are deleted.
    """

    def __init__(
        self, metadata: TableMetadata, expression: Expression, *, case_sensitive: bool = True
    ) -> None:
        bound = bind(expression, metadata.current_schema, case_sensitive=case_sensitive)
        self._expression = expression
        self._is_everything = isinstance(bound, AlwaysTrue)
        projected = {spec.spec_id: project_bound(bound, spec) for spec in metadata.partition_specs}
        self._summaries = {spec_id: summaries_test(each) for spec_id, each in projected.items()}
        self._partition = {spec_id: partition_test(each) for spec_id, each in projected.items()}
        self._metrics = metrics_test(bound)
        self._ranges = value_ranges(bound)

    def may_hold(self, manifest: ManifestFile) -> bool:
        test = self._summaries.get(manifest.partition_spec_id)
        # Of a spec that the table has forgotten nothing can be told, so nothing is ruled out.
        return test is None or test(manifest)

    def covers(self, file: DataFile) -> bool:
        if self._is_everything:
            return True
        return self._test_of(file.spec_id)(file.partition) and self._metrics(file)

    def live(self, manifest: ManifestFile, entries: Iterable[ManifestEntry]) -> Iterator[ManifestEntry]:
        found = live_entries(entries, self._test_of(manifest.partition_spec_id), self._ranges)
        return (entry for entry in found if self._is_everything or self._metrics(entry.file))

    def _test_of(self, spec_id: SpecId) -> PartitionTest:
        return self._partition.get(spec_id, _every)

    @property
    def words(self) -> str:
        return shown(self._expression)


def _every(_partition: tuple[Any, ...]) -> bool:
    return True


class PartitionScope:
    """Files of some partitions."""

    def __init__(self, metadata: TableMetadata, partitions: Iterable[PartitionKey]) -> None:
        self._partitions = {comparable(key): key for key in partitions}
        self._spec_ids = {spec_id for spec_id, _ in self._partitions}
        self._values = PartitionValues(metadata)

    def may_hold(self, manifest: ManifestFile) -> bool:
        return manifest.partition_spec_id in self._spec_ids

    def covers(self, file: DataFile) -> bool:
        return comparable((file.spec_id, file.partition)) in self._partitions

    def live(self, manifest: ManifestFile, entries: Iterable[ManifestEntry]) -> Iterator[ManifestEntry]:
        spec_id = manifest.partition_spec_id
        return live_entries(entries, lambda values: comparable((spec_id, values)) in self._partitions)

    @property
    def words(self) -> str:
        shown_keys = (self._values.shown(spec_id, values) for spec_id, values in self._partitions.values())
        text = ", ".join(", ".join(f"{name}={value}" for name, value in key.items()) for key in shown_keys)
        return f"partitions [{text}]"[:MAX_SHOWN_LENGTH]


def comparable(key: PartitionKey) -> PartitionKey:
    """Return a partition as a dictionary key: NaN is itself there, and -0.0 is not 0.0."""
    spec_id, values = key
    return spec_id, tuple(map(order_key, values))


def scope_of_partitions(metadata: TableMetadata, partitions: Iterable[PartitionKey]) -> Scope:
    """Return the files of some partitions; of an unpartitioned spec that is every file of the table."""
    keys = tuple(partitions)
    unpartitioned = {spec.spec_id for spec in metadata.partition_specs if spec.is_unpartitioned}
    if any(spec_id in unpartitioned for spec_id, _ in keys):
        return RowScope(metadata, ALWAYS_TRUE)
    return PartitionScope(metadata, keys)


class Matching:
    """How much of a file matches a filter: nothing, something or all, by partition and by metrics."""

    def __init__(
        self, metadata: TableMetadata, expression: Expression, *, case_sensitive: bool = True
    ) -> None:
        self._schema = metadata.current_schema
        self._expression = expression
        self._case_sensitive = case_sensitive
        self._residuals = {
            spec.spec_id: residual_function(expression, spec, self._schema, case_sensitive=case_sensitive)
            for spec in metadata.partition_specs
        }
        self._tests: dict[Expression, tuple[FileTest, FileTest]] = {}

    def may_match(self, file: DataFile) -> bool:
        """Tell whether a row of a file may match."""
        return self._tests_for(file)[0](file)

    def must_match(self, file: DataFile) -> bool:
        """Tell whether every row of a file certainly matches."""
        return self._tests_for(file)[1](file)

    def _tests_for(self, file: DataFile) -> tuple[FileTest, FileTest]:
        residual_of = self._residuals.get(file.spec_id)
        residual = self._expression if residual_of is None else residual_of(file.partition)
        tests = self._tests.get(residual)
        if tests is None:
            bound = bind(residual, self._schema, case_sensitive=self._case_sensitive)
            tests = self._tests[residual] = (metrics_test(bound), strict_metrics_test(bound))
        return tests


class AddedFileTest:
    """Whether a file that an operation adds certainly has only rows that the operation's own filter covers."""

    def __init__(
        self, metadata: TableMetadata, spec_id: SpecId, expression: Expression, *, case_sensitive: bool
    ) -> None:
        bound = bind(expression, metadata.current_schema, case_sensitive=case_sensitive)
        spec = next(item for item in metadata.partition_specs if item.spec_id == spec_id)
        self._inclusive = partition_test(project_bound(bound, spec))
        self._strict = partition_test(project_bound(bound, spec, strict=True), strict=True)
        self._metrics = strict_metrics_test(bound)

    def __call__(self, file: DataFile) -> bool:
        return self._inclusive(file.partition) and (self._strict(file.partition) or self._metrics(file))


def shown(expression: Expression) -> str:
    """Return a filter as a person can read it in a sentence."""
    text = str(to_json(expression)).replace("'", "").replace("True", "true").replace("False", "false")
    return text if len(text) <= MAX_SHOWN_LENGTH else text[:MAX_SHOWN_LENGTH] + "…"
