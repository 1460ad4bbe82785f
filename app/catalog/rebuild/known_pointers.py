"""Pointers that are known before storage is searched: of the database, of an export."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.file_names import mark_of
from app.catalog.exports.export_files import (
    Export,
    ExportedDrop,
    ExportFile,
    export_folder,
    list_exports,
    read_export,
    sequence_of,
)
from app.catalog.exports.writing import exported_drop
from app.catalog.rebuild.found_files import folder_of
from app.database.pointers.pointer import PointerKind
from app.engine.chains.tables import Since
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.errors import InvalidRequest
from app.fileio.locations import is_inside, place_of
from app.formats.metadata.chain_facts import place_text
from app.formats.metadata.own_names import mark_in

log = logging.getLogger(__name__)

_PAGE = 1_000
_CLOCKS_DIFFER_MS = 24 * 3_600_000
"""Clocks of databases are no further apart."""


class NamedBy(StrEnum):
    """What says how a table or view is called."""

    DATABASE = "database"
    EXPORT = "export"
    DROPPED = "dropped"
    """It was dropped under this name, as an export says, and came back since."""
    PATH = "path"
    """Its location is as this catalog chooses locations: the levels of its namespace, then its name."""
    LOCATION = "location"
    """The last segments of a location that says nothing else."""


@dataclass(frozen=True, slots=True)
class KnownPointer:
    """A pointer as a database or an export has it."""

    kind: PointerKind
    identifier: TableIdentifier
    uuid: TableUuid
    location: Location
    named_by: NamedBy
    left: tuple[Location, ...] = ()
    """Where it was before, if it ever went elsewhere than forward."""
    id: int | None = None
    """The pointer's, if the database has it."""
    is_read_only: bool = False
    """Whether it belongs to another catalog."""

    @property
    def since(self) -> Since:
        """Where to go on from."""
        place = place_text(self.location)
        # It may have been there before under another spelling.
        return Since(place, frozenset(map(place_text, self.left)) - {place})


@dataclass
class Known:
    """All that is known before storage is searched."""

    pointers: list[KnownPointer] = field(default_factory=list)
    dropped: Mapping[TableUuid, int] = field(default_factory=dict)
    """What the database remembers to have dropped or unregistered, and when it did so last."""
    export: Export | None = None
    """The export that names come from."""
    is_export_own: bool = True
    """Whether it is of this very database, from after this backup of it; another one may be in use."""
    drops: tuple[ExportedDrop, ...] = ()
    """What can come back as the export says, and the database has not; earliest drop first."""
    noted: tuple[ExportedDrop, ...] = ()
    """What can come back as the database says."""
    waiting_purges: int = 0
    """Of how many of these the files are to be deleted at the end of their time."""
    inner: tuple[tuple[str, str], ...] = ()
    """Names and roots of other warehouses inside this one, as the database or the export says."""
    has_neighbours: bool = False
    """Whether the database has other warehouses: their tables may lie here, too."""

    def by_key(self) -> dict[str, list[KnownPointer]]:
        """Return the pointers of each table: by uuid, or by the folder of its metadata."""
        found: defaultdict[str, list[KnownPointer]] = defaultdict(list)
        for pointer in self.pointers:
            found[pointer.uuid or folder_of(place_text(pointer.location))].append(pointer)
        return found

    @cached_property
    def exported_names(self) -> dict[str, list[TableIdentifier]]:
        """The names that each uuid has in the export."""
        found: defaultdict[str, list[TableIdentifier]] = defaultdict(list)
        for pointer in self.export.pointers.values() if self.export is not None else ():
            found[pointer.uuid].append(pointer.identifier)
        return dict(found)

    @cached_property
    def exported_drops(self) -> dict[str | None, ExportedDrop]:
        """The first drop of each uuid in the export."""
        dropped = self.export.dropped if self.export is not None else []
        return {drop.uuid: drop for drop in reversed(dropped)}

    @cached_property
    def last_drops(self) -> dict[str | None, ExportedDrop]:
        """The last drop of each uuid that is known and that could come back."""
        drops = reversed([*self.noted, *self.drops])
        return {drop.uuid: drop for drop in sorted(drops, key=lambda drop: drop.dropped_ms)}

    @cached_property
    def marks(self) -> frozenset[str | None]:
        """The marks in the names of files that pointers of the database are at."""
        named = (each for each in self.pointers if each.named_by is NamedBy.DATABASE)
        return frozenset(mark_in(each.location) for each in named)


