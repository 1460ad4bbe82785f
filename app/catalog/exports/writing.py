"""Writing exports: each warehouse in its turn, by one server, if something has changed."""

from __future__ import annotations

import gzip
import hashlib
import io
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from app.catalog.context.callers import SERVER_ITSELF
from app.catalog.context.places.file_names import mark_of
from app.catalog.context.server import Server
from app.catalog.exports.export_files import (
    ExportedDrop,
    ExportedPointer,
    ExportedSettings,
    ExportedWarehouse,
    ExportFile,
    dropped_line,
    export_folder,
    export_name,
    header_line,
    last_line,
    list_exports,
    namespace_line,
    pointer_line,
    read_export,
    sequence_of,
    settings_line,
    unregistered_line,
    warehouse_line,
)
from app.database.dropped import Dropped
from app.database.pointers.pointer import PointerKind
from app.database.statements.batches import never
from app.database.warehouses import Layout, Warehouse
from app.engine.model.identifiers import Namespace
from app.engine.model.ids import Location
from app.errors import DatabaseUnavailable, IcetowerError, InvalidRequest
from app.fileio.files import FileIO
from app.fileio.locations import scheme_of
from app.fileio.storage_settings import holds_secret

log = logging.getLogger(__name__)

_PAGE = 1_000
_WAREHOUSES_AT_ONCE: Final = 10
_ATTEMPTS: Final = 5
_IN_PROCESS = "memory"
"""The files of a process end with it, as its database does or not: nothing is saved there."""


class _Line(StrEnum):
    SETTINGS = "settings"
    WAREHOUSE = "warehouse"
    NAMESPACE = "namespace"
    POINTER = "pointer"
    DROPPED = "dropped"
    UNREGISTERED = "unregistered"


class _StoppedError(Exception):
    """The server stops, and names were still listed: nothing was written."""


def export_what_is_due(server: Server, is_stopped: Callable[[], bool] = never) -> None:
    """Write down the pointers of warehouses whose turn it is; what fails waits for the next.

    Args:
        server: whose warehouses they are.
        is_stopped: asked between two warehouses, and two pages of names. The turn is given back then.
    """
    server.permit(SERVER_ITSELF, "export_pointers")
    interval_ms = server.rules.pointer_export_ms
    if not interval_ms:
        return
    waiting = server.pointer_exports.waiting(interval_ms)
    for warehouse in filter(_has_exports, server.warehouses.list()):
        if is_stopped():
            return
        if warehouse.id in waiting or not server.pointer_exports.take_turn(warehouse.id, interval_ms):
            continue
        try:
            export_pointers(server, warehouse, is_stopped)
        except _StoppedError:
            server.pointer_exports.end_turn(warehouse.id, 0)
            return
        except IcetowerError as error:
            log.warning("could not export the pointers of warehouse %s: %s", warehouse.name, error)
        server.pointer_exports.end_turn(warehouse.id, interval_ms)


