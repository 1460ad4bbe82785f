"""Files of exports: where they lie, how they are called, and their lines.

An export is gzipped NDJSON: a header; the warehouse's settings without secrets; in that of the server's first warehouse
one line for each other one; one line for each namespace, table and view, and for all that was dropped and can come
back; the uuids of what was unregistered; at the end how many namespaces and pointers there are. Lines of a kind that
is not known are passed over. It lies in a folder that begins with a dot: nothing that looks for files of tables enters
one.
"""

from __future__ import annotations

import gzip
import io
import json
import logging
import re
import zlib
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from app.catalog.context.places.file_names import EXPORTS
from app.engine.model.identifiers import Namespace, TableIdentifier, check_identifier, check_namespace
from app.engine.model.ids import Location, TableUuid
from app.errors import InvalidName, InvalidRequest
from app.fileio.bounded_reads import read_at_most
from app.fileio.files import FileIO

N = TypeVar("N", Namespace, TableIdentifier)
log = logging.getLogger(__name__)

FORMAT = "icetower-pointers"
VERSION = 1
MOST_BYTES: Final = 256 << 20
"""A million tables take a fifth of it."""
_MOST_UNPACKED_BYTES: Final = 4 << 30
_LONGEST_LINE: Final = 16 << 20
"""The properties of a namespace are one line."""
_NAME = re.compile(
    r"(?P<at>\d{15,})-(?P<mark>[0-9a-f]{8})-(?P<digest>[0-9a-f]{16})-[0-9a-f-]{36}\.ndjson\.gz", re.ASCII
)


@dataclass(frozen=True, slots=True)
class ExportFile:
    """An export that was found, by its name."""

    location: Location
    at_ms: int
    """Later than that of each one before it, whatever the clock said; the export itself has the time."""
    mark: str
    """Of the database that it was made of."""
    digest: str
    """Of all its lines but the header: equal for equal catalogs."""


@dataclass(frozen=True, slots=True)
class ExportedPointer:
    """The line of a table or view."""

    kind: str
    identifier: TableIdentifier
    uuid: TableUuid
    location: Location
    left: tuple[Location, ...] = ()
    """Where it was before, if it ever went elsewhere than forward."""
    is_read_only: bool = False
    """Whether it belongs to another catalog."""


@dataclass(frozen=True, slots=True)
class ExportedDrop:
    """The line of something that can come back; `Dropped` says what its parts mean."""

    kind: str
    namespace: Namespace
    name: str | None
    created_ms: int
    dropped_ms: int
    until_ms: int
    principal: str
    request_id: str
    properties: dict[str, str] = field(default_factory=dict)
    uuid: TableUuid | None = None
    location: Location | None = None
    """None for a namespace, as is its uuid."""
    is_read_only: bool = False


@dataclass(frozen=True, slots=True)
class ExportedSettings:
    """The line of the warehouse itself, without secrets; `env:NAME` is none."""

    defaults: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
    storage: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    """Names of what is not saved, because it is secret."""

    @property
    def has_any(self) -> bool:
        """Whether anything is set."""
        return bool(self.defaults or self.overrides or self.storage or self.left_out)


@dataclass(frozen=True, slots=True)
class ExportedWarehouse:
    """The line of another warehouse of the server."""

    name: str
    root_location: str
    layout: str
    settings: ExportedSettings


@dataclass(slots=True)
class Export:
    """What an export says."""

    location: Location
    at_ms: int
    sequence: int
    """The newest event of any pointer when it was begun."""
    warehouse: str
    root_location: str
    """Of the warehouse; both are empty if it does not say."""
    namespaces: dict[Namespace, dict[str, str]] = field(default_factory=dict)
    pointers: dict[TableIdentifier, ExportedPointer] = field(default_factory=dict)
    dropped: list[ExportedDrop] = field(default_factory=list)
    """Earliest drop first; none in exports of earlier builds."""
    unregistered: set[str] = field(default_factory=set)
    """Uuids of what was handed to another catalog, and is not here; none in exports of earlier builds."""
    settings: ExportedSettings | None = None
    """None in exports of earlier builds."""
    warehouses: list[ExportedWarehouse] = field(default_factory=list)
    """The server's others; only in exports of its first one."""

    @property
    def mark(self) -> str:
        """That of the database that it was made of; empty if the file has another name."""
        match = _NAME.fullmatch(self.location.rpartition("/")[2])
        return match["mark"] if match is not None else ""


def export_folder(root: str, warehouse: str) -> Location:
    """Return where the exports of a warehouse lie."""
    return Location(f"{root.rstrip('/')}/{EXPORTS}/{warehouse}")


def export_name(at_ms: int, mark: str, digest: str, file_uuid: str) -> str:
    """Return the name of a new export; names sort by their time."""
    return f"{at_ms:015d}-{mark}-{digest}-{file_uuid}.ndjson.gz"


