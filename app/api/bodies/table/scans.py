"""JSON of scan planning: the scan, and the files to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import orjson
from pydantic import Field

from app import errors
from app.api.bodies.json_body import Body
from app.api.bodies.table.history import CONTENTS
from app.api.bodies.table.scan_columns import written_as_columns
from app.api.error_responses import status_and_type_of
from app.catalog.scans.planning import Cancelled, Completed, Failed, ScanPage, Submitted
from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.expressions.expressions import ALWAYS_TRUE, Expression
from app.engine.model.document import LONG, Bool, Long
from app.engine.model.files.manifests import DataFile, FileKey
from app.engine.model.files.partition_values import PartitionValues
from app.engine.model.ids import FieldId, SnapshotId, SpecId
from app.engine.model.table_metadata import TableMetadata
from app.engine.scan.scan_planner import PlannedColumns, PlannedFile
from app.engine.scan.scan_scope import ScanRequest

_TRUE = orjson.Fragment(b"true")


class PlanTableScanBody(Body):
    snapshot_id: Annotated[SnapshotId, LONG] | None = None
    start_snapshot_id: Annotated[SnapshotId, LONG] | None = None
    end_snapshot_id: Annotated[SnapshotId, LONG] | None = None
    select: tuple[str, ...] | None = None
    filter: Any = None
    case_sensitive: Bool = True
    use_snapshot_schema: Bool = False
    stats_fields: tuple[str, ...] | None = None
    min_rows_requested: Annotated[Long, Field(ge=0)] | None = None

    def request(self) -> ScanRequest:
        """Return the request for the use case; raises `InvalidFilter`."""
        return ScanRequest(
            snapshot_id=self.snapshot_id,
            start_snapshot_id=self.start_snapshot_id,
            end_snapshot_id=self.end_snapshot_id,
            select=self.select,
            filter=ALWAYS_TRUE if self.filter is None else parse_expression(self.filter),
            case_sensitive=self.case_sensitive,
            use_snapshot_schema=self.use_snapshot_schema,
            stats_fields=self.stats_fields or (),
            min_rows=self.min_rows_requested,
        )


class FetchScanTasksBody(Body):
    plan_task: str


def planned_json(outcome: Completed | Submitted) -> bytes:
    """Return the answer to a scan that is to be planned."""
    if isinstance(outcome, Submitted):
        return orjson.dumps({"status": "submitted", "plan-id": outcome.plan_id})
    # The page is from a cache: an object, to which two fields are added.
    return b'{"status":"completed","plan-id":' + orjson.dumps(outcome.plan_id) + b"," + outcome.content[1:]


def plan_json(outcome: ScanPage | Submitted | Cancelled | Failed) -> bytes:
    """Return the state of a plan, or its result."""
    match outcome:
        case Submitted():
            return planned_json(outcome)
        case Cancelled():
            return orjson.dumps({"status": "cancelled"})
        case Failed():
            kind = getattr(errors, outcome.error, errors.IcetowerError)
            status, name = status_and_type_of(kind)
            error = {"message": outcome.message, "type": name, "code": status}
            return orjson.dumps({"status": "failed", "error": error})
        case ScanPage():
            return orjson.dumps({"status": "completed", **_page(outcome)})


def scan_tasks_json(page: ScanPage) -> bytes:
    """Return a page of files and plan tasks."""
    return orjson.dumps(_page(page))


def _page(page: ScanPage) -> dict[str, Any]:
    files = _FilesJson(page.metadata, page.stats_ids)
    tasks: list[dict[str, Any] | orjson.Fragment] = []
    places: dict[FileKey, int] = {}
    deletes: list[dict[str, Any]] = []
    for run in page.files:
        if isinstance(run, PlannedColumns) and not page.stats_ids:
            tasks += written_as_columns(run, files.task)
            continue
        for planned in run:
            task = files.task(planned)
            if planned.deletes:
                references = []
                for delete in planned.deletes:
                    key = delete.key
                    place = places.get(key)
                    if place is None:
                        place = places[key] = len(deletes)
                        deletes.append(files.delete_file(delete))
                    references.append(place)
                task["delete-file-references"] = references
            tasks.append(task)
    return {"plan-tasks": list(page.tasks), "file-scan-tasks": tasks, "delete-files": deletes}


class _FilesJson:
    """Writes the files of one page; what many of them share is written once."""

    def __init__(self, metadata: TableMetadata, stats_ids: frozenset[FieldId]) -> None:
        self._values = PartitionValues(metadata)
        self._stats_ids = sorted(stats_ids)
        self._partitions: dict[tuple[SpecId, tuple[Any, ...]], orjson.Fragment] = {}
        # By identity: the planner hands out one object for all files of a partition.
        self._residuals: dict[int, tuple[Expression, orjson.Fragment]] = {}

    def task(self, planned: PlannedFile) -> dict[str, Any]:
        """Return a file scan task without the references to its deletes."""
        return {
            "data-file": self.data_file(planned.file),
            "residual-filter": self.residual(planned.residual),
        }

    def residual(self, expression: Expression) -> orjson.Fragment:
        if expression is ALWAYS_TRUE:
            return _TRUE
        kept = self._residuals.get(id(expression))
        if kept is None:
            fragment = orjson.Fragment(orjson.dumps(to_json(expression)))
            kept = self._residuals[id(expression)] = (expression, fragment)
        return kept[1]

    def data_file(self, file: DataFile) -> dict[str, Any]:
        found = self._content_file(file)
        if file.first_row_id is not None:
            found["first-row-id"] = file.first_row_id
        if self._stats_ids:
            self._add_stats(found, file)
        return found

    def delete_file(self, file: DataFile) -> dict[str, Any]:
        found = self._content_file(file)
        for name, value in (
            ("equality-ids", file.equality_ids),
            ("referenced-data-file", file.referenced_data_file),
            ("content-offset", file.content_offset),
            ("content-size-in-bytes", file.content_size_in_bytes),
        ):
            if value is not None:
                found[name] = value
        return found

    def _content_file(self, file: DataFile) -> dict[str, Any]:
        found = {
            "spec-id": file.spec_id,
            "partition": self._partition(file),
            "content": CONTENTS[file.content],
            "file-path": file.file_path,
            "file-format": file.file_format,
            "file-size-in-bytes": file.file_size_in_bytes,
            "record-count": file.record_count,
        }
        if file.key_metadata is not None:
            found["key-metadata"] = file.key_metadata.hex().upper()
        if file.split_offsets is not None:
            found["split-offsets"] = file.split_offsets
        if file.sort_order_id is not None:
            found["sort-order-id"] = file.sort_order_id
        return found

    def _partition(self, file: DataFile) -> orjson.Fragment:
        key = (file.spec_id, file.partition)
        kept = self._partitions.get(key)
        if kept is None:
            kept = orjson.Fragment(orjson.dumps(self._values.listed(file.spec_id, file.partition)))
            # In a dictionary 0.0 and -0.0 are one key.
            if not any(isinstance(value, float) for value in file.partition):
                self._partitions[key] = kept
        return kept

    def _add_stats(self, found: dict[str, Any], file: DataFile) -> None:
        counts = (
            ("column-sizes", file.column_sizes),
            ("value-counts", file.value_counts),
            ("null-value-counts", file.null_value_counts),
            ("nan-value-counts", file.nan_value_counts),
        )
        for name, by_id in counts:
            if by_id is not None:
                found[name] = self._map(by_id)
        for name, bounds in (("lower-bounds", file.lower_bounds), ("upper-bounds", file.upper_bounds)):
            if bounds is not None:
                found[name] = self._map(
                    {key: bytes(bounds[key]).hex().upper() for key in self._stats_ids if key in bounds}
                )

    def _map(self, by_id: Mapping[int, Any]) -> dict[str, Sequence[Any]]:
        keys = [field_id for field_id in self._stats_ids if field_id in by_id]
        return {"keys": keys, "values": [by_id[field_id] for field_id in keys]}
