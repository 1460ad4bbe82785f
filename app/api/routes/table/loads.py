"""Loading a table and asking whether it exists: the busiest routes, mostly on the loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.table.tables import config_of, table_config
from app.api.dependencies import Visit
from app.api.responses.answers import no_content, not_modified
from app.api.responses.etags import etag, is_unchanged
from app.api.responses.table_answers import PackableTable, table_answer, tag_of
from app.catalog import tables
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.rows import Pointer
from app.catalog.past.loads import load_as_it_was
from app.engine.model.identifiers import TableIdentifier
from app.errors import InvalidRequest, MetadataFileMissing

_SNAPSHOT_MODES = frozenset({"all", "refs"})


async def load_table(request: Request) -> Response:
    """Return a table, or 304 if the client's copy is current."""
    visit = Visit(request.scope, b"")
    snapshots = visit.query.get("snapshots") or "all"
    if snapshots not in _SNAPSHOT_MODES:
        raise InvalidRequest(f"Invalid snapshots {snapshots[:100]!r}: it must be all or refs")
    catalog, identifier = await _place(visit)
    if catalog.as_of_ms is not None:
        return await _load_as_it_was(visit, catalog, identifier, refs_only=snapshots == "refs")
    held_loads, table = visit.parts.held_loads, (visit.warehouse_name, identifier)
    if held_loads.is_contended(table) and not visit.has_plus and (client := visit.client) is not None:
        if not held_loads.knows_pointer(table):
            held_loads.note_pointer(table, (await _pointer(visit, catalog, "load_table", identifier)).id)
        await held_loads.wait(table, client)
    return await _answer_of_pointer(
        lambda: _pointer(visit, catalog, "load_table", identifier),
        lambda pointer: _loaded(visit, catalog, pointer, refs_only=snapshots == "refs"),
    )


async def _answer_of_pointer(
    find: Callable[[], Awaitable[Pointer]], read: Callable[[Pointer], Awaitable[Response]]
) -> Response:
    """Look again as `find_and_read` does: commits may delete the file meanwhile."""
    pointer = await find()
    while True:
        try:
            return await read(pointer)
        except MetadataFileMissing:
            now = await find()
            if now == pointer:
                raise
            pointer = now


async def _load_as_it_was(
    visit: Visit, catalog: Catalog, identifier: TableIdentifier, *, refs_only: bool
) -> Response:
    loaded = await visit.in_thread(lambda: load_as_it_was(catalog, identifier, refs_only=refs_only))
    tag = tag_of(loaded)
    if is_unchanged(visit.header(b"if-none-match"), tag):
        return not_modified(tag)
    return table_answer(visit.parts.packed_answers, loaded, table_config(loaded.metadata.properties))


async def _loaded(visit: Visit, catalog: Catalog, pointer: Pointer, *, refs_only: bool) -> Response:
    metadata = tables.find_json(catalog, pointer, refs_only=refs_only)
    if metadata is None:
        metadata = await visit.in_thread(lambda: tables.table_json(catalog, pointer, refs_only=refs_only))
    tag = etag(pointer.metadata_location, metadata.version)
    if is_unchanged(visit.header(b"if-none-match"), tag):
        return not_modified(tag)
    config = config_of(metadata.scan_planning_mode)
    return PackableTable(visit.parts.packed_answers, pointer.metadata_location, metadata.content, config, tag)


async def table_exists(request: Request) -> Response:
    """Answer whether a table exists."""
    visit = Visit(request.scope, b"")
    catalog, identifier = await _place(visit)
    return await _answer_of_pointer(
        lambda: _pointer(visit, catalog, "table_exists", identifier),
        lambda pointer: _present(visit, catalog, pointer),
    )


async def _present(visit: Visit, catalog: Catalog, pointer: Pointer) -> Response:
    if tables.is_seen_at_once(catalog, pointer):
        catalog.check_file(TABLES, pointer)
    else:
        await visit.in_thread(lambda: catalog.check_file(TABLES, pointer))
    return no_content()


async def _place(visit: Visit) -> tuple[Catalog, TableIdentifier]:
    identifier = await visit.in_thread(lambda: visit.table) if visit.has_plus else visit.table
    return await visit.load_catalog(), identifier


async def _pointer(visit: Visit, catalog: Catalog, operation: str, identifier: TableIdentifier) -> Pointer:
    if catalog.has_rows and catalog.as_of_ms is None:
        return await visit.parts.lookups.load_table(catalog, operation, identifier)
    return await visit.in_thread(lambda: tables.load_pointer(catalog, operation, identifier))
