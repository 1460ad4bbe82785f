"""Everything that can reach a file: states of tables, now and earlier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from app.catalog.commits.files.expiry_records import ExpiryRecord
from app.catalog.context.catalog import Catalog, own_catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.locations import is_allowed
from app.catalog.context.places.table_places import own_folders
from app.catalog.deletions.file_system_readers import file_system_warehouses, tables_that_count
from app.catalog.deletions.state_files import StateFiles
from app.database.pointer_states import EarlierState
from app.database.pointers.pointer import Pointer, PointerKind
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.reachability import UNREADABLE
from app.engine.upkeep.command_lines import on_the_command_line
from app.errors import (
    InvalidLocation,
    InvalidMetadata,
    MetadataFileMissing,
    NoSuchWarehouse,
    OrphansRefused,
)
from app.fileio.links import real_location
from app.fileio.locations import exact_folder_name

Note = Callable[[Location], object]
"""Called with each location that is reached, once or more often; returns True for one that is looked for."""
_MEND_EARLIER: Final = (
    ". Mend that file; or delete it, if that state is not needed: what is gone reaches nothing"
)
EVENTS_IN_FLIGHT = 10_000
"""Events are numbered before they can be seen: so many may come to light behind the newest one."""


@dataclass
class ReachedStates:
    """Reads states of tables and calls `note` with every file that they reach.

    Each manifest is read once.

    What a table has now must be readable, or nothing is known. What it had may be gone: a file that is gone leads to
    no other one.
    """

    catalog: Catalog
    """The warehouse of the table whose orphans are looked for."""
    note: Note
    _touched: int = 0
    """How many files that are looked for were found to be reached."""
    _files: StateFiles = field(init=False)
    _states: set[tuple[int, Location]] = field(default_factory=set)
    """Metadata files that were read."""
    _events_seen: int = 0
    _pointers: dict[int, tuple[Location, int]] = field(default_factory=dict)
    _catalogs: dict[int, Catalog] = field(default_factory=dict)
    _linked: dict[str, str] = field(default_factory=dict)
    """Own folders of the table that lie elsewhere, by where they really lie: they are listed as they are spelled."""
    _other_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Further names of folders; see `_names_by_links`."""

    def __post_init__(self) -> None:
        self._files = StateFiles(self._note)

    def _note(self, location: str) -> None:
        self._touched += self.note(Location(location)) is True
        folder, _, name = location.rpartition("/")
        others = self._other_names.get(folder)
        if others is None:
            others = self._other_names[folder] = self._names_by_links(folder)
        for other in others:
            self._touched += self.note(Location(other + name)) is True

    def _names_by_links(self, folder: str) -> tuple[str, ...]:
        """Return where a local folder really lies, and how a listing spells that."""
        if real_location(folder) == folder and not self._linked:
            return ()
        try:
            spelled, real = exact_folder_name(folder), exact_folder_name(real_location(folder))
        except InvalidLocation:
            return ()
        listed = [
            place + real[len(start) :] for start, place in self._linked.items() if real.startswith(start)
        ]
        return tuple({real, *listed} - {spelled})

    def add_table(self, pointer: Pointer, metadata: TableMetadata) -> None:
        """Add all that a table reaches, now and earlier.

        Earlier is what its log, its history and the queue of expired snapshots name.

        Raises:
            OrphansRefused: a file of it cannot be read.
            FilesUnavailable, DatabaseUnavailable: safe to try again.
        """
        states = self.catalog.server.pointer_states
        places = {place: exact_folder_name(real_location(place)) for place in own_folders(metadata)}
        self._linked = {real: place for place, real in places.items() if real != place}
        self._add_current(pointer, metadata)
        for entry in metadata.metadata_log:
            self._add_logged(EarlierState(pointer.warehouse_id, PointerKind.TABLE, entry.metadata_file))
        for state in states.of_table(pointer.uuid, pointer.id):
            self._add_earlier(state)
        for stored in states.queued_expiries(pointer.uuid):
            expired = ExpiryRecord.from_json(stored).expired
            for file in expired.statistics:
                self._note(file.location)
            for snapshot in expired.snapshots:
                with _refused(f"a snapshot that expired from {pointer.identifier}"):
                    self._files.add_snapshot(self.catalog, snapshot, is_current=False)

    def add_others(self) -> None:
        """Add what all other tables reach; after the first time, what has changed since.

        And what those reached last that were dropped or overwritten: they may come back.

        Raises:
            OrphansRefused: a file of one of them cannot be read; names the table.
            FilesUnavailable, DatabaseUnavailable: safe to try again.
        """
        states = self.catalog.server.pointer_states
        seen = states.last_event()
        for other in states.current(after=self._events_seen):
            self._add_if_new(other)
        for warehouse in file_system_warehouses(self.catalog.server):
            with _refused(f"warehouse {warehouse.warehouse.name}"):
                tables = list(tables_that_count(warehouse))
            for other in tables:
                self._add_if_new(other)
        # After the pointers: one that was dropped meanwhile is here.
        for state in states.left(after=self._events_seen):
            self._add_earlier(state)
        self._events_seen = max(0, seen - EVENTS_IN_FLIGHT)

    def _add_if_new(self, pointer: Pointer) -> None:
        if self._pointers.get(pointer.id) == (pointer.metadata_location, pointer.registration):
            return
        if pointer.kind is PointerKind.VIEW:
            self._note(pointer.metadata_location)
            self._pointers[pointer.id] = pointer.metadata_location, pointer.registration
        else:
            self._add_now(pointer)

    def _add_now(self, pointer: Pointer) -> None:
        """Add a table as it is; one that moves meanwhile is read again where it went."""
        catalog = self._catalog_of(pointer.warehouse_id)
        if catalog is None:
            return
        try:
            with _refused(f"table {pointer.identifier}", _mend(pointer, catalog)):
                metadata = catalog.read(TABLES, pointer)
        except MetadataFileMissing as error:
            find_locked = catalog.server.pointers.find_locked
            now = find_locked(pointer.id) if catalog.has_rows else catalog.find(pointer.identifier)
            if now is None:  # dropped since; with purge, its files are gone
                return
            if now.metadata_location != pointer.metadata_location:
                self._add_now(now)
                return
            raise OrphansRefused(
                f"Cannot look for orphans: the metadata file of table {pointer.identifier} is gone, so it is not "
                "known what it reaches; nothing is marked"
            ) from error
        touched = self._touched
        self._add_current(pointer, metadata, catalog)
        if self._touched > touched:
            # It has to do with the files: what it can be rolled back to counts, too.
            for state in catalog.server.pointer_states.of_table(pointer.uuid, pointer.id):
                self._add_earlier(state)

    def _add_current(self, pointer: Pointer, metadata: TableMetadata, catalog: Catalog | None = None) -> None:
        self._note(pointer.metadata_location)
        catalog = catalog or self.catalog
        with _refused(f"table {pointer.identifier}", _mend(pointer, catalog)):
            self._files.add(catalog, metadata, is_current=True)
        self._states.add((pointer.warehouse_id, pointer.metadata_location))
        self._pointers[pointer.id] = pointer.metadata_location, pointer.registration

    def _add_logged(self, state: EarlierState) -> None:
        """Add a state that a table's log names, where writers may name any file."""
        with suppress(InvalidMetadata):
            self._read_earlier(state)

    def _add_earlier(self, state: EarlierState) -> None:
        with _refused(f"the earlier state {state.location}", _MEND_EARLIER):
            self._read_earlier(state)

    def _read_earlier(self, state: EarlierState) -> None:
        self._note(state.location)
        key = state.warehouse_id, state.location
        if key in self._states or state.kind is not PointerKind.TABLE:
            return
        self._states.add(key)
        catalog = self._catalog_of(state.warehouse_id) or self.catalog
        if not is_allowed(catalog, state.location):
            return  # the server can bring back nothing from there
        try:
            metadata = catalog.read_file(TABLES, state.location)
        except MetadataFileMissing:
            if not state.is_purged:
                self._files.check_gone(catalog, state.location)
            return
        with _refused(f"the earlier state {state.location}", _MEND_EARLIER):
            self._files.add(catalog, metadata, is_current=False)

    def _catalog_of(self, warehouse_id: int) -> Catalog | None:
        """Return another warehouse; None if it is gone, and all its tables with it."""
        if warehouse_id not in self._catalogs:
            try:
                self._catalogs[warehouse_id] = own_catalog(self.catalog.server, warehouse_id)
            except NoSuchWarehouse:
                return None
        return self._catalogs[warehouse_id]


def _mend(pointer: Pointer, catalog: Catalog) -> str:
    name = on_the_command_line(pointer.identifier, catalog.warehouse.name)
    let_go = f"`icetower table unregister --unread {name}`"
    return f". Mend that file; or let the table go ({let_go}) and delete the file"


@contextmanager
def _refused(what: str, mend: str = "") -> Iterator[None]:
    """Refuse the whole run if something cannot be read."""
    try:
        yield
    except UNREADABLE as error:
        raise OrphansRefused(
            f"Cannot look for orphans: it is not known what {what} reaches: {error}; nothing is marked{mend}"
        ) from error
