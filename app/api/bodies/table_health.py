"""JSON of the health of tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import orjson

from app.api.bodies.json_answer import present
from app.catalog.upkeep.table_health import TableHealth
from app.engine.health.facts import SIZE_BOUNDS, FileFacts, HealthFacts, StatisticsFacts
from app.engine.health.findings import Finding
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.partition_values import PartitionValues


def table_health_json(health: TableHealth) -> bytes:
    """Return the facts and findings of one table."""
    facts, found = health.facts, health.findings
    answer = {
        "namespace": list(health.identifier.namespace.levels),
        "table": health.identifier.name,
        "severity": found[0].severity if found else "ok",
        "findings": [_finding(finding, health.identifier) for finding in found],
        **_facts(facts),
    }
    if facts.files is not None:
        answer["files"] = _files(facts.files, health.partitions)
    if facts.activity is not None:
        answer["activity"] = _plain(facts.activity)
    return orjson.dumps(present(answer))


def _finding(finding: Finding, identifier: TableIdentifier) -> dict[str, Any]:
    command = finding.command and finding.command.replace("{table}", _on_the_command_line(identifier))
    facts = {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "command": command,
    }
    return present(facts)


def _on_the_command_line(identifier: TableIdentifier) -> str:
    """Return a name as commands take it, with another separator where a part of the name has dots."""
    pieces = [*identifier.namespace.levels, identifier.name]
    separator = next((mark for mark in "./:|" if not any(mark in piece for piece in pieces)), ".")
    name = separator.join(pieces)
    if not all(character.isalnum() or character in "._-/:" for character in name):
        name = "'" + name.replace("'", "'\\''") + "'"
    return name if separator == "." else f"{name} --separator '{separator}'"


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
    answer = _plain(facts)
    answer["delete-files"] = facts.delete_files
    answer["size-histogram"] = [
        present({"below-bytes": bound, "files": files})
        for bound, files in zip(bounds, facts.size_histogram, strict=True)
    ]
    answer["worst-partitions"] = [
        _plain(partition) | {"partition": values.shown(partition.spec_id, partition.partition)}
        for partition in facts.worst_partitions
    ]
    return answer


def _plain(facts: Any) -> dict[str, Any]:
    """Return the members of facts that have a value, with hyphens in their names."""
    members = {name.removeprefix("is_").replace("_", "-"): value for name, value in asdict(facts).items()}
    return present(members)
