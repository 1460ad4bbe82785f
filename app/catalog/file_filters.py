"""Which files of a snapshot may hold rows that a filter is looking for."""

from __future__ import annotations

from app.catalog.history import FileChoice
from app.engine.expressions.binding import bind
from app.engine.expressions.evaluation import partition_test
from app.engine.expressions.expressions import Expression
from app.engine.expressions.metrics_evaluation import metrics_test
from app.engine.expressions.projection import project_bound
from app.engine.expressions.summary_evaluation import summaries_test
from app.engine.model.manifests import FileContent, ManifestEntry, ManifestFile
from app.engine.model.schema import Schema
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata


def matching_files(expression: Expression, metadata: TableMetadata, snapshot: Snapshot) -> FileChoice:
    """Return the choice of files that may hold a matching row, and of delete files in such partitions.

    Each partition spec is asked with the filter's own projection onto it. The filter is read with the columns that
    the snapshot was written with.

    Raises:
        InvalidFilter: the filter does not fit the columns.
    """
    bound = bind(expression, _schema_of(metadata, snapshot))
    projected = {spec.spec_id: project_bound(bound, spec) for spec in metadata.partition_specs}
    of_summaries = {spec_id: summaries_test(each) for spec_id, each in projected.items()}
    of_partition = {spec_id: partition_test(each) for spec_id, each in projected.items()}
    of_metrics = metrics_test(bound)

    def manifest_may_match(manifest: ManifestFile) -> bool:
        test = of_summaries.get(manifest.partition_spec_id)
        return test is None or test(manifest)

    def entry_may_match(entry: ManifestEntry) -> bool:
        test = of_partition.get(entry.file.spec_id)
        if test is not None and not test(entry.file.partition):
            return False
        # The metrics of a delete file are those of its deletes, not of the rows that they are about.
        return entry.file.content is not FileContent.DATA or of_metrics(entry.file)

    return FileChoice(manifest_may_match, entry_may_match)


def _schema_of(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    for schema in metadata.schemas:
        if schema.schema_id == snapshot.schema_id:
            return schema
    return metadata.current_schema
