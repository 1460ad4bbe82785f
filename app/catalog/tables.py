"""Tables: created, loaded, listed, dropped, renamed, registered."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.catalog.commits import LoadedTable, PlannedPut, put, read_base
from app.catalog.context import Call, Catalog, Listing, Page, page_of, read_limit
from app.catalog.locations import check_location, check_locations, default_location
from app.catalog.registrations import register
from app.database.pointers import NameTaken, Pointer, PointerChanged, PointerKind
from app.database.warehouses import Warehouse
from app.engine.change.initial import new_table_metadata
from app.engine.model.identifiers import Namespace, TableIdentifier, check_identifier
from app.engine.model.ids import Location, TableUuid
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.properties import GC_ENABLED, bool_property
from app.engine.model.schema import Schema
from app.engine.model.sort_order import SortOrder
from app.engine.model.table_metadata import TableMetadata
from app.errors import (
    CorruptMetadata,
    IcetowerError,
    InvalidMetadata,
    MetadataFileMissing,
    NoSuchNamespace,
    NoSuchTable,
    PointerMoved,
    PurgeRefused,
    TableExists,
    ViewExists,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewTable:
    """What a client wants a new table to be."""

    identifier: TableIdentifier
    schema: Schema
    spec: UnboundPartitionSpec | None
    order: SortOrder | None
    location: str | None
    properties: Mapping[str, str]


def list_tables(catalog: Catalog, warehouse: Warehouse, namespace: Namespace, page: Page) -> Listing[str]:
    """Return the names of the tables in a namespace, in order; views are not among them.

    Raises:
        NoSuchNamespace: the namespace is not there.
    """
    names = catalog.pointers.list_names(
        warehouse.id, namespace, PointerKind.TABLE, page.after, read_limit(page)
    )
    return page_of(names, page)


def find_table(catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier) -> Pointer:
    """Return a table's pointer as it stands now.

    Raises:
        NoSuchTable: no table has this name, whether or not its namespace exists.
    """
    pointer = catalog.pointers.find(warehouse.id, identifier)
    if pointer is None or pointer.kind is not PointerKind.TABLE:
        raise NoSuchTable(identifier)
    return pointer


def table_json(catalog: Catalog, warehouse: Warehouse, pointer: Pointer, *, refs_only: bool) -> bytes:
    """Return the metadata a pointer names as compact JSON.

    Raises:
        MetadataFileMissing: the file is gone.
        CorruptMetadata: the file is not table metadata.
        FilesUnavailable: the store does not answer.
    """
    try:
        return catalog.metadata_files.table_json(
            catalog.files_of(warehouse), pointer.metadata_location, refs_only=refs_only
        )
    except InvalidMetadata as error:
        raise CorruptMetadata(pointer.metadata_location, str(error)) from error


def load_table(catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier) -> LoadedTable:
    """Return a table as it stands now.

    Raises:
        NoSuchTable: no table has this name.
        MetadataFileMissing: its metadata file is gone.
        CorruptMetadata: its metadata file cannot be read.
        FilesUnavailable: the store does not answer.
    """
    pointer = find_table(catalog, warehouse, identifier)
    metadata = read_base(catalog, warehouse, pointer)
    content = table_json(catalog, warehouse, pointer, refs_only=False)
    return LoadedTable(identifier, pointer.metadata_location, metadata, content)


def create_table(catalog: Catalog, call: Call, warehouse: Warehouse, new: NewTable) -> LoadedTable:
    """Create an empty table.

    Raises:
        InvalidName: the name cannot be used.
        InvalidUpdate: the schema, spec, order or a property cannot be used.
        InvalidLocation: the location is outside the warehouse.
        NoSuchNamespace: the namespace is not there.
        TableExists: a table has this name.
        ViewExists: a view has this name.
        FilesUnavailable: the metadata file could not be written; nothing was created.
        CommitStateUnknown: the database did not answer.
    """

    def plan() -> list[PlannedPut]:
        metadata = _initial(catalog, warehouse, new)
        return [PlannedPut(new.identifier, PointerKind.TABLE, None, None, metadata)]

    return put(catalog, call, warehouse, plan)[0]


def stage_table(catalog: Catalog, warehouse: Warehouse, new: NewTable) -> LoadedTable:
    """Return what a new table would be, without creating it; a later commit with `assert-create` does.

    Raises:
        InvalidName: the name cannot be used.
        InvalidUpdate: the schema, spec, order or a property cannot be used.
        InvalidLocation: the location is outside the warehouse.
        NoSuchNamespace: the namespace is not there.
        TableExists: a table has this name.
        ViewExists: a view has this name.
    """
    metadata = _initial(catalog, warehouse, new)
    return LoadedTable(new.identifier, None, metadata, metadata.to_json())


def _initial(catalog: Catalog, warehouse: Warehouse, new: NewTable) -> TableMetadata:
    check_identifier(new.identifier)
    namespace_properties = catalog.namespaces.find(warehouse.id, new.identifier.namespace)
    if namespace_properties is None:
        raise NoSuchNamespace(new.identifier.namespace)
    check_name_is_free(catalog, warehouse, new.identifier)
    uuid = TableUuid(catalog.new_uuid())
    location = new.location or default_location(warehouse, new.identifier, namespace_properties, uuid)
    metadata = new_table_metadata(
        schema=new.schema,
        spec=new.spec,
        order=new.order,
        location=Location(location),
        properties=new.properties,
        uuid=uuid,
        now_ms=catalog.now_ms(),
    )
    check_locations(catalog, warehouse, metadata.location, metadata.properties)
    return metadata


def check_name_is_free(catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier) -> None:
    """Check that a table can be made under a name.

    Raises:
        TableExists: a table has it.
        ViewExists: a view has it.
    """
    taken = catalog.pointers.find(warehouse.id, identifier)
    if taken is None:
        return
    if taken.kind is PointerKind.TABLE:
        raise TableExists(f"Table already exists: {identifier}")
    raise ViewExists(f"View with same name already exists: {identifier}")


def drop_table(
    catalog: Catalog, call: Call, warehouse: Warehouse, identifier: TableIdentifier, *, purge: bool
) -> None:
    """Forget a table. With `purge` its files are deleted afterwards, from a queue that survives restarts.

    Raises:
        NoSuchTable: no table has this name.
        PurgeRefused: gc.enabled is false.
        PointerMoved: the table kept changing while its settings were read.
        CommitStateUnknown: the database did not answer.
    """
    if not purge:
        author = call.author(catalog.now_ms())
        if catalog.pointers.drop(warehouse.id, identifier, PointerKind.TABLE, author, call.claim) is None:
            raise NoSuchTable(identifier)
        return
    attempts = catalog.rules.commit_attempts
    for _ in range(attempts):
        pointer = find_table(catalog, warehouse, identifier)
        _check_purge(catalog, warehouse, pointer)
        author = call.author(catalog.now_ms())
        try:
            dropped = catalog.pointers.drop(
                warehouse.id,
                identifier,
                PointerKind.TABLE,
                author,
                call.claim,
                expected=pointer,
                deletion=True,
            )
        except PointerChanged:
            continue
        if dropped is None:
            raise NoSuchTable(identifier)
        return
    raise PointerMoved(identifier, attempts)


def _check_purge(catalog: Catalog, warehouse: Warehouse, pointer: Pointer) -> None:
    try:
        metadata = read_base(catalog, warehouse, pointer)
    except (MetadataFileMissing, CorruptMetadata) as error:
        # A table whose metadata is lost can still be dropped; the purge will find that it cannot know its files.
        log.warning("purging %s without readable metadata: %s", pointer.identifier, error)
        return
    if not bool_property(metadata.properties, GC_ENABLED, default=True):
        raise PurgeRefused(pointer.identifier)


def rename_table(
    catalog: Catalog, call: Call, warehouse: Warehouse, source: TableIdentifier, destination: TableIdentifier
) -> None:
    """Give a table another name, also in another namespace; its files stay where they are.

    Raises:
        InvalidName: the new name cannot be used.
        NoSuchTable: no table has the old name.
        NoSuchNamespace: the new namespace is not there.
        TableExists: a table has the new name.
        ViewExists: a view has the new name.
        CommitStateUnknown: the database did not answer.
    """
    check_identifier(destination)
    author = call.author(catalog.now_ms())
    try:
        renamed = catalog.pointers.rename(
            warehouse.id, PointerKind.TABLE, source, destination, author, call.claim
        )
    except NameTaken as taken:
        raise taken_for_rename(taken, source, destination) from taken
    if renamed is None:
        raise NoSuchTable(source)


def taken_for_rename(
    taken: NameTaken, source: TableIdentifier, destination: TableIdentifier
) -> TableExists | ViewExists:
    """Return the error that tells what stands in the way of a rename."""
    if taken.kind is PointerKind.TABLE:
        return TableExists(f"Cannot rename {source} to {destination}. Table already exists")
    return ViewExists(f"Cannot rename {source} to {destination}. View already exists")


def register_table(
    catalog: Catalog,
    call: Call,
    warehouse: Warehouse,
    identifier: TableIdentifier,
    metadata_location: str,
    *,
    overwrite: bool,
) -> LoadedTable:
    """Point a name at a metadata file that exists; with `overwrite` also a name that a table has.

    Raises:
        InvalidName: the name cannot be used.
        InvalidLocation: the file or the table is outside the warehouse.
        MetadataFileMissing: no file is there.
        InvalidMetadata: the file is not table metadata.
        NoSuchNamespace: the namespace is not there.
        TableExists: a table has this name.
        ViewExists: a view has this name.
        CommitStateUnknown: the database did not answer.
    """
    check_identifier(identifier)
    location = Location(metadata_location)
    check_location(catalog, warehouse, location, "metadata-location")
    metadata = catalog.metadata_files.read_table(catalog.files_of(warehouse), location)
    check_locations(catalog, warehouse, metadata.location, metadata.properties)
    seen = catalog.pointers.find(warehouse.id, identifier) if overwrite else None
    if not overwrite or seen is None or seen.kind is not PointerKind.TABLE:
        check_name_is_free(catalog, warehouse, identifier)
    try:
        register(catalog, call, warehouse, identifier, PointerKind.TABLE, metadata.uuid, location, seen)
    except NameTaken as taken:
        if taken.kind is PointerKind.TABLE:
            raise TableExists(f"Table already exists: {identifier}") from taken
        raise ViewExists(f"View with same name already exists: {identifier}") from taken
    return LoadedTable(identifier, location, metadata, metadata.to_json())


def unregister_table(
    catalog: Catalog, call: Call, warehouse: Warehouse, identifier: TableIdentifier
) -> LoadedTable:
    """Forget a table and return what it was, so that another catalog can take it over.

    Raises:
        NoSuchTable: no table has this name.
        MetadataFileMissing: its metadata file is gone.
        CorruptMetadata: its metadata file cannot be read.
        PointerMoved: the table kept changing.
        CommitStateUnknown: the database did not answer.
    """
    attempts = catalog.rules.commit_attempts
    for _ in range(attempts):
        pointer = find_table(catalog, warehouse, identifier)
        metadata = read_base(catalog, warehouse, pointer)
        claim = replace(call.claim, result=pointer.metadata_location) if call.claim else None
        try:
            dropped = catalog.pointers.drop(
                warehouse.id,
                identifier,
                PointerKind.TABLE,
                call.author(catalog.now_ms()),
                claim,
                event="unregistered",
                expected=pointer,
            )
        except PointerChanged:
            continue
        if dropped is None:
            raise NoSuchTable(identifier)
        return LoadedTable(identifier, pointer.metadata_location, metadata, metadata.to_json())
    raise PointerMoved(identifier, attempts)


def load_recorded(
    catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier, location: str
) -> LoadedTable:
    """Return the answer to a repeated create, register or commit: the table now, else what the first one made.

    Args:
        location: the metadata location that was recorded with the Idempotency-Key.

    Raises:
        NoSuchTable: the table was dropped since, and the file is gone too.
    """
    try:
        return load_table(catalog, warehouse, identifier)
    except NoSuchTable:
        try:
            recorded = Location(location)
            metadata = catalog.metadata_files.read_table(catalog.files_of(warehouse), recorded)
        except IcetowerError as error:
            raise NoSuchTable(identifier) from error
        return LoadedTable(identifier, recorded, metadata, metadata.to_json())