def load_known(catalog: Catalog, export: Location | None, *, uses_exports: bool) -> Known:
    """Return what the database and the newest export say of a warehouse.

    Args:
        export: the export to use; None for the newest one that is younger than the database.
        uses_exports: False to leave exports out.

    Raises:
        InvalidRequest: the export cannot be understood, or is of a warehouse elsewhere.
        FileMissing, FilesUnavailable: the export cannot be read.
    """
    known = Known(list(pointers_of(catalog)))
    known.dropped = catalog.server.pointer_exports.drop_times(catalog.warehouse.id)
    if export is not None:
        known.export = read_export(catalog.files, export)
        _check_is_of(catalog, known.export)
    elif uses_exports:
        known.export = _newest_export(catalog)
    if known.export is not None:
        known.is_export_own = known.export.mark == mark_of(catalog.server).hex()
        known.pointers += _not_yet_there(known.pointers, known.export)
        known.drops = tuple(_drops_to_note(catalog, known, known.export))
    dropped = catalog.server.dropped.list(catalog.warehouse.id, 0)
    known.noted = tuple(map(exported_drop, dropped))
    known.waiting_purges = sum(item.purge for item in dropped)
    known.has_neighbours = len(catalog.server.warehouses.list_page(0, 2)) > 1
    known.inner = tuple(_inner_warehouses(catalog, known.export))
    return known


def _inner_warehouses(catalog: Catalog, export: Export | None) -> Iterator[tuple[str, str]]:
    others = [(other.name, other.root_location) for other in (export.warehouses if export else ())]
    others += catalog.server.warehouses.roots()
    own = catalog.warehouse.root_location
    for name, root in dict(others).items():
        if is_inside(root, own) and not is_inside(own, root):
            yield name, root


def _drops_to_note(catalog: Catalog, known: Known, export: Export) -> Iterator[ExportedDrop]:
    """Yield what can come back for some time yet, and neither is there nor was dropped here."""
    if not export.dropped:
        return
    entries = catalog.server.dropped.list(catalog.warehouse.id, catalog.now_ms())
    noted = {(entry.kind, entry.namespace, entry.name, entry.dropped_ms) for entry in entries}
    present = {(pointer.uuid, pointer.uuid or pointer.location) for pointer in known.pointers}
    for drop in export.dropped:
        if drop.until_ms <= catalog.now_ms() or (drop.uuid and drop.uuid in known.dropped):
            continue
        if (drop.kind, drop.namespace, drop.name, drop.dropped_ms) in noted:
            continue
        if (drop.uuid, drop.uuid or drop.location) not in present:
            yield drop


def pointers_of(catalog: Catalog) -> Iterator[KnownPointer]:
    """Yield the pointers that the database has of a warehouse."""
    for kind in PointerKind:
        after_id = 0
        while page := catalog.pointers.list_pointers(catalog.warehouse.id, kind, after_id, _PAGE):
            left = catalog.server.pointer_exports.places_left([pointer.id for pointer in page])
            for pointer in page:
                yield KnownPointer(
                    kind,
                    pointer.identifier,
                    pointer.uuid,
                    pointer.metadata_location,
                    NamedBy.DATABASE,
                    tuple(left.get(pointer.id, frozenset()) - {pointer.metadata_location}),
                    pointer.id,
                    pointer.is_read_only,
                )
            after_id = page[-1].id


