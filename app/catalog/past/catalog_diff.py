"""What is different in a warehouse at two times: what came, went and moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS
from app.catalog.context.listings import Listing, Page
from app.catalog.past.moments import check_moment
from app.database.past import PastState
from app.database.pointers.pointer import PointerKind
from app.engine.diff.metadata_diff import metadata_diff
from app.engine.model.data_types.moments import moment_text
from app.engine.model.document import find_count
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.errors import CorruptMetadata, InvalidRequest
from app.recoveries import InvalidMoment, PastIsGone

STRETCH = 200
"""How many tables and views are read for one page that asks for no size."""


@dataclass(frozen=True, slots=True)
class Side:
    """A table or view at one of the two times."""

    identifier: TableIdentifier
    uuid: str
    metadata_location: str | None
    snapshot_id: int | None = None
    rows: int | None = None
    """As the snapshot's summary says; None if it does not, or its metadata is gone."""


@dataclass(frozen=True, slots=True)
class ChangedName:
    """A table or view that is not what it was."""

    kind: PointerKind
    before: Side | None
    """None if it was not there."""
    after: Side | None
    """None if it is not there."""
    changes: tuple[str, ...] = ()
    """What of its metadata is different, in one word each; empty if it came or went, or cannot be read."""
    is_readable: bool = True
    """Whether the metadata of both times could be read."""


@dataclass(frozen=True, slots=True)
class ChangedNamespace:
    """A namespace that is not what it was; properties are None where it was not there."""

    namespace: Namespace
    before: dict[str, str] | None
    after: dict[str, str] | None


@dataclass(frozen=True, slots=True)
class CatalogDiff:
    """What is different at two times."""

    from_ms: int
    to_ms: int
    namespaces: Sequence[ChangedNamespace]
    """Only on the first page."""
    names: Listing[ChangedName]


def load_catalog_diff(catalog: Catalog, from_: str | None, to: str | None, page: Page) -> CatalogDiff:
    """Return what is different in a warehouse at two times.

    What came and went between them is not shown.

    Args:
        catalog: the warehouse.
        from_: the earlier time, as `moment_ms` takes it.
        to: the later one; None for now.
        page: which part; of tables and views with events between the two, in the order of their creation.

    Raises:
        InvalidRequest: the earlier time is not given.
        InvalidMoment: a time makes no sense, or the first is after the second.
        FilesUnavailable: the store does not answer.
    """
    catalog.permit("load_catalog_diff")
    if not from_:
        raise InvalidRequest("Invalid from: give the earlier time")
    from_ms = check_moment(catalog.server, from_)
    to_ms = catalog.now_ms() if to is None else check_moment(catalog.server, to)
    if from_ms > to_ms:
        raise InvalidMoment(f"Invalid times: {moment_text(from_ms)} is after {moment_text(to_ms)}")
    limit = page.limit or STRETCH
    after = int(page.after or 0)
    past, warehouse_id = catalog.server.past, catalog.warehouse.id
    ids = past.moved_between(warehouse_id, from_ms, to_ms, after, limit + 1)
    shown = ids[:limit]
    before, later = past.states(shown, from_ms), past.states(shown, to_ms)
    found = [
        changed
        for pointer_id in shown
        if (changed := _changed(catalog, (before.get(pointer_id), from_ms), (later.get(pointer_id), to_ms)))
    ]
    namespaces = [] if page.after else _namespaces(catalog, from_ms, to_ms)
    next_after = str(shown[-1]) if len(ids) > limit else None
    return CatalogDiff(from_ms, to_ms, namespaces, Listing(found, next_after))


Moment = tuple[PastState | None, int]
"""A state, and when."""


def _changed(catalog: Catalog, before: Moment, after: Moment) -> ChangedName | None:
    was, now = before[0], after[0]
    state = was or now
    if state is None or (was == now):
        return None
    old, old_metadata = _side(catalog, before)
    new, new_metadata = _side(catalog, after)
    is_readable = (old is None or old_metadata is not None) and (new is None or new_metadata is not None)
    return ChangedName(state.kind, old, new, _changes(old_metadata, new_metadata), is_readable)


def _side(catalog: Catalog, moment: Moment) -> tuple[Side | None, TableMetadata | ViewMetadata | None]:
    state, at_ms = moment
    if state is None:
        return None, None
    side = Side(state.identifier, state.uuid, state.location)
    if state.location is None:
        return side, None
    pointer = state.pointer(catalog.warehouse.id, state.location)
    then = replace(catalog, as_of_ms=at_ms)
    try:
        if state.kind is PointerKind.VIEW:
            return side, then.read(VIEWS, pointer)
        metadata = then.read(TABLES, pointer)
    except (PastIsGone, CorruptMetadata):
        return side, None
    snapshot = metadata.current_snapshot
    if snapshot is None:
        return replace(side, rows=0), metadata
    rows = find_count((snapshot.summary or {}).get("total-records"))
    return replace(side, snapshot_id=snapshot.snapshot_id, rows=rows), metadata


def _changes(
    before: TableMetadata | ViewMetadata | None, after: TableMetadata | ViewMetadata | None
) -> tuple[str, ...]:
    parts: dict[str, object] = {}
    if isinstance(before, TableMetadata) and isinstance(after, TableMetadata):
        parts = _parts_of_table(before, after)
    elif isinstance(before, ViewMetadata) and isinstance(after, ViewMetadata):
        parts = _parts_of_view(before, after)
    return tuple(part for part, is_different in parts.items() if is_different)


def _parts_of_table(before: TableMetadata, after: TableMetadata) -> dict[str, object]:
    found = metadata_diff(before, after)
    return {
        "uuid": before.uuid != after.uuid,
        "format-version": found.format_version,
        "location": found.location,
        "schema": found.schema,
        "partition-spec": found.spec,
        "sort-order": found.order,
        "properties": found.properties,
        "refs": found.refs,
        "snapshots": found.snapshots_added or found.snapshots_removed,
    }


def _parts_of_view(before: ViewMetadata, after: ViewMetadata) -> dict[str, object]:
    was, now = before.current_version, after.current_version
    old_fields, new_fields = (
        next(schema for schema in view.schemas if schema.schema_id == view.current_version.schema_id).fields
        for view in (before, after)
    )
    return {
        "uuid": before.uuid != after.uuid,
        "location": before.location != after.location,
        "schema": old_fields != new_fields,
        "properties": before.properties != after.properties,
        "query": (was.representations, was.default_catalog, was.default_namespace)
        != (now.representations, now.default_catalog, now.default_namespace),
    }


def _namespaces(catalog: Catalog, from_ms: int, to_ms: int) -> list[ChangedNamespace]:
    past, warehouse_id = catalog.server.past, catalog.warehouse.id
    found = [
        ChangedNamespace(
            namespace,
            past.find_namespace(warehouse_id, namespace, from_ms),
            past.find_namespace(warehouse_id, namespace, to_ms),
        )
        for namespace in past.namespaces_between(warehouse_id, from_ms, to_ms)
    ]
    return [each for each in found if each.before != each.after]
