"""Metadata files that were found, and what each says of its place in a history."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.context.catalog import Catalog
from app.database.pointers.pointer import PointerKind
from app.engine.chains.verdicts import FoundTable, FoundView
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidLocation, InvalidMetadata, MetadataFileMissing
from app.formats.metadata.chain_facts import chain_facts, place_text
from app.formats.metadata.names import metadata_folder


@dataclass(frozen=True, slots=True)
class MetadataClaims:
    """What one metadata file claims about itself, as far as rebuilding needs it."""

    kind: PointerKind
    found: FoundTable | FoundView
    home: str
    """The location of its table or view."""
    is_home: bool
    """Whether the file lies where its table or view keeps metadata: else it was copied or moved there."""

    @property
    def place(self) -> str:
        return self.found.place

    @property
    def key(self) -> str:
        """What all files of one table or view have in common: its uuid, without one their folder."""
        return self.found.uuid or self.folder

    @property
    def folder(self) -> str:
        """The folder that the file lies in."""
        return folder_of(self.place)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A metadata file that says nothing."""

    location: Location
    reason: str


def folder_of(place: str) -> str:
    """Return the folder of a file, in the spelling of `place_text`."""
    return place.rpartition("/")[0]


def read_facts(catalog: Catalog, location: Location) -> MetadataClaims | Unreadable | None:
    """Return what a metadata file says; None if it is gone.

    Raises:
        FilesUnavailable: the store does not answer; what the file says is not known.
    """
    try:
        metadata = catalog.server.metadata_files.read_either(catalog.files, location)
    except MetadataFileMissing:
        return None
    except (InvalidMetadata, InvalidLocation) as error:
        return Unreadable(location, str(error))
    kind = PointerKind.TABLE if isinstance(metadata, TableMetadata) else PointerKind.VIEW
    folder = metadata_folder(metadata.location, metadata.properties)
    is_home = _is_below(location, metadata.location) or _is_below(location, folder)
    return MetadataClaims(kind, chain_facts(location, metadata), metadata.location, is_home)


def _is_below(location: str, folder: str) -> bool:
    return place_text(location).startswith(place_text(folder).rstrip("/") + "/")
