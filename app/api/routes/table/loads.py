"""Loading a table and asking whether it exists: the busiest routes, mostly on the loop."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.table.tables import config_of, loaded_parts, table_config
from app.api.compression import MIN_GZIP_BYTES, SLOW_GZIP_BYTES, accepts_gzip
from app.api.dependencies import Visit
from app.api.responses.answers import JSON, Answer, loaded_table_answer, no_content, not_modified, tag_of
from app.api.responses.etags import ETAG, etag, is_unchanged
from app.catalog import tables
from app.catalog.context.catalog import Catalog
from app.catalog.context.rows import Pointer
from app.catalog.past.loads import load_as_it_was
from app.engine.model.identifiers import TableIdentifier
from app.errors import InvalidRequest, MetadataFileMissing

_SNAPSHOT_MODES = frozenset({"all", "refs"})
_GZIP = (b"content-encoding", b"gzip")
_VARY = (b"vary", b"accept-encoding")


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
    pointer = await _pointer(visit, catalog, "load_table", identifier)
    while True:
        try:
            return await _loaded(visit, catalog, pointer, refs_only=snapshots == "refs")
        except MetadataFileMissing:
            # As in `find_and_read`: a commit may have moved the pointer and deleted the file meanwhile.
            now = await _pointer(visit, catalog, "load_table", identifier)
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
    return loaded_table_answer(loaded, table_config(loaded.metadata.properties))


async def _loaded(visit: Visit, catalog: Catalog, pointer: Pointer, *, refs_only: bool) -> Response:
    metadata = tables.find_json(catalog, pointer, refs_only=refs_only)
    if metadata is None:
        metadata = await visit.in_thread(lambda: tables.table_json(catalog, pointer, refs_only=refs_only))
    tag = etag(pointer.metadata_location, metadata.version)
    if is_unchanged(visit.header(b"if-none-match"), tag):
        return not_modified(tag)
    config = config_of(metadata.scan_planning_mode)
    return await _answer(visit, loaded_parts(pointer.metadata_location, metadata.content, config), tag)


async def table_exists(request: Request) -> Response:
    """Answer whether a table exists."""
    visit = Visit(request.scope, b"")
    catalog, identifier = await _place(visit)
    await _pointer(visit, catalog, "table_exists", identifier)
    return no_content()


async def _place(visit: Visit) -> tuple[Catalog, TableIdentifier]:
    identifier = await visit.in_thread(lambda: visit.table) if visit.has_plus else visit.table
    return await visit.load_catalog(), identifier


async def _pointer(visit: Visit, catalog: Catalog, operation: str, identifier: TableIdentifier) -> Pointer:
    if catalog.has_rows and catalog.as_of_ms is None:
        return await visit.parts.lookups.load_table(catalog, operation, identifier)
    return await visit.in_thread(lambda: tables.load_pointer(catalog, operation, identifier))


async def _answer(visit: Visit, parts: Sequence[bytes], tag: bytes) -> Response:
    headers = [JSON, (ETAG, tag), _VARY]
    size = sum(map(len, parts))
    if size < MIN_GZIP_BYTES or not accepts_gzip(visit.header(b"accept-encoding") or b""):
        headers.append((b"content-length", b"%d" % size))
        return Answer(200, headers, *parts)
    # What is kept under the tag is sent as it is: putting a long answer together would cost more than all else.
    packed = visit.parts.packed_answers.find(tag)
    if packed is None and size >= SLOW_GZIP_BYTES:
        packed = await visit.parts.crew.run(lambda: visit.parts.packed_answers.pack(tag, b"".join(parts)))
    elif packed is None:
        packed = visit.parts.packed_answers.pack(tag, b"".join(parts))
    headers += [_GZIP, (b"content-length", b"%d" % len(packed))]
    return Answer(200, headers, packed)
