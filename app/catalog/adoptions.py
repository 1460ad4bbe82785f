"""Adopting file-system tables: their newest version becomes a table of the catalog."""

from __future__ import annotations

from dataclasses import dataclass

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.locations import check_location
from app.catalog.context.recorded_places import RecordedPlace
from app.catalog.filesystem_tables.forks import later_versions
from app.catalog.filesystem_tables.rules import refused
from app.catalog.filesystem_tables.versions import TableFolder
from app.catalog.named import register
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.upkeep.command_lines import on_the_command_line
from app.errors import CommitStateUnknown, InvalidMetadata, InvalidRequest, Unavailable
from app.formats.metadata.version_names import version_in


@dataclass(frozen=True, slots=True)
class Adopted:
    """A table that was adopted."""

    metadata_location: Location
    version: int
    later: list[Location]
    """Versions that writers have added to the folder since: a fork that the catalog does not have."""


def adopt_table(catalog: Catalog, identifier: TableIdentifier, location: str) -> Adopted:
    """Register the newest version in a table's folder, then look whether another one has come.

    Raises:
        TreeRefusal: the warehouse is itself of layout hadoop.
        InvalidName: the name cannot be used.
        InvalidLocation: the folder is outside the warehouse.
        InvalidRequest: no file-system table is there.
        MetadataFileMissing, InvalidMetadata: its newest version is gone, or is no table metadata.
        NoSuchNamespace: the namespace is not there.
        TableExists, ViewExists: the name is taken.
        FilesUnavailable: the store does not answer.
        CommitStateUnknown: the database did not answer; or the table is adopted, and the store does not say what came
            since.
    """
    catalog.permit("adopt_table", identifier)
    if not catalog.has_rows:
        raise refused(
            "adopt a table",
            "the tables below its root are its tables already",
            "name a warehouse of layout catalog",
        )
    check_location(catalog, location, "location")
    version = TableFolder(catalog.files, Location(location.rstrip("/"))).find_current()
    if version is None:
        raise InvalidRequest(
            f"No file-system table is at {location[:500]}: its folder metadata/ has no file v<N>.metadata.json"
        )
    try:
        register(catalog, TABLES, identifier, version.location)
    except InvalidMetadata as error:
        # The caller has named a folder, and no file.
        raise InvalidMetadata(f"{version.location}: {error}") from error
    try:
        return adopted_from(catalog, version.location)
    except Unavailable as error:
        # It would say that nothing was changed.
        name = on_the_command_line(identifier, catalog.warehouse.name)
        raise CommitStateUnknown(
            f"{identifier} is adopted with {version.location}, but it is not known whether writers have added versions "
            f"since, of which the catalog would know nothing: {error}. `icetower table health {name}` shows them"
        ) from error


def adopted_from(catalog: Catalog, recorded: str) -> Adopted:
    """Return what was adopted, with the versions that have come since.

    Args:
        recorded: the version's file, or what was recorded of it with an Idempotency-Key.
    """
    catalog.permit("adopt_table")
    found = RecordedPlace.of_text(recorded).location
    return Adopted(found, version_in(found) or 0, later_versions(catalog.files, found))
