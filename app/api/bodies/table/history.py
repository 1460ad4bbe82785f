"""JSON of a table's history: snapshots, files, events, differences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import orjson

from app.api.bodies.json_answer import as_long, page_json, present
from app.catalog.context.rows import PointerEvent
from app.catalog.diffs import State, TableDiff
from app.catalog.history import FilePage, History, Reign, SnapshotFacts
from app.engine.diff.file_diff import FileTotals, PartitionTotals
from app.engine.diff.metadata_diff import MetadataDiff
from app.engine.diff.schema_changes import SchemaChange
from app.engine.expressions.expression_json import parse_expression
from app.engine.expressions.expressions import Expression
from app.engine.model.document import Document
from app.engine.model.files.manifests import FileContent, ManifestEntry
from app.engine.model.files.partition_values import PartitionValues
from app.errors import InvalidRequest

MAX_FILTER_LENGTH = 30_000
CONTENTS = {content: content.name.lower().replace("_", "-") for content in FileContent}
"""The protocol's names for the contents of files."""
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def filter_in_query(text: str) -> Expression:
    """Return the filter that a query parameter holds; raises `BadRequest`."""
    if len(text) > MAX_FILTER_LENGTH:
        raise InvalidRequest(f"Invalid filter: {len(text)} characters are more than {MAX_FILTER_LENGTH}")
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"Invalid filter: it is not JSON: {error}") from error
    return parse_expression(value)


def snapshots_json(facts: Sequence[SnapshotFacts], next_page_token: str | None) -> bytes:
    """Return a page of snapshots."""
    return page_json({"snapshots": [_snapshot(item) for item in facts]}, next_page_token)


def snapshot_json(facts: SnapshotFacts) -> bytes:
    """Return one snapshot."""
    return orjson.dumps(_snapshot(facts))


def _snapshot(facts: SnapshotFacts) -> dict[str, Any]:
    return {
        **facts.snapshot.to_object(),
        "refs": list(facts.refs),
        "branches": list(facts.branches),
        "is-current": facts.is_current,
    }


def files_json(page: FilePage, next_page_token: str | None) -> bytes:
    """Return a page of a snapshot's files."""
    files = [_file(entry, page.partitions) for entry in page.entries.items]
    return page_json({"snapshot-id": page.snapshot.snapshot_id, "files": files}, next_page_token)


def _file(entry: ManifestEntry, values: PartitionValues) -> dict[str, Any]:
    file = entry.file
    facts = {
        "content": CONTENTS[file.content],
        "file-path": file.file_path,
        "file-format": file.file_format,
        "spec-id": file.spec_id,
        "partition": values.shown(file.spec_id, file.partition),
        "record-count": file.record_count,
        "file-size-in-bytes": file.file_size_in_bytes,
        "snapshot-id": entry.snapshot_id,
        "sequence-number": entry.data_sequence_number,
        "file-sequence-number": entry.file_sequence_number,
        "first-row-id": file.first_row_id,
        "sort-order-id": file.sort_order_id,
        "equality-ids": file.equality_ids,
        "referenced-data-file": file.referenced_data_file,
        "content-offset": file.content_offset,
        "content-size-in-bytes": file.content_size_in_bytes,
    }
    return present(facts)


def history_json(history: History, next_page_token: str | None) -> bytes:
    """Return which snapshots were current when, and a page of the pointer's events."""
    answer: dict[str, Any] = {"events": [_event(event) for event in history.events.items]}
    if history.reigns:
        answer = {"current": [_reign(reign) for reign in history.reigns], **answer}
    return page_json(answer, next_page_token)


def _reign(reign: Reign) -> dict[str, Any]:
    return present({"snapshot-id": reign.snapshot_id, "since-ms": reign.since_ms, "until-ms": reign.until_ms})


def _event(event: PointerEvent) -> dict[str, Any]:
    facts = {
        "sequence": event.sequence,
        "event": event.event,
        "at-ms": event.at_ms,
        "author": event.author,
        "request-id": event.request_id,
        **present({"job": event.job}),
        "namespace": event.identifier.namespace.levels,
        "table": event.identifier.name,
        "metadata-location-before": event.previous_location,
        "metadata-location-after": event.location,
    }
    return present(facts)


def diff_json(diff: TableDiff, next_page_token: str | None, *, is_first: bool) -> bytes:
    """Return a difference; the pages after the first have files only."""
    files = [{"change": change.kind, **_file(change.entry, diff.values)} for change in diff.files.items]
    if not is_first:
        return page_json({"files": files}, next_page_token)
    facts = {
        "from": _state(diff.before),
        "to": _state(diff.after),
        "relation": diff.relation,
        "common-ancestor-id": diff.common_ancestor,
        "snapshots": list(diff.between) or None,
        **_both(diff.totals),
        "partitions": [
            {"spec-id": spec_id, "partition": diff.values.shown(spec_id, partition), **_both(totals)}
            for spec_id, partition, totals in diff.partitions
        ],
        "schema-changes": [_schema_change(change) for change in diff.schema],
        "metadata": None if diff.metadata is None else _metadata(diff.metadata),
        "files": files,
    }
    return page_json(present(facts), next_page_token)


def _state(state: State) -> dict[str, Any]:
    snapshot = state.snapshot
    facts = {
        "metadata-location": state.location,
        "snapshot-id": snapshot and snapshot.snapshot_id,
        "timestamp-ms": snapshot and snapshot.timestamp_ms,
        "schema-id": state.schema.schema_id,
    }
    return present(facts)


def _both(totals: PartitionTotals) -> dict[str, Any]:
    return {"added": _totals(totals.added), "removed": _totals(totals.removed)}


def _totals(totals: FileTotals) -> dict[str, int]:
    return {
        "data-files": totals.data_files,
        "delete-files": totals.delete_files,
        "rows": as_long(totals.rows),
        "deletes": as_long(totals.deletes),
        "bytes": as_long(totals.bytes),
    }


def _schema_change(change: SchemaChange) -> dict[str, Any]:
    answer: dict[str, Any] = {"change": _WORD.sub("-", type(change).__name__).lower()}
    for field in fields(change):
        value = getattr(change, field.name)
        answer[field.name.replace("_", "-")] = sorted(value) if isinstance(value, frozenset) else value
    return present(answer)


def _metadata(diff: MetadataDiff) -> dict[str, Any]:
    facts = {
        "format-version": _pair(diff.format_version),
        "location": _pair(diff.location),
        "partition-spec": _pair(diff.spec),
        "sort-order": _pair(diff.order),
        "properties": {key: _pair(pair) for key, pair in diff.properties.items()},
        "refs": {key: _pair(pair) for key, pair in diff.refs.items()},
        "snapshots-added": list(diff.snapshots_added),
        "snapshots-removed": list(diff.snapshots_removed),
    }
    return {name: value for name, value in facts.items() if value}


def metadata_diff_object(diff: MetadataDiff) -> dict[str, Any]:
    """Return the difference of two versions of the metadata."""
    return {"schema-changes": [_schema_change(change) for change in diff.schema], "metadata": _metadata(diff)}


def _pair(pair: tuple[Any, Any] | None) -> dict[str, Any]:
    before, after = pair or (None, None)
    return present({"from": _plain(before), "to": _plain(after)})


def _plain(value: Any) -> Any:
    return value.to_object() if isinstance(value, Document) else value
