"""Looking at a table: which files it names outside its own places."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from app.catalog.commits.files.foreign_files import folders_to_note
from app.catalog.context.absent_stores import check_table_is_there
from app.catalog.context.catalog import find_and_read, own_catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.table_places import homes_of
from app.catalog.context.server import Server
from app.catalog.deletions.state_files import StateFiles
from app.database.pointers.foreign_files import ANYWHERE
from app.database.pointers.pointer import Pointer
from app.engine.guard.foreign_files import ForeignFiles, folder_of
from app.engine.model.table_metadata import TableMetadata
from app.engine.upkeep.command_lines import on_the_command_line
from app.errors import (
    FilesUnavailable,
    IcetowerError,
    InvalidLocation,
    MetadataFileMissing,
    NoSuchWarehouse,
    StoreNotOpened,
    Throttled,
    Unavailable,
)
from app.fileio.locations import flaw_of, folders_of

log = logging.getLogger(__name__)

AGAIN_SECONDS = 3_600.0
"""How long housekeeping leaves a table alone that it could not read."""
KEPT_LOOKS = 16
"""At how many tables housekeeping goes on looking where it stopped."""
_ODD = frozenset("%\\")


class ForeignLook:
    """Looks at one table, and again where it went since; each manifest is read once."""

    def __init__(self, server: Server, pointer_id: int, note: Callable[[str], object]) -> None:
        """Start without files; `note` is called with each file outside the table's own places."""
        self._server, self._pointer_id, self._note = server, pointer_id, note
        self._files = StateFiles(self._add)
        self._own: frozenset[str] = frozenset()
        self._is_own: dict[str, bool] = {}
        self._foreign: Final = ForeignFiles(lambda _location: False)
        self._seen: tuple[str, int] | None = None

    def look(self, pointer: Pointer) -> None:
        """Look at a table as it is now, and note where it names files of others.

        What is gone names nothing: neither a manifest nor a metadata file that is not there leads to another file.

        Args:
            pointer: the table's, as it was found.

        Raises:
            FilesUnavailable, Throttled: the table cannot be read, so it is not known which files it names. So it is
                where no file at all is found: the store may be back later.
            DatabaseUnavailable: safe to try again.
        """
        if self._seen is None or self._seen[1] != pointer.registration:
            # What was brought from elsewhere may have other content under the same names.
            self._files = StateFiles(self._add)
        places = self._server.foreign_places
        # Before the pointer: what is noted later is not taken out.
        noted = places.of_table(self._pointer_id)
        own = places.own_places(self._pointer_id)
        self._own, self._is_own = own, {}
        try:
            found = self._read(pointer)
        except IcetowerError as error:
            if isinstance(error, Unavailable) and not isinstance(error, StoreNotOpened):
                raise
            where = f"in {', '.join(sorted(noted)[:3]) or 'places of others'}"
            if ANYWHERE in noted:
                # Where its manifests lie others may write data, too.
                known = {home for folder in self._foreign.folders for home in homes_of(f"{folder}/_")}
                places.replace(self._pointer_id, {}, known | {ANYWHERE})
                where = "anywhere in its warehouse"
            # If not, each of its commits has noted the folders: deletions elsewhere need not wait.
            warehouse = self._server.warehouses.find_by_id(pointer.warehouse_id)
            name = on_the_command_line(pointer.identifier, warehouse.name if warehouse else "…")
            raise FilesUnavailable(
                f"It is not known which files table {pointer.identifier} reaches {where}: {error}. "
                f"Make it readable, or let it go: `icetower table unregister --unread {name}`, or "
                f"`icetower dropped purge {name}` if it was dropped"
            ) from error
        if found is not None:
            self._seen = found.metadata_location, found.registration
            if ANYWHERE in noted:
                places.replace(self._pointer_id, noted, folders_to_note(self._foreign))

    def _read(self, pointer: Pointer) -> Pointer | None:
        """Read a table where it is now; None if there is nothing to read."""
        try:
            catalog = own_catalog(self._server, pointer.warehouse_id)
        except NoSuchWarehouse:
            return None

        def find() -> Pointer | None:
            return self._server.pointers.find_locked(self._pointer_id)

        def read(now: Pointer | None) -> TableMetadata | None:
            return None if now is None else catalog.read(TABLES, now)

        try:
            found, metadata = find_and_read(find, read)
        except MetadataFileMissing as error:
            check_table_is_there(catalog, pointer.metadata_location)
            log.warning("table %s names no files that could be found: %s", pointer.identifier, error)
            return None
        if found is not None and metadata is not None:
            if self._seen == (found.metadata_location, found.registration):
                return found
            self._files.add(catalog, metadata, is_current=False)
        return found

    def _add(self, location: str) -> None:
        folder, name = folder_of(location), location.rpartition("/")[2]
        is_own = self._is_own.get(folder)
        if is_own is None:
            is_own = self._is_own[folder] = _is_in(self._own, f"{folder}/_")
        if not is_own or not _ODD.isdisjoint(name):
            self._foreign.folders.add(folder)
            self._note(location)


def _is_in(own: frozenset[str], location: str) -> bool:
    try:
        return flaw_of(location) is None and not own.isdisjoint(folders_of(location))
    except InvalidLocation:
        return False


class UnknownReaders:
    """Looks at tables of which it is not known where they name files, one after the other."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._not_before: dict[int, float] = {}
        # A table without a guard comes here after each commit: only its new manifests are read then.
        self._looks: OrderedDict[int, ForeignLook] = OrderedDict()

    def look_for(self, seconds: float) -> None:
        """Look at tables until some time is over or all are known.

        Raises:
            DatabaseUnavailable: safe to try again.
        """
        end, after = time.monotonic() + seconds, 0
        while readers := self._server.foreign_places.unknown(after, limit=100):
            for reader in readers:
                after = reader.pointer.id
                if time.monotonic() < self._not_before.get(after, 0):
                    continue
                if not self._look(reader.pointer):
                    self._not_before[after] = time.monotonic() + AGAIN_SECONDS
                if time.monotonic() >= end:
                    return

    def _look(self, pointer: Pointer) -> bool:
        look = self._looks.pop(pointer.id, None) or ForeignLook(
            self._server, pointer.id, lambda _location: None
        )
        try:
            look.look(pointer)
        except (FilesUnavailable, Throttled) as error:
            log.warning("%s", error)
            return False
        self._looks[pointer.id] = look
        while len(self._looks) > KEPT_LOOKS:
            self._looks.popitem(last=False)
        return True