def _newest_export(catalog: Catalog) -> Export | None:
    """Return the newest export of the warehouse that says what this database does not have.

    A damaged one is passed over for the one before. So is one that this database wrote and has all of: if it is an old
    backup, an export from after the backup may stand before it. What other databases wrote before it is out of date.
    A database that wrote in turn with this one is that of another catalog, which has tables here, too.
    """
    folder = export_folder(catalog.warehouse.root_location, catalog.warehouse.name)
    found: list[ExportFile] = list_exports(catalog.files, folder)
    own = mark_of(catalog.server).hex()
    beside = _written_in_turn(found, own)
    if beside:
        log.warning(
            "another database exported the names of its tables here in turn with this one, and may be in use: its "
            "exports are passed over. To take names from the newest of them, give it with --export: %s",
            max(beside.values(), key=_time_of).location,
        )
        found = [file for file in found if file.mark not in beside]
    others: list[Location] = []
    known_sequence, has_own = catalog.server.pointer_exports.last_sequence(), False
    for file in reversed(found):
        if has_own and file.mark != own:
            others.append(file.location)
            continue
        try:
            if has_own and sequence_of(catalog.files, file.location) <= known_sequence:
                continue  # There may be many of these, and to read all of one takes seconds.
            export = read_export(catalog.files, file.location)
            _check_is_of(catalog, export)
        except InvalidRequest as error:
            log.warning("an export is passed over: %s", error)
            continue
        if export.at_ms > catalog.server.pointer_exports.now_ms() + _CLOCKS_DIFFER_MS:
            # All that it does not name would count as dropped before.
            log.warning("an export is passed over: %s says that it is of the future", file.location)
            continue
        if file.mark == own and export.sequence <= known_sequence:
            has_own = True
            continue
        if file.mark != own:
            for other in _written_in_turn(found, file.mark).values():
                log.warning(
                    "two databases exported names here in turn: of two catalogs, each with tables of its own. If the "
                    "one that is lost is not that of %s, give the newest of the other one with --export: %s",
                    file.location,
                    other.location,
                )
        return export
    if others:
        # A rebuild that was broken off may have left half of the names, and a server saved them.
        log.warning(
            "%d exports of other databases are passed over for a younger one of this database; if this one was not "
            "whole then, give the newest of them with --export: %s",
            len(others),
            others[0],
        )
    return None


def _written_in_turn(found: Sequence[ExportFile], mark: str) -> dict[str, ExportFile]:
    """Return the newest export of each other database that was alive while one was, by mark.

    One that was lost wrote all of its exports before the first of the one that came in its place.
    """
    spans: dict[str, tuple[ExportFile, ExportFile]] = {}
    for file in found:  # oldest first
        spans[file.mark] = (spans.get(file.mark, (file, file))[0], file)
    if mark not in spans:
        return {}
    first, last = map(_time_of, spans.pop(mark))
    return {
        other: newest
        for other, (oldest, newest) in spans.items()
        if _time_of(oldest) < last and first < _time_of(newest)
    }


def _time_of(file: ExportFile) -> int:
    return file.at_ms


def _check_is_of(catalog: Catalog, export: Export) -> None:
    """Check that an export is of what lies here; the warehouse may have had another name.

    All that another one does not name would count as dropped here, and what was dropped there would be noted here.

    Raises:
        InvalidRequest: it is of a warehouse elsewhere, as where a warehouse was copied together with its exports.
    """
    root = catalog.warehouse.root_location
    if export.root_location and place_of(export.root_location) != place_of(root):
        raise InvalidRequest(
            f"{export.location} is of warehouse {export.warehouse[:200]} at {export.root_location[:500]}, and not "
            f"of one at {root}"
        )


def _not_yet_there(present: Iterable[KnownPointer], export: Export) -> Iterator[KnownPointer]:
    """Yield what the export has and the database has not; each name counts by itself."""
    names = {(pointer.uuid, pointer.identifier) for pointer in present}
    uuids = {uuid for uuid, _name in names if uuid}
    in_export = Counter(pointer.uuid for pointer in export.pointers.values())
    for pointer in export.pointers.values():
        is_twin = not pointer.uuid or in_export[pointer.uuid] > 1
        if (pointer.uuid, pointer.identifier) in names or (pointer.uuid in uuids and not is_twin):
            continue
        yield KnownPointer(
            PointerKind(pointer.kind),
            pointer.identifier,
            pointer.uuid,
            pointer.location,
            NamedBy.EXPORT,
            pointer.left,
            is_read_only=pointer.is_read_only,
        )