def export_pointers(
    server: Server, warehouse: Warehouse, is_stopped: Callable[[], bool] = never
) -> Location | None:
    """Write a warehouse's pointers down beside its tables; None if nothing is new.

    The newest few exports of this database stay, as many as the rules say. So do those that know more than the
    database: it is an old backup then, which is said, and they have the names since. Those of other databases are left
    alone.

    Raises:
        FilesUnavailable, DatabaseUnavailable: safe to try again.
    """
    server.permit(SERVER_ITSELF, "export_pointers")
    content = _content(server, warehouse, is_stopped)
    counted = content.counted
    has_names = any(counted[kind] for kind in (_Line.NAMESPACE, _Line.DROPPED, _Line.UNREGISTERED))
    if not has_names and not counted[_Line.WAREHOUSE] and not _settings_of(warehouse).has_any:
        return None
    files, mark = server.files_of(warehouse), mark_of(server).hex()
    folder = export_folder(warehouse.root_location, warehouse.name)
    found = list_exports(files, folder)
    own = [export for export in found if export.mark == mark]
    if own and own[-1].digest == content.digest:
        return None
    if not has_names and len(own) < len(found):
        # The database may be a new one, in the place of one that was lost. The names are in the exports of that one,
        # and a younger export must not stand before them.
        return None
    if own and _is_ahead(files, own[-1], content.sequence):
        if not _is_ahead(files, own[-1], server.pointer_exports.last_sequence()):
            return None  # Another server had the next turn before this one was through with the names.
        log.warning(
            "warehouse %s: %s was exported when this database knew more: the database is an old backup. Stop the "
            "servers on it, and let icetower rebuild bring it forward before anything is committed, dropped or deleted",
            warehouse.name,
            own[-1].location,
        )
    # Names say which one is the newest, and the clock may have been ahead when the last one was written.
    after_all_ms = max([content.at_ms, *(export.at_ms + 1 for export in found)])
    location = Location(f"{folder}/{export_name(after_all_ms, mark, content.digest, server.new_uuid())}")
    files.write_new(location, content.packed)
    server.step("pointers_exported")
    for export in own[: max(0, len(own) + 1 - server.rules.pointer_exports_kept)]:
        if not _is_ahead(files, export, content.sequence):
            files.delete(export.location)
    return location


@dataclass(frozen=True, slots=True)
class _Content:
    """What is in an export."""

    sequence: int
    at_ms: int
    packed: bytes
    digest: str
    counted: Counter[_Line]


class _NameMetTwiceError(Exception):
    """Two pages have one name: a table was dropped or renamed between them."""


def _content(server: Server, warehouse: Warehouse, is_stopped: Callable[[], bool]) -> _Content:
    """Return what is to be written, with each name once: an export with one twice is refused.

    Raises:
        DatabaseUnavailable: names move faster than they are listed.
    """
    for _ in range(_ATTEMPTS):
        with suppress(_NameMetTwiceError):
            return _listed(server, warehouse, is_stopped)
    raise DatabaseUnavailable(f"Names in warehouse {warehouse.name} move faster than they are listed")


def _listed(server: Server, warehouse: Warehouse, is_stopped: Callable[[], bool]) -> _Content:
    # First what may grow, then what was there: an export never claims events that it has not seen.
    sequence, at_ms = server.pointer_exports.last_sequence(), server.pointer_exports.now_ms()
    packed, digest, counted = io.BytesIO(), hashlib.sha256(), Counter[_Line]()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0) as stream:
        stream.write(header_line(warehouse.name, warehouse.root_location, at_ms, sequence).encode())
        for counts, line in _lines(server, warehouse):
            counted[counts] += 1
            if counted.total() % _PAGE == 0 and is_stopped():
                raise _StoppedError
            stream.write(line.encode())
            digest.update(line.encode())
        stream.write(last_line(counted[_Line.NAMESPACE], counted[_Line.POINTER]).encode())
    return _Content(sequence, at_ms, packed.getvalue(), digest.hexdigest()[:16], counted)


def _is_ahead(files: FileIO, export: ExportFile, sequence: int) -> bool:
    """Say whether an export has seen events that the database has not; a damaged one has not."""
    try:
        # Of most it is enough to read the first line. What seems to be ahead must be whole.
        return sequence_of(files, export.location) > sequence and bool(read_export(files, export.location))
    except InvalidRequest:
        return False


