"""Tables: JSON, staged creates, purges; the rest is in `app.catalog.named`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.plans import load_base
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, Loaded, LoadedTable
from app.catalog.context.places.locations import check_locations
from app.catalog.context.protection import check_unprotected, recovery_of
from app.catalog.named import NewNamed, drop_as_seen
from app.database.pointers.pointer import Pointer
from app.engine.change.initial import new_table_metadata
from app.engine.model.identifiers import TableIdentifier, check_identifier
from app.engine.model.ids import Location, TableUuid
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.settings.properties import allows_deletes
from app.engine.model.sort_order import SortOrder
from app.engine.model.table_metadata import TableMetadata
from app.errors import CorruptMetadata, InvalidMetadata, PurgeRefused
from app.formats.metadata.files import MetadataJson


@dataclass(frozen=True)
class NewTable(NewNamed[TableMetadata]):
    """A new table, as a client describes it."""

    identifier: TableIdentifier
    schema: Schema
    spec: UnboundPartitionSpec | None
    order: SortOrder | None
    location: str | None
    properties: Mapping[str, str]
    kind = TABLES

    def first_metadata(self, location: Location, uuid: TableUuid, now_ms: int) -> TableMetadata:
        """Return the metadata of an empty table."""
        return new_table_metadata(
            schema=self.schema,
            spec=self.spec,
            order=self.order,
            location=location,
            properties=self.properties,
            uuid=uuid,
            now_ms=now_ms,
        )


def load_pointer(catalog: Catalog, operation: str, identifier: TableIdentifier) -> Pointer:
    """Return a table's pointer, which may mean to look into its folder.

    Raises:
        NoSuchTable: no table has this name.
        FilesUnavailable: the store does not answer.
    """
    catalog.permit(operation, identifier)
    return catalog.load(TABLES, identifier)


def is_seen_at_once(catalog: Catalog, pointer: Pointer) -> bool:
    """Say whether `Catalog.check_file` waits for no network."""
    return catalog.server.metadata_files.is_seen_at_once(catalog.files, pointer.metadata_location)


def find_json(catalog: Catalog, pointer: Pointer, *, refs_only: bool) -> MetadataJson | None:
    """Return a table's JSON if it is in the cache, without waiting for a network."""
    catalog.server.last_reads.note(pointer.id, catalog.now_ms())
    return catalog.server.metadata_files.find_json(
        catalog.files, pointer.metadata_location, pointer.uuid, pointer.registration, refs_only=refs_only
    )


def table_json(catalog: Catalog, pointer: Pointer, *, refs_only: bool) -> MetadataJson:
    """Return the metadata a pointer names as compact JSON.

    Raises:
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: the file cannot be read.
    """
    location = pointer.metadata_location
    try:
        return catalog.server.metadata_files.table_json(
            catalog.files, location, pointer.uuid, pointer.registration, refs_only=refs_only
        )
    except InvalidMetadata as error:
        raise CorruptMetadata(location, str(error)) from error


def stage_table(catalog: Catalog, new: NewTable) -> LoadedTable:
    """Return a new table without creating it; a later commit with `assert-create` does.

    Raises:
        InvalidName: the name cannot be used.
        InvalidUpdate: the schema, spec, order or a property cannot be used.
        InvalidLocation: the location is outside the warehouse.
        NoSuchNamespace: the namespace is not there.
        TableExists, ViewExists: a table or view has this name.
        FilesUnavailable: the folder could not be looked at.
    """
    catalog.permit("create_table", new.identifier)
    check_identifier(new.identifier)
    base = load_base(catalog, TABLES, new.identifier, reads=False)
    new.require(base)
    metadata = new.apply(catalog, base, StagedFiles(catalog)).metadata
    assert metadata is not None
    check_locations(catalog, new.identifier, metadata)
    return Loaded(new.identifier, None, metadata, metadata.to_json())


def purge_table(catalog: Catalog, identifier: TableIdentifier) -> None:
    """Remove a table, and have its files deleted, at once or when it cannot come back.

    Raises:
        NoSuchTable: no table has this name.
        Protected: it is protected.
        PurgeRefused: gc.enabled is false, or the table belongs to another catalog.
        PointerMoved: the table kept changing while its settings were read.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit("drop_table", identifier)

    def check_purge(pointer: Pointer) -> None:
        # Not left to gc.enabled, which cannot be read while the metadata cannot.
        if pointer.is_read_only:
            raise PurgeRefused(identifier, is_read_only=True)
        # A table whose metadata is lost can still be dropped; the purge finds out that it cannot know its files.
        properties = check_unprotected(catalog, TABLES, pointer, "purge")
        if not allows_deletes(properties):
            raise PurgeRefused(identifier)

    drop_as_seen(
        catalog, TABLES, identifier, check_purge, recovery=recovery_of(catalog.warehouse, purge=True)
    )
    catalog.server.has_deletions.set()
