"""JSON of what a table was: snapshots, files, history, differences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import orjson

from app.catalog.context.rows import PointerEvent
from app.catalog.diffs import State, TableDiff
from app.catalog.history import FilePage, History, Reign, SnapshotFacts
from app.engine.diff.file_diff import FileTotals, PartitionTotals
from app.engine.diff.metadata_diff import MetadataDiff
from app.engine.diff.schema_changes import SchemaChange
from app.engine.expressions.expression_json import parse_expression
from app.engine.expressions.expressions import Expression
from app.engine.model.document import Document
from app.engine.model.manifests import FileContent, ManifestEntry
from app.engine.model.partition_values import PartitionValues
from app.errors import InvalidRequest

MAX_FILTER_LENGTH = 30_000
CONTENTS = {
    FileContent.DATA: "data",
    FileContent.POSITION_DELETES: "position-deletes",
    FileContent.EQUALITY_DELETES: "equality-deletes",
}
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def filter_in_query(text: str) -> Expression:
    """Return the filter that a query parameter holds as JSON.

    Raises:
        InvalidRequest: it is not JSON, or too long.
        InvalidFilter: it is no filter.
    """
    if len(text) > MAX_FILTER_LENGTH:
        raise InvalidRequest(f"Invalid filter: {len(text)} characters are more than {MAX_FILTER_LENGTH}")
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"Invalid filter: it is not JSON: {error}") from error
    return parse_expression(value)


def snapshots_json(facts: Sequence[SnapshotFacts], next_page_token: str | None) -> bytes:
    """Return a page of snapshots."""
    return _page({"snapshots": [_snapshot(item) for item in facts]}, next_page_token)


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
    return _page({"snapshot-id": page.snapshot.snapshot_id, "files": files}, next_page_token)


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
    return {key: value for key, value in facts.items() if value is not None}


def history_json(history: History, next_page_token: str | None) -> bytes:
    """Return what was current when, and a page of what happened to the pointer."""
    answer: dict[str, Any] = {"events": [_event(event) for event in history.events.items]}
    if history.reigns:
        answer = {"current": [_reign(reign) for reign in history.reigns], **answer}
    return _page(answer, next_page_token)


def _reign(reign: Reign) -> dict[str, Any]:
    facts = {"snapshot-id": reign.snapshot_id, "since-ms": reign.since_ms, "until-ms": reign.until_ms}
    return {key: value for key, value in facts.items() if value is not None}


def _event(event: PointerEvent) -> dict[str, Any]:
    facts = {
        "sequence": event.sequence,
        "event": event.event,
        "at-ms": event.at_ms,
        "author": event.author,
        "request-id": event.request_id,
        "namespace": event.identifier.namespace.levels,
        "table": event.identifier.name,
        "metadata-location-before": event.previous_location,
        "metadata-location-after": event.location,
    }
    return {key: value for key, value in facts.items() if value is not None}


def diff_json(diff: TableDiff, next_page_token: str | None, *, is_first: bool) -> bytes:
    """Return a difference; the pages after the first have files only."""
    files = [{"change": change.kind, **_file(change.entry, diff.values)} for change in diff.files.items]
    if not is_first:
        return _page({"files": files}, next_page_token)
    answer: dict[str, Any] = {
        "from": _state(diff.before),
        "to": _state(diff.after),
        "relation": diff.relation,
    }
    if diff.common_ancestor is not None:
        answer["common-ancestor-id"] = diff.common_ancestor
    if diff.between:
        answer["snapshots"] = list(diff.between)
    answer |= _both(diff.totals)
    answer["partitions"] = [
        {"spec-id": spec_id, "partition": diff.values.shown(spec_id, partition), **_both(totals)}
        for spec_id, partition, totals in diff.partitions
    ]
    answer["schema-changes"] = [_schema_change(change) for change in diff.schema]
    if diff.metadata is not None:
        answer["metadata"] = _metadata(diff.metadata)
    return _page({**answer, "files": files}, next_page_token)


def _state(state: State) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    if state.location is not None:
        answer["metadata-location"] = state.location
    if state.snapshot is not None:
        answer["snapshot-id"] = state.snapshot.snapshot_id
        answer["timestamp-ms"] = state.snapshot.timestamp_ms
    answer["schema-id"] = state.schema.schema_id
    return answer


def _both(totals: PartitionTotals) -> dict[str, Any]:
    return {"added": _totals(totals.added), "removed": _totals(totals.removed)}


def _totals(totals: FileTotals) -> dict[str, int]:
    return {
        "data-files": totals.data_files,
        "delete-files": totals.delete_files,
        "rows": totals.rows,
        "deletes": totals.deletes,
        "bytes": totals.bytes,
    }


def _schema_change(change: SchemaChange) -> dict[str, Any]:
    answer: dict[str, Any] = {"change": _WORD.sub("-", type(change).__name__).lower()}
    for field in fields(change):
        value = getattr(change, field.name)
        if value is not None:
            shown = sorted(value) if isinstance(value, frozenset) else value
            answer[field.name.replace("_", "-")] = shown
    return answer


def _metadata(diff: MetadataDiff) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    single = {
        "format-version": diff.format_version,
        "location": diff.location,
        "partition-spec": diff.spec,
        "sort-order": diff.order,
    }
    for name, pair in single.items():
        if pair is not None:
            answer[name] = _pair(pair)
    maps: dict[str, Mapping[str, tuple[Any, Any]]] = {"properties": diff.properties, "refs": diff.refs}
    for name, pairs in maps.items():
        if pairs:
            answer[name] = {key: _pair(pair) for key, pair in pairs.items()}
    if diff.snapshots_added:
        answer["snapshots-added"] = list(diff.snapshots_added)
    if diff.snapshots_removed:
        answer["snapshots-removed"] = list(diff.snapshots_removed)
    return answer


def metadata_diff_object(diff: MetadataDiff) -> dict[str, Any]:
    """Return what distinguishes two versions of the metadata, as a difference of two states shows it."""
    return {"schema-changes": [_schema_change(change) for change in diff.schema], "metadata": _metadata(diff)}


def _pair(pair: tuple[Any, Any]) -> dict[str, Any]:
    named = zip(("from", "to"), pair, strict=True)
    return {name: _plain(value) for name, value in named if value is not None}


def _plain(value: Any) -> Any:
    return value.to_object() if isinstance(value, Document) else value


def _page(answer: dict[str, Any], next_page_token: str | None) -> bytes:
    if next_page_token is not None:
        answer["next-page-token"] = next_page_token
    return orjson.dumps(answer)
