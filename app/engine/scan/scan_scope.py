"""What a scan is about: a request, resolved with a table's metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from app.engine.expressions.expressions import (
    ALWAYS_TRUE,
    Expression,
    NamedReference,
    TransformTerm,
    predicates_of,
)
from app.engine.model.ancestry import ancestors
from app.engine.model.ids import FieldId, SnapshotId
from app.engine.model.schema import Schema
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.selection.files import RowFilter
from app.errors import InvalidFilter, InvalidRequest, NotSupported

METADATA_COLUMNS: Final = frozenset(
    "_file _pos _deleted _spec_id _partition _row_id file_path pos row _change_type _change_ordinal "
    "_commit_snapshot_id".split()
)
"""Columns that readers add; they may be selected, and no statistics are kept of them."""
_LAST_UPDATED: Final = "_last_updated_sequence_number"


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What a client wants to read. Without any snapshot id it is the table's current state."""

    snapshot_id: SnapshotId | None = None
    start_snapshot_id: SnapshotId | None = None
    """An incremental scan reads what was appended after this one, up to `end_snapshot_id`."""
    end_snapshot_id: SnapshotId | None = None
    select: tuple[str, ...] | None = None
    filter: Expression = ALWAYS_TRUE
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    stats_fields: tuple[str, ...] = ()
    min_rows: int | None = None


@dataclass(frozen=True, slots=True)
class ScanScope:
    """Everything that decides which files a scan reads: equal scopes have equal files."""

    snapshot: Snapshot | None
    """None for a table without data."""
    start_snapshot_id: SnapshotId | None
    """Set for an incremental scan."""
    rows: RowFilter
    stats_ids: frozenset[FieldId]
    """Columns whose metrics are wanted."""


def scope_of(metadata: TableMetadata, request: ScanRequest) -> ScanScope:
    """Resolve a request with a table as it is now.

    Raises:
        InvalidRequest: a snapshot or column does not exist, or the snapshots do not make a scan.
        InvalidFilter: the filter does not fit the columns.
        NotSupported: a column is selected whose values the files of a plan cannot bring.
    """
    if _LAST_UPDATED in (request.select or ()):
        # Spark would read null, and an update that copies rows would write that they were all changed by it.
        raise NotSupported(
            f"Cannot plan a scan of {_LAST_UPDATED}: files in plans have no sequence numbers; "
            "plan it in the client (scan-planning-mode=client)"
        )
    start_id = request.start_snapshot_id
    if start_id is None and request.end_snapshot_id is None:
        snapshot = (
            metadata.current_snapshot
            if request.snapshot_id is None
            else _snapshot(metadata, request.snapshot_id)
        )
    else:
        if start_id is None or request.end_snapshot_id is None:
            raise InvalidRequest(
                "Invalid scan: start-snapshot-id and end-snapshot-id are only of use together"
            )
        if request.snapshot_id is not None:
            raise InvalidRequest("Invalid scan: snapshot-id cannot be combined with a range of snapshots")
        snapshot = _snapshot(metadata, request.end_snapshot_id)
        _check_range(metadata, start_id, snapshot)
    if not request.use_snapshot_schema or snapshot is None:
        return _scope_in(metadata.current_schema, request, snapshot)
    try:
        scope = _scope_in(metadata.schema_of(snapshot), request, snapshot)
    except (InvalidRequest, InvalidFilter):
        # Spark 4 asks for the snapshot's schema in every scan, also where its columns are those of the table.
        with suppress(InvalidRequest, InvalidFilter):
            return _scope_in(metadata.current_schema, request, snapshot)
        raise
    _check_names_are_plain(metadata, request, snapshot)
    return scope


def _scope_in(schema: Schema, request: ScanRequest, snapshot: Snapshot | None) -> ScanScope:
    _column_ids(request.select or (), schema, "select", case_sensitive=request.case_sensitive)
    stats_ids = _column_ids(
        request.stats_fields, schema, "stats-fields", case_sensitive=request.case_sensitive
    )
    return ScanScope(
        snapshot=snapshot,
        start_snapshot_id=request.start_snapshot_id,
        rows=RowFilter.of(request.filter, schema, case_sensitive=request.case_sensitive),
        stats_ids=frozenset(stats_ids),
    )


