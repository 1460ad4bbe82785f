"""Tables and views as kinds: what differs between them where one use case serves both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.database.pointers.pointer import PointerKind
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.errors import NoSuchTable, NoSuchView, TableExists, ViewExists
from app.fileio.files import FileIO
from app.formats.metadata.files import MetadataFiles

M = TypeVar("M", bound=TableMetadata | ViewMetadata)

_EXISTS: dict[PointerKind, type[TableExists | ViewExists]] = {
    PointerKind.TABLE: TableExists,
    PointerKind.VIEW: ViewExists,
}


@dataclass(frozen=True, slots=True)
class Kind(Generic[M]):
    """Tables, or views."""

    of_pointer: PointerKind
    read: Callable[[MetadataFiles, FileIO, Location, TableUuid | None, int], M]
    """Reads a metadata file; raises `MetadataFileMissing`, `InvalidMetadata` or `FilesUnavailable`."""
    no_such: type[NoSuchTable | NoSuchView]
    default_codec: str
    """How metadata files are compressed when the properties do not say."""

    def __str__(self) -> str:
        """Return `table` or `view`."""
        return self.of_pointer.value

    def taken(self, by: PointerKind, identifier: TableIdentifier) -> TableExists | ViewExists:
        """Return the error for a name that cannot be used because something has it already."""
        noun = by.value.capitalize()
        if by is self.of_pointer:
            return _EXISTS[by](f"{noun} already exists: {identifier}")
        return _EXISTS[by](f"{noun} with same name already exists: {identifier}")


def taken_for_rename(
    by: PointerKind, source: TableIdentifier, destination: TableIdentifier
) -> TableExists | ViewExists:
    """Return the error for a rename to a name that something has already."""
    return _EXISTS[by](f"Cannot rename {source} to {destination}. {by.value.capitalize()} already exists")


TABLES: Kind[TableMetadata] = Kind(PointerKind.TABLE, MetadataFiles.read_table, NoSuchTable, "none")
VIEWS: Kind[ViewMetadata] = Kind(PointerKind.VIEW, MetadataFiles.read_view, NoSuchView, "gzip")


@dataclass(frozen=True, slots=True)
class Loaded(Generic[M]):
    """A table or view as it is: its metadata, and where the file is (None for a staged create)."""

    identifier: TableIdentifier
    location: Location | None
    metadata: M
    json: bytes
    registration: int = 0
    """The pointer's; see `Pointer`."""


LoadedTable = Loaded[TableMetadata]
LoadedView = Loaded[ViewMetadata]