def list_exports(files: FileIO, folder: Location) -> list[ExportFile]:
    """Return the exports in a folder, oldest first.

    Raises:
        FilesUnavailable: the store does not answer.
    """
    found = []
    for file in files.list_files(folder):
        match = _NAME.fullmatch(file.location.rpartition("/")[2])
        if match is not None:
            found.append(ExportFile(file.location, int(match["at"]), match["mark"], match["digest"]))
    return sorted(found, key=lambda export: (export.at_ms, export.location))


def namespace_line(namespace: Namespace, properties: dict[str, str]) -> str:
    """Return the line of a namespace."""
    line = _line({"namespace": list(namespace.levels), "properties": properties})
    if _fits(line):
        return line
    log.warning("the properties of namespace %s are too long for an export, and are not saved", namespace)
    return _line({"namespace": list(namespace.levels), "properties": {}})


def pointer_line(pointer: ExportedPointer) -> str:
    """Return the line of a table or view."""
    left = sorted(pointer.left)
    while True:
        line = _line(
            {
                pointer.kind: pointer.identifier.name,
                "in": list(pointer.identifier.namespace.levels),
                "uuid": pointer.uuid,
                "metadata-location": pointer.location,
                **({"left": left} if left else {}),
                **({"read-only": True} if pointer.is_read_only else {}),
            }
        )
        if _fits(line) or not left:
            return line
        # Names of metadata files begin with their numbers: the highest are the likeliest to be met.
        left = left[len(left) // 2 + 1 :]


def dropped_line(drop: ExportedDrop) -> str:
    """Return the line of something that can come back.

    All is one level deeper than in the line of a table, which earlier builds would take it for.
    """
    about: dict[str, object] = {
        "kind": drop.kind,
        "in": list(drop.namespace.levels),
        "created-ms": drop.created_ms,
        "dropped-ms": drop.dropped_ms,
        "until-ms": drop.until_ms,
        "by": drop.principal,
        "request-id": drop.request_id,
    }
    if drop.name is None:
        about["properties"] = drop.properties
    else:
        about |= {"name": drop.name, "uuid": drop.uuid, "metadata-location": drop.location}
    line = _line({"dropped": about | ({"read-only": True} if drop.is_read_only else {})})
    return line if _fits(line) or not drop.properties else dropped_line(replace(drop, properties={}))


def unregistered_line(uuids: Sequence[TableUuid]) -> str:
    """Return a line of some of what was unregistered."""
    return _line({"unregistered": uuids})


def settings_line(settings: ExportedSettings) -> str:
    """Return the line of the warehouse itself."""
    line = _line({"settings": _settings_object(settings)})
    if _fits(line) or not settings.has_any:
        return line
    log.warning("the settings of a warehouse are too long for an export, and are not saved")
    return settings_line(ExportedSettings())


def warehouse_line(warehouse: ExportedWarehouse) -> str:
    """Return the line of another warehouse."""
    about = {"name": warehouse.name, "root-location": warehouse.root_location, "layout": warehouse.layout}
    line = _line({"warehouse": about | _settings_object(warehouse.settings)})
    if _fits(line) or not warehouse.settings.has_any:
        return line
    return warehouse_line(replace(warehouse, settings=ExportedSettings()))


def header_line(warehouse: str, root: str, at_ms: int, sequence: int) -> str:
    """Return the first line: what this is of, and when it was begun."""
    header = {FORMAT: VERSION, "warehouse": warehouse, "root-location": root}
    return _line({**header, "at-ms": at_ms, "sequence": sequence})


def last_line(namespaces: int, pointers: int) -> str:
    """Return the last line: how many there are."""
    return _line({"namespaces": namespaces, "pointers": pointers})


def read_export(files: FileIO, location: Location) -> Export:
    """Return what an export says.

    Raises:
        InvalidRequest: it is not an export, not whole, or of a later version.
        FileMissing, FilesUnavailable, InvalidLocation: it cannot be read.
    """
    content = _content(files, location)
    with _refused(location):
        export, lines = _begun(location, content)
        last: dict[str, Any] = {}
        for last in lines:
            _take(export, last)
        if last != {"namespaces": len(export.namespaces), "pointers": len(export.pointers)}:
            raise InvalidRequest(f"{location} is not whole: its last line does not agree with the others")
        export.unregistered -= {pointer.uuid for pointer in export.pointers.values()}
        export.unregistered -= {drop.uuid for drop in export.dropped if drop.uuid}
        export.dropped.sort(key=lambda drop: drop.dropped_ms)
    return export


def sequence_of(files: FileIO, location: Location) -> int:
    """Return the newest event that an export has seen, by its first line.

    Raises like `read_export`.
    """
    content = _content(files, location)
    with _refused(location):
        return _begun(location, content)[0].sequence


def _content(files: FileIO, location: Location) -> bytes:
    content = read_at_most(files, location, MOST_BYTES)
    if content is None:
        raise InvalidRequest(f"{location} is no export of pointers: it has more than {MOST_BYTES} bytes")
    return content


def _begun(location: Location, content: bytes) -> tuple[Export, Iterator[dict[str, Any]]]:
    """Return what the first line of an export says, and the other lines."""
    lines = _lines(content)
    header = next(lines)
    if header.get(FORMAT) != VERSION:
        raise InvalidRequest(f"{location} is no export of pointers that this build can read")
    if not all(isinstance(header[name], int) for name in ("at-ms", "sequence")):
        raise TypeError("at-ms and sequence must be numbers")
    of_warehouse = str(header.get("warehouse", "")), str(header.get("root-location", ""))
    return Export(location, header["at-ms"], header["sequence"], *of_warehouse), lines


@contextmanager
def _refused(location: Location) -> Iterator[None]:
    try:
        yield
    except (
        OSError,
        EOFError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        StopIteration,
        RecursionError,
        InvalidName,
        zlib.error,
    ) as error:
        raise InvalidRequest(f"{location} is no export of pointers: {error!r:.300}") from error


def _take(export: Export, line: dict[str, Any]) -> None:
    match line:
        case {"namespace": list(levels), "properties": dict(properties)}:
            namespace = check_namespace(Namespace(tuple(map(str, levels))))
            export.namespaces[_once(namespace, export.namespaces)] = _texts(properties)
        case {"in": list(levels), "uuid": str(uuid), "metadata-location": str(location)}:
            kind = "table" if "table" in line else "view"
            identifier = check_identifier(
                TableIdentifier(Namespace(tuple(map(str, levels))), str(line[kind]))
            )
            left = map(Location, map(str, line.get("left", [])))
            export.pointers[_once(identifier, export.pointers)] = ExportedPointer(
                kind,
                identifier,
                TableUuid(uuid),
                Location(location),
                tuple(left),
                line.get("read-only") is True,
            )
        case {"dropped": dict(about)}:
            export.dropped.append(_drop_of(about))
        case {"unregistered": list(uuids)}:
            export.unregistered.update(map(str, uuids))
        case {"settings": dict(about)}:
            export.settings = _settings_from(about)
        case {"warehouse": dict(about)}:
            name, root, layout = (str(about[key]) for key in ("name", "root-location", "layout"))
            export.warehouses.append(ExportedWarehouse(name, root, layout, _settings_from(about)))
        case _:
            pass  # the last line, and what later versions add


def _drop_of(about: dict[str, Any]) -> ExportedDrop:
    name, times = about.get("name"), (about["created-ms"], about["dropped-ms"], about["until-ms"])
    kinds = ("table", "view") if name is not None else ("namespace",)
    if about["kind"] not in kinds or not all(isinstance(time, int) for time in times):
        raise TypeError("a line about what was dropped makes no sense")
    is_namespace = name is None
    return ExportedDrop(
        about["kind"],
        Namespace(tuple(map(str, about["in"]))),
        None if is_namespace else str(name),
        *times,
        principal=str(about["by"]),
        request_id=str(about["request-id"]),
        properties=_texts(about["properties"]) if is_namespace else {},
        uuid=None if is_namespace else TableUuid(str(about["uuid"])),
        location=None if is_namespace else Location(str(about["metadata-location"])),
        is_read_only=about.get("read-only") is True,
    )


def _settings_object(settings: ExportedSettings) -> dict[str, object]:
    return {
        "default-properties": settings.defaults,
        "override-properties": settings.overrides,
        "storage": settings.storage,
        "left-out": settings.left_out,
    }


def _settings_from(about: dict[str, Any]) -> ExportedSettings:
    return ExportedSettings(
        _texts(about["default-properties"]),
        _texts(about["override-properties"]),
        _texts(about["storage"]),
        tuple(map(str, about["left-out"])),
    )


def _texts(mapping: dict[str, Any]) -> dict[str, str]:
    if not all(isinstance(text, str) for text in mapping.values()):
        raise TypeError("properties must be texts")
    return mapping


def _once(name: N, there: Container[N]) -> N:
    """Return a name that is not there yet; raises `ValueError`."""
    if name in there:
        raise ValueError(f"{name} is there twice")
    return name


def _lines(content: bytes) -> Iterator[dict[str, Any]]:
    left_bytes = _MOST_UNPACKED_BYTES
    with gzip.open(io.BytesIO(content)) as stream:
        # What is named as gzip can unpack to any size, and be one line.
        while line := stream.readline(_LONGEST_LINE + 1):
            left_bytes -= len(line)
            if len(line) > _LONGEST_LINE or left_bytes < 0:
                raise ValueError("it unpacks to more than an export can have")
            yield json.loads(line)


def _fits(line: str) -> bool:
    """Say whether a line can be read again. One that cannot makes the whole export useless."""
    return len(line) <= _LONGEST_LINE // 4 or len(line.encode()) <= _LONGEST_LINE


def _line(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
