"""Writing exports: each warehouse in its turn, by one server, if something has changed."""

from __future__ import annotations

import gzip
import hashlib
import io
import logging
from collections.abc import Iterator

from app.catalog.context.callers import SERVER_ITSELF
from app.catalog.context.file_names import mark_of
from app.catalog.context.server import Server
from app.catalog.exports.export_files import (
    ExportedPointer,
    ExportFile,
    export_folder,
    export_name,
    header_line,
    last_line,
    list_exports,
    namespace_line,
    pointer_line,
    read_export,
)
from app.database.pointers.pointer import PointerKind
from app.database.warehouses import Warehouse
from app.engine.model.identifiers import Namespace
from app.engine.model.ids import Location
from app.errors import IcetowerError, InvalidRequest
from app.fileio.files import FileIO
from app.fileio.locations import scheme_of

log = logging.getLogger(__name__)

_PAGE = 1_000
_IN_PROCESS = "memory"
"""The files of a process end with it, as its database does or not: nothing is saved there."""


def export_what_is_due(server: Server) -> None:
    """Write down the pointers of warehouses whose turn it is; what fails waits for the next."""
    server.permit(SERVER_ITSELF, "export_pointers")
    interval_ms = server.rules.pointer_export_ms
    if not interval_ms:
        return
    for warehouse in server.warehouses.list():
        if scheme_of(warehouse.root_location) == _IN_PROCESS:
            continue
        if not server.pointer_exports.take_turn(warehouse.id, interval_ms):
            continue
        try:
            export_pointers(server, warehouse)
        except IcetowerError as error:
            log.warning("could not export the pointers of warehouse %s: %s", warehouse.name, error)
        server.pointer_exports.end_turn(warehouse.id, interval_ms)


def export_pointers(server: Server, warehouse: Warehouse) -> Location | None:
    """Write a warehouse's pointers down beside its tables; None if nothing has changed.

    The newest few exports of this database stay, as many as the rules say. So do those that know more than the
    database: it is an old backup then, and they have the names since. Those of other databases are left alone.

    Raises:
        FilesUnavailable, DatabaseUnavailable: safe to try again.
    """
    server.permit(SERVER_ITSELF, "export_pointers")
    # First what may grow, then what was there: an export never claims events that it has not seen.
    sequence, at_ms = server.pointer_exports.last_sequence(), server.pointer_exports.now_ms()
    packed, digest, pointers, namespaces = io.BytesIO(), hashlib.sha256(), 0, 0
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0) as stream:
        stream.write(header_line(warehouse.name, warehouse.root_location, at_ms, sequence).encode())
        for is_namespace, line in _lines(server, warehouse):
            namespaces += is_namespace
            pointers += not is_namespace
            stream.write(line.encode())
            digest.update(line.encode())
        stream.write(last_line(namespaces, pointers).encode())
    if not namespaces:
        return None
    files, mark = server.files_of(warehouse), mark_of(server).hex()
    folder, short_digest = export_folder(warehouse.root_location, warehouse.name), digest.hexdigest()[:16]
    own = [export for export in list_exports(files, folder) if export.mark == mark]
    if own and own[-1].digest == short_digest:
        return None
    location = Location(f"{folder}/{export_name(at_ms, mark, short_digest, server.new_uuid())}")
    files.write_new(location, packed.getvalue())
    server.step("pointers_exported")
    for export in own[: max(0, len(own) + 1 - server.rules.pointer_exports_kept)]:
        if not _is_ahead(files, export, sequence):
            files.delete(export.location)
    return location


def _is_ahead(files: FileIO, export: ExportFile, sequence: int) -> bool:
    """Say whether an export has seen events that the database has not; a damaged one has not."""
    try:
        return read_export(files, export.location).sequence > sequence
    except InvalidRequest:
        return False


def _lines(server: Server, warehouse: Warehouse) -> Iterator[tuple[bool, str]]:
    """Yield the lines of a warehouse, and whether each is a namespace's."""
    after: Namespace | None = None
    while page := server.namespaces.list_all(warehouse.id, after, _PAGE):
        for after, properties in page:
            yield True, namespace_line(after, properties)
    for kind in PointerKind:
        after_id = 0
        while pointers := server.pointers.list_pointers(warehouse.id, kind, after_id, _PAGE):
            left = server.pointer_exports.places_left([pointer.id for pointer in pointers])
            for pointer in pointers:
                places = left.get(pointer.id, frozenset()) - {pointer.metadata_location}
                yield (
                    False,
                    pointer_line(
                        ExportedPointer(
                            kind.value,
                            pointer.identifier,
                            pointer.uuid,
                            pointer.metadata_location,
                            tuple(sorted(places)),
                            pointer.is_read_only,
                        )
                    ),
                )
            after_id = pointers[-1].id