def _lines(server: Server, warehouse: Warehouse) -> Iterator[tuple[_Line, str]]:
    """Yield the lines of a warehouse, and what each is of."""
    yield _Line.SETTINGS, settings_line(_settings_of(warehouse))
    for other in _others(server, warehouse):
        yield _Line.WAREHOUSE, warehouse_line(other)
    newest = 0
    for dropped_id, line in _dropped_lines(server, warehouse):
        newest = max(newest, dropped_id)
        yield _Line.DROPPED, line
    after: Namespace | None = None
    while page := server.namespaces.list_all(warehouse.id, after, _PAGE):
        for after, properties in page:
            yield _Line.NAMESPACE, namespace_line(after, properties)
    met = set[int]()  # Hashes: there may be a million names.
    for kind in PointerKind:
        after_id = 0
        while pointers := server.pointers.list_pointers(warehouse.id, kind, after_id, _PAGE):
            left = server.pointer_exports.places_left([pointer.id for pointer in pointers])
            for pointer in pointers:
                places = left.get(pointer.id, frozenset()) - {pointer.metadata_location}
                exported = ExportedPointer(
                    kind.value,
                    pointer.identifier,
                    pointer.uuid,
                    pointer.metadata_location,
                    tuple(sorted(places)),
                    pointer.is_read_only,
                )
                yield _Line.POINTER, pointer_line(exported)
                if hash(pointer.identifier) in met:
                    raise _NameMetTwiceError
                met.add(hash(pointer.identifier))
            after_id = pointers[-1].id
    uuids = server.pointer_exports.unregistered_uuids(warehouse.id)
    for start in range(0, len(uuids), _PAGE):
        yield _Line.UNREGISTERED, unregistered_line(uuids[start : start + _PAGE])
    # What was dropped or brought back meanwhile is in one of the lists at least.
    yield from ((_Line.DROPPED, line) for _, line in _dropped_lines(server, warehouse, newest))


def _dropped_lines(server: Server, warehouse: Warehouse, after: int = 0) -> Iterator[tuple[int, str]]:
    """Yield id and line of what can come back, latest drop first, down to an id."""
    before: int | None = None
    while entries := server.dropped.list(warehouse.id, server.now_ms(), before=before, limit=_PAGE):
        for entry in entries:
            if entry.id <= after:
                return
            yield entry.id, dropped_line(exported_drop(entry))
        before = entries[-1].id


def exported_drop(entry: Dropped) -> ExportedDrop:
    """Return the line of something that can come back."""
    was = entry.pointer
    return ExportedDrop(
        entry.kind,
        entry.namespace,
        entry.name,
        entry.created_ms,
        entry.dropped_ms,
        entry.until_ms,
        entry.principal,
        entry.request_id,
        dict(entry.properties),
        *(() if was is None else (was.uuid, was.metadata_location, was.is_read_only)),
    )


def _has_exports(warehouse: Warehouse) -> bool:
    """Say whether a warehouse's names are to be saved in its folder.

    Those of file-system tables are the folder, and other programs would take ours for a namespace.
    """
    return scheme_of(warehouse.root_location) != _IN_PROCESS and warehouse.layout is not Layout.HADOOP


def _others(server: Server, warehouse: Warehouse) -> list[ExportedWarehouse]:
    """Return the server's other warehouses, if this is the first one that has exports.

    In one place, and not in the folders of all: who may read one warehouse does not have to know of the others.
    """
    first = next(filter(_has_exports, _oldest_first(server)), None)
    if first is None or first.id != warehouse.id:
        return []
    return [
        ExportedWarehouse(item.name, item.root_location, item.layout, _settings_of(item))
        for item in server.warehouses.list()
        if item.id != warehouse.id and scheme_of(item.root_location) != _IN_PROCESS
    ]


def _oldest_first(server: Server) -> Iterator[Warehouse]:
    after = 0
    while page := server.warehouses.list_page(after, _WAREHOUSES_AT_ONCE):
        yield from page
        after = page[-1].id


def _settings_of(warehouse: Warehouse) -> ExportedSettings:
    """Return what may be saved of a warehouse's settings, and the names of the rest."""
    kinds = warehouse.default_properties, warehouse.override_properties, warehouse.storage
    secret = {name for kind in kinds for name, value in kind.items() if holds_secret(name, value)}
    defaults, overrides, storage = map(_without_secrets, kinds)
    return ExportedSettings(defaults, overrides, storage, tuple(sorted(secret)))


def _without_secrets(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: properties[name] for name in sorted(properties) if not holds_secret(name, properties[name])}
