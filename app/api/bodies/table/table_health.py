"""JSON of the health of tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import orjson

from app.api.bodies.json_answer import as_long, page_json, present
from app.catalog.context.rows import WaitingDeletion
from app.catalog.upkeep.table_health import TableHealth
from app.catalog.upkeep.warehouse_health import UnreadableTable
from app.engine.health.column_profile import ColumnProfile, TableProfile
from app.engine.health.facts import SIZE_BOUNDS, FileFacts, HealthFacts, PartitionFacts, StatisticsFacts
from app.engine.health.findings import HealthFinding
from app.engine.model.files.partition_values import PartitionValues
from app.engine.model.identifiers import TableIdentifier
from app.engine.upkeep.command_lines import on_the_command_line
from app.engine.upkeep.sql_text import literal, quoted_if_needed

_FOR_PLANS = frozenset({"files-to-save", "newest-sequence"})
"""What is known of a partition for plans of upkeep, and not shown."""


def table_health_json(health: TableHealth, warehouse: str) -> bytes:
    """Return the facts and findings of one table, with commands for it in its warehouse."""
    return orjson.dumps(_table(health, warehouse))


def warehouse_health_json(
    tables: Sequence[TableHealth | UnreadableTable],
    warehouse: str,
    next_page_token: str | None,
    waiting: Sequence[WaitingDeletion] = (),
) -> bytes:
    """Return a page of tables, the worst first, and what waits to be deleted, if anything does."""
    answer: dict[str, Any] = {"tables": [_table(found, warehouse) for found in tables]}
    if waiting:
        answer["waiting-deletions"] = [_waiting(deletion) for deletion in waiting]
    return page_json(answer, next_page_token)


def _waiting(deletion: WaitingDeletion) -> dict[str, Any]:
    facts = {
        "kind": deletion.kind,
        "table": deletion.identifier,
        "attempts": deletion.attempts,
        "queued-ms": deletion.created_ms,
        "next-attempt-ms": None if deletion.is_given_up else deletion.not_before_ms,
        "error": deletion.error,
    }
    return present(facts)


def profile_json(profile: TableProfile) -> bytes:
    """Return the profile of a table's columns."""
    answer = {
        "snapshot-id": profile.snapshot_id,
        "data-files": profile.data_files,
        "rows": as_long(profile.rows),
        "delete-files": profile.delete_files,
        "columns": [_column(column) for column in profile.columns],
    }
    return orjson.dumps(present(answer))


def _column(column: ColumnProfile) -> dict[str, Any]:
    facts = {
        "field-id": column.field_id,
        "name": column.name,
        "type": str(column.kind),
        "value-count": column.values.total,
        "value-count-files": column.values.files,
        "null-count": column.nulls.total,
        "null-share": column.null_share,
        "null-count-files": column.nulls.files,
        "nan-count": column.nans.total,
        "nan-share": column.nan_share,
        "nan-count-files": column.nans.files,
        "column-bytes": column.column_bytes.total,
        "column-bytes-files": column.column_bytes.files,
        "lower-bound": column.lower,
        "lower-bound-files": column.lower_files,
        "upper-bound": column.upper,
        "upper-bound-files": column.upper_files,
        "bounds-exact": column.bounds_exact,
    }
    return {name: as_long(value) for name, value in present(facts).items()}


def _table(health: TableHealth | UnreadableTable, warehouse: str) -> dict[str, Any]:
    found = health.findings
    answer: dict[str, Any] = {
        "namespace": list(health.identifier.namespace.levels),
        "table": health.identifier.name,
        "severity": found[0].severity if found else "ok",
        "findings": [_finding(finding, health.identifier, warehouse) for finding in found],
    }
    if isinstance(health, TableHealth):
        answer |= _facts(health.facts)
        if health.facts.files is not None:
            answer["files"] = _files(health.facts.files, health.partitions)
        if health.facts.activity is not None:
            answer["activity"] = _plain(health.facts.activity) | {"process": os.getpid()}
    return present(answer)


def _finding(finding: HealthFinding, identifier: TableIdentifier, warehouse: str) -> dict[str, Any]:
    command = finding.command and _with_names(finding.command, identifier, warehouse)
    facts = {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "command": command,
    }
    return present(facts)


def _with_names(command: str, identifier: TableIdentifier, warehouse: str) -> str:
    in_sql = ".".join(map(quoted_if_needed, (*identifier.namespace.levels, identifier.name)))
    names = {
        "{table}": on_the_command_line(identifier, warehouse),
        "{sql}": in_sql,
        "{literal}": literal(in_sql),
    }
    # Every command has one of them, once.
    mark = next(mark for mark in names if mark in command)
    return command.replace(mark, names[mark])


def _facts(facts: HealthFacts) -> dict[str, Any]:
    metadata = _plain(facts.metadata)
    for name, statistics in (
        ("statistics", facts.metadata.statistics),
        ("partition-statistics", facts.metadata.partition_statistics),
    ):
        metadata[name] = _statistics(statistics)
    manifests = _plain(facts.manifests)
    manifests["overlap-by-field"] = dict(facts.manifests.overlap_by_field)
    return {
        "looked-at-ms": facts.looked_at_ms,
        "snapshot-id": facts.snapshot_id,
        "metadata": metadata,
        "manifests": manifests,
        "summary-totals": _plain(facts.totals),
    }


def _statistics(facts: StatisticsFacts) -> dict[str, Any]:
    return {"state": facts.state, **_plain(facts)}


def _files(facts: FileFacts, values: PartitionValues) -> dict[str, Any]:
    bounds = [*SIZE_BOUNDS, None]
    # What plans of upkeep are made of is not shown.
    hidden = ("latest-partitions", "sizes", "position-delete-sizes")
    answer = _plain(
        replace(facts, latest_partitions=(), worst_partitions=(), sizes={}, position_delete_sizes={})
    )
    answer = {name: value for name, value in answer.items() if name not in hidden}
    answer["delete-files"] = facts.delete_files
    answer["size-histogram"] = [
        present({"below-bytes": bound, "files": files})
        for bound, files in zip(bounds, facts.size_histogram, strict=True)
    ]
    answer["worst-partitions"] = [_partition(partition, values) for partition in facts.worst_partitions]
    return answer


def _partition(facts: PartitionFacts, values: PartitionValues) -> dict[str, Any]:
    answer = _plain(facts) | {"partition": values.shown(facts.spec_id, facts.partition)}
    return {name: value for name, value in answer.items() if name not in _FOR_PLANS}


def _plain(facts: Any) -> dict[str, Any]:
    """Return the members of facts that have a value, with hyphens in their names."""
    members = {
        name.removeprefix("is_").replace("_", "-"): as_long(value) for name, value in asdict(facts).items()
    }
    return present(members)
