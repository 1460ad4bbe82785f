"""Views: created, loaded, listed, replaced, dropped, renamed, registered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.catalog.commits import LoadedTable, PlannedPut, put
from app.catalog.context import Call, Catalog, Listing, Page, page_of, read_limit
from app.catalog.locations import check_location, check_locations, default_location
from app.catalog.registrations import register
from app.catalog.tables import taken_for_rename
from app.database.pointers import NameTaken, Pointer, PointerKind
from app.database.warehouses import Warehouse
from app.engine.change.requirements import Requirement, check_view_requirements
from app.engine.change.updates import Update
from app.engine.change.view_apply import apply_view_updates, new_view_metadata
from app.engine.model.identifiers import Namespace, TableIdentifier, check_identifier
from app.engine.model.ids import Location, TableUuid
from app.engine.model.schema import Schema
from app.engine.model.view_metadata import ViewMetadata, ViewVersion
from app.errors import (
    CorruptMetadata,
    IcetowerError,
    InvalidMetadata,
    NoSuchNamespace,
    NoSuchView,
    TableExists,
    ViewExists,
)


@dataclass(frozen=True, slots=True)
class NewView:
    """What a client wants a new view to be."""

    identifier: TableIdentifier
    schema: Schema
    version: ViewVersion
    location: str | None
    properties: Mapping[str, str]


def list_views(catalog: Catalog, warehouse: Warehouse, namespace: Namespace, page: Page) -> Listing[str]:
    """Return the names of the views in a namespace, in order.

    Raises:
        NoSuchNamespace: the namespace is not there.
    """
    names = catalog.pointers.list_names(
        warehouse.id, namespace, PointerKind.VIEW, page.after, read_limit(page)
    )
    return page_of(names, page)


def find_view(catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier) -> Pointer:
    """Return a view's pointer as it stands now.

    Raises:
        NoSuchView: no view has this name.
    """
    pointer = catalog.pointers.find(warehouse.id, identifier)
    if pointer is None or pointer.kind is not PointerKind.VIEW:
        raise NoSuchView(identifier)
    return pointer


def view_exists(catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier) -> None:
    """Return if a view has this name.

    Raises:
        NoSuchView: none has.
    """
    find_view(catalog, warehouse, identifier)


def load_view(catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier) -> LoadedTable:
    """Return a view as it stands now.

    Raises:
        NoSuchView: no view has this name.
        MetadataFileMissing: its metadata file is gone.
        CorruptMetadata: its metadata file cannot be read.
        FilesUnavailable: the store does not answer.
    """
    pointer = find_view(catalog, warehouse, identifier)
    metadata = _read_base(catalog, warehouse, pointer)
    return LoadedTable(identifier, pointer.metadata_location, metadata, metadata.to_json())


def _read_base(catalog: Catalog, warehouse: Warehouse, pointer: Pointer) -> ViewMetadata:
    try:
        return catalog.metadata_files.read_view(catalog.files_of(warehouse), pointer.metadata_location)
    except InvalidMetadata as error:
        raise CorruptMetadata(pointer.metadata_location, str(error)) from error


def create_view(catalog: Catalog, call: Call, warehouse: Warehouse, new: NewView) -> LoadedTable:
    """Create a view.

    Raises:
        InvalidName: the name cannot be used.
        InvalidUpdate: the schema, version or a property cannot be used.
        InvalidViewVersion: one dialect has two queries.
        InvalidLocation: the location is outside the warehouse.
        NoSuchNamespace: the namespace is not there.
        TableExists: a table has this name.
        ViewExists: a view has this name.
        CommitStateUnknown: the database did not answer.
    """

    def plan() -> list[PlannedPut]:
        metadata = _initial(catalog, warehouse, new)
        return [PlannedPut(new.identifier, PointerKind.VIEW, None, None, metadata)]

    return put(catalog, call, warehouse, plan)[0]


def _initial(catalog: Catalog, warehouse: Warehouse, new: NewView) -> ViewMetadata:
    check_identifier(new.identifier)
    namespace_properties = catalog.namespaces.find(warehouse.id, new.identifier.namespace)
    if namespace_properties is None:
        raise NoSuchNamespace(new.identifier.namespace)
    _check_name_is_free(catalog, warehouse, new.identifier)
    uuid = TableUuid(catalog.new_uuid())
    metadata = new_view_metadata(
        schema=new.schema,
        version=new.version,
        location=Location(
            new.location or default_location(warehouse, new.identifier, namespace_properties, uuid)
        ),
        properties=new.properties,
        uuid=uuid,
        now_ms=catalog.now_ms(),
    )
    check_locations(catalog, warehouse, metadata.location, metadata.properties)
    return metadata


def _check_name_is_free(catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier) -> None:
    taken = catalog.pointers.find(warehouse.id, identifier)
    if taken is not None:
        raise _taken(taken.kind, identifier)


def _taken(kind: PointerKind, identifier: TableIdentifier) -> TableExists | ViewExists:
    if kind is PointerKind.VIEW:
        return ViewExists(f"View already exists: {identifier}")
    return TableExists(f"Table with same name already exists: {identifier}")


def replace_view(
    catalog: Catalog,
    call: Call,
    warehouse: Warehouse,
    identifier: TableIdentifier,
    requirements: Sequence[Requirement],
    updates: Sequence[Update],
) -> LoadedTable:
    """Advance a view by one commit.

    Raises:
        NoSuchView: no view has this name.
        RequirementFailed: it is not the view the client means.
        InvalidUpdate: an update cannot be applied.
        InvalidViewVersion: one dialect has two queries.
        InvalidLocation: an update moves the view out of its warehouse.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer; the new file stays.
    """

    def plan() -> list[PlannedPut]:
        pointer = find_view(catalog, warehouse, identifier)
        base = _read_base(catalog, warehouse, pointer)
        check_view_requirements(base, requirements)
        draft = apply_view_updates(base, updates, catalog.now_ms())
        if not draft.has_changes:
            return [PlannedPut(identifier, PointerKind.VIEW, pointer, base, None)]
        metadata = draft.finish()
        check_locations(
            catalog,
            warehouse,
            metadata.location,
            metadata.properties,
            old_location=base.location,
            old_properties=base.properties,
        )
        return [PlannedPut(identifier, PointerKind.VIEW, pointer, base, metadata)]

    return put(catalog, call, warehouse, plan)[0]


def drop_view(catalog: Catalog, call: Call, warehouse: Warehouse, identifier: TableIdentifier) -> None:
    """Forget a view; its metadata file stays, so that it can be registered again.

    Raises:
        NoSuchView: no view has this name.
        CommitStateUnknown: the database did not answer.
    """
    author = call.author(catalog.now_ms())
    if catalog.pointers.drop(warehouse.id, identifier, PointerKind.VIEW, author, call.claim) is None:
        raise NoSuchView(identifier)


def rename_view(
    catalog: Catalog, call: Call, warehouse: Warehouse, source: TableIdentifier, destination: TableIdentifier
) -> None:
    """Give a view another name, also in another namespace.

    Raises:
        InvalidName: the new name cannot be used.
        NoSuchView: no view has the old name.
        NoSuchNamespace: the new namespace is not there.
        TableExists: a table has the new name.
        ViewExists: a view has the new name.
        CommitStateUnknown: the database did not answer.
    """
    check_identifier(destination)
    author = call.author(catalog.now_ms())
    try:
        renamed = catalog.pointers.rename(
            warehouse.id, PointerKind.VIEW, source, destination, author, call.claim
        )
    except NameTaken as taken:
        raise taken_for_rename(taken, source, destination) from taken
    if renamed is None:
        raise NoSuchView(source)


def register_view(
    catalog: Catalog, call: Call, warehouse: Warehouse, identifier: TableIdentifier, metadata_location: str
) -> LoadedTable:
    """Point a name at a view metadata file that exists.

    Raises:
        InvalidName: the name cannot be used.
        InvalidLocation: the file or the view is outside the warehouse.
        MetadataFileMissing: no file is there.
        InvalidMetadata: the file is not view metadata.
        NoSuchNamespace: the namespace is not there.
        TableExists: a table has this name.
        ViewExists: a view has this name.
        CommitStateUnknown: the database did not answer.
    """
    check_identifier(identifier)
    location = Location(metadata_location)
    check_location(catalog, warehouse, location, "metadata-location")
    metadata = catalog.metadata_files.read_view(catalog.files_of(warehouse), location)
    check_locations(catalog, warehouse, metadata.location, metadata.properties)
    _check_name_is_free(catalog, warehouse, identifier)
    try:
        register(catalog, call, warehouse, identifier, PointerKind.VIEW, metadata.uuid, location, None)
    except NameTaken as taken:
        raise _taken(taken.kind, identifier) from taken
    return LoadedTable(identifier, location, metadata, metadata.to_json())


def load_recorded(
    catalog: Catalog, warehouse: Warehouse, identifier: TableIdentifier, location: str
) -> LoadedTable:
    """Return the answer to a repeated create, register or replace: the view now, else what the first one made.

    Args:
        location: the metadata location that was recorded with the Idempotency-Key.

    Raises:
        NoSuchView: the view was dropped since, and the file is gone too.
    """
    try:
        return load_view(catalog, warehouse, identifier)
    except NoSuchView:
        try:
            recorded = Location(location)
            metadata = catalog.metadata_files.read_view(catalog.files_of(warehouse), recorded)
        except IcetowerError as error:
            raise NoSuchView(identifier) from error
        return LoadedTable(identifier, recorded, metadata, metadata.to_json())