def _check_names_are_plain(metadata: TableMetadata, request: ScanRequest, snapshot: Snapshot) -> None:
    """Refuse a filter whose names mean other columns today, if a branch may be read.

    Its reader means the columns of today: files would be left out by the values of others.
    """
    then, now = metadata.schema_of(snapshot), metadata.current_schema
    heads = {ref.snapshot_id for ref in metadata.snapshot_refs.values() if ref.is_branch}
    if then.schema_id == now.schema_id or snapshot.snapshot_id not in heads:
        return
    for name in _names_in(request.filter):
        was = _column_ids([name], then, "filter", case_sensitive=request.case_sensitive)
        with suppress(InvalidRequest):
            if was != _column_ids([name], now, "filter", case_sensitive=request.case_sensitive):
                raise InvalidFilter(
                    f"Invalid filter: {name[:100]!r} is one column in the schema of snapshot "
                    f"{snapshot.snapshot_id} and another one in the table's, and both could be meant: plan "
                    "without use-snapshot-schema, or in the client"
                )


def _names_in(expression: Expression) -> Iterator[str]:
    for predicate in predicates_of(expression):
        term = predicate.term
        reference = term.reference if isinstance(term, TransformTerm) else term
        if isinstance(reference, NamedReference):
            yield reference.name


def appends_in(metadata: TableMetadata, scope: ScanScope) -> Sequence[Snapshot]:
    """Return the appending snapshots of an incremental scan, oldest first."""
    if scope.snapshot is None:
        return ()
    found: list[Snapshot] = []
    for snapshot in ancestors(metadata, scope.snapshot.snapshot_id):
        if snapshot.snapshot_id == scope.start_snapshot_id:
            break
        # A v1 writer may leave the operation out; mostly such snapshots are appends.
        if snapshot.operation in (None, "append"):
            found.append(snapshot)
    return found[::-1]


def _snapshot(metadata: TableMetadata, snapshot_id: SnapshotId) -> Snapshot:
    found = metadata.snapshots_by_id.get(snapshot_id)
    if found is None:
        raise InvalidRequest(f"Invalid scan: snapshot {snapshot_id} does not exist")
    return found


def is_whole_range(metadata: TableMetadata, start_id: SnapshotId, end: Snapshot) -> bool:
    """Return whether a snapshot descends from another one by snapshots that are all there."""
    line = list(ancestors(metadata, end.snapshot_id))
    # An expired start is still known as the parent of the oldest snapshot.
    return line[-1].parent_snapshot_id == start_id or any(item.snapshot_id == start_id for item in line)


def _check_range(metadata: TableMetadata, start_id: SnapshotId, end: Snapshot) -> None:
    if not is_whole_range(metadata, start_id, end):
        raise InvalidRequest(
            f"Invalid scan: snapshot {start_id} is no ancestor of snapshot {end.snapshot_id}"
        )


def _column_ids(names: Iterable[str], schema: Schema, where: str, *, case_sensitive: bool) -> list[FieldId]:
    found: list[FieldId] = []
    for name in names:
        alike = set() if case_sensitive else set(schema.names_alike.get(name.lower(), {}).values())
        field_id: FieldId | None = None
        if case_sensitive:
            field_id = schema.ids_by_name.get(name)
        elif len(alike) == 1:
            (field_id,) = alike
        if field_id is not None:
            found.append(field_id)
        elif len(alike) > 1:
            raise InvalidRequest(f"Invalid {where}: {name[:100]!r} could be any of several columns")
        elif name not in METADATA_COLUMNS and not name.startswith("_partition."):
            raise InvalidRequest(f"Invalid {where}: there is no column named {name[:100]!r}")
    return found
