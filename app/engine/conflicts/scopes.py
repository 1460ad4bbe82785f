"""Scopes: the files that an operation cares about, and what they are called in a message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from app.engine.expressions.expression_json import to_json
from app.engine.expressions.expressions import ALWAYS_TRUE, Expression
from app.engine.model.files.manifests import Partition, partition_key
from app.engine.model.files.partition_values import PartitionValues
from app.engine.model.ids import SpecId
from app.engine.model.partition_spec import unpartitioned_specs
from app.engine.model.table_metadata import TableMetadata
from app.engine.selection.files import FileSelection, PartitionSelection, RowFilter

MAX_SHOWN_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Scope:
    """Some of a table's files."""

    files: FileSelection | PartitionSelection
    words: str
    """What the files have in common: it ends a sentence that begins with `records matching`."""


def scope_of_rows(metadata: TableMetadata, filter_: Expression, *, case_sensitive: bool = True) -> Scope:
    """Return the files that may hold a row which matches a filter.

    The metrics of delete files are asked too, as the reference does: those of equality deletes are about the values
    that are deleted, and one conflict too many costs a writer its commit.

    Raises:
        InvalidFilter: the filter does not fit the table's columns.
    """
    rows = RowFilter.of(filter_, metadata.current_schema, case_sensitive=case_sensitive)
    files = FileSelection(rows, metadata.partition_specs, asks_metrics_of_deletes=True)
    return Scope(files, shown(filter_))


def scope_of_partitions(metadata: TableMetadata, partitions: Iterable[tuple[SpecId, Partition]]) -> Scope:
    """Return the files of some partitions; an unpartitioned spec has every file of the table."""
    distinct = {partition_key(*partition): partition for partition in partitions}
    unpartitioned = unpartitioned_specs(metadata.partition_specs)
    if any(spec_id in unpartitioned for spec_id, _ in distinct):
        return scope_of_rows(metadata, ALWAYS_TRUE)
    values = PartitionValues(metadata)
    texts = (
        ", ".join(f"{name}={value}" for name, value in values.shown(*partition).items())
        for partition in islice(distinct.values(), MAX_SHOWN_LENGTH)
    )
    return Scope(PartitionSelection(distinct), f"partitions [{', '.join(texts)}]"[:MAX_SHOWN_LENGTH])


def shown(expression: Expression) -> str:
    """Return a filter as a person can read it in a sentence."""
    text = str(to_json(expression)).replace("'", "").replace("True", "true").replace("False", "false")
    return text if len(text) <= MAX_SHOWN_LENGTH else text[:MAX_SHOWN_LENGTH] + "…"
