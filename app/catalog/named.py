"""Use cases that tables and views share: list, create, drop, rename, register, load."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base, Intention, Planned
from app.catalog.commits.landed_before import last_events, record_of_removal
from app.catalog.commits.landing import land_one
from app.catalog.commits.old_metadata import check_not_let_go
from app.catalog.commits.races import explain
from app.catalog.context.catalog import Catalog, find_and_read
from app.catalog.context.kinds import Kind, Loaded, M, taken_for_rename
from app.catalog.context.listings import Listing, Page, page_of
from app.catalog.context.places.locations import check_location, chosen_location, place_for_new
from app.catalog.context.protection import check_unprotected, recovery_of
from app.catalog.context.recorded_places import RecordedPlace
from app.catalog.filesystem_tables.rules import refused
from app.database.pointers.history import UNREGISTERED, PointerEvent
from app.database.pointers.left_files import QueuedExpiry
from app.database.pointers.moves import NameTaken
from app.database.pointers.pointer import Pointer
from app.database.pointers.pointers import PointerChanged
from app.database.pointers.recoverable import NO_RECOVERY, Recovery
from app.engine.model.identifiers import Namespace, TableIdentifier, check_identifier
from app.engine.model.ids import Location, TableUuid
from app.errors import (
    CommitFailed,
    CommitStateUnknown,
    CorruptMetadata,
    IcetowerError,
    MetadataFileMissing,
    NotFound,
    PointerMoved,
    Unavailable,
)

T = TypeVar("T")


def list_names(catalog: Catalog, kind: Kind[M], namespace: Namespace, page: Page) -> Listing[str]:
    """Return the names of the tables, or of the views, in a namespace, in order.

    Raises:
        NoSuchNamespace: the namespace is not there.
    """
    catalog.permit(f"list_{kind}s", namespace)
    warehouse_id = catalog.warehouse.id
    names = catalog.shown_pointers.list_names(
        warehouse_id, namespace, kind.of_pointer, page.after, page.read_limit
    )
    return page_of(names, page)


def check_exists(catalog: Catalog, kind: Kind[M], identifier: TableIdentifier) -> None:
    """Return if a table or view has this name, and its metadata file is there.

    Raises:
        NoSuchTable, NoSuchView: nothing of this kind has it.
        MetadataFileMissing: its metadata file is gone.
        FilesUnavailable: the store does not answer.
    """
    catalog.permit(f"{kind}_exists", identifier)
    find_and_read(lambda: catalog.load(kind, identifier), lambda pointer: catalog.check_file(kind, pointer))


def choose_namespace(catalog: Catalog, likely: Namespace, literal: Namespace) -> Namespace:
    """Return the reading of a path's namespace that is there, by default the likelier."""
    catalog.permit("namespace_exists", likely, literal)
    is_literal = catalog.find_namespace(likely) is None and catalog.find_namespace(literal) is not None
    return literal if is_literal else likely


def choose_identifier(catalog: Catalog, likely: TableIdentifier, literal: TableIdentifier) -> TableIdentifier:
    """Return the reading of a table's or view's name that is there, by default the likelier."""
    catalog.permit("table_exists", likely, literal)
    return literal if catalog.find(likely) is None and catalog.find(literal) is not None else likely


class NewNamed(Intention[M, None]):
    """A new table or view, as a client describes it."""

    location: str | None
    properties: Mapping[str, str]
    reads_base = False

    @abstractmethod
    def first_metadata(self, location: Location, uuid: TableUuid, now_ms: int) -> M:
        """Return the metadata to begin with.

        Raises:
            BadRequest: something of it cannot be used.
        """

    def require(self, base: Base[M]) -> bool:
        """Check that the name is free."""
        base.check_free()
        return True

    def apply(self, catalog: Catalog, _base: Base[M], _files: StagedFiles) -> Planned[M, None]:
        """Make the metadata to begin with."""
        namespace_properties = catalog.load_namespace(self.identifier.namespace)
        if self.location:
            location, uuid = chosen_location(catalog, self.location), TableUuid(catalog.server.new_uuid())
        else:
            location, uuid = place_for_new(catalog, self.identifier, namespace_properties)
        return Planned(self.first_metadata(location, uuid, catalog.now_ms()), None)


def create(catalog: Catalog, new: NewNamed[M]) -> Loaded[M]:
    """Create an empty table, or a view.

    Raises:
        InvalidName: the name cannot be used.
        InvalidUpdate: the schema, spec, order, version or a property cannot be used.
        InvalidViewVersion: one dialect of a view has two queries.
        InvalidLocation: the location is outside the warehouse.
        NoSuchNamespace: the namespace is not there.
        TableExists, ViewExists: a table or view has this name.
        FilesUnavailable: the metadata file could not be written, or the folder not be looked at; nothing was created.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit(f"create_{new.kind}", new.identifier)
    check_identifier(new.identifier)
    return land_one(catalog, new).loaded


def drop(catalog: Catalog, kind: Kind[M], identifier: TableIdentifier) -> None:
    """Remove a table or view; its files stay, and for a while it can come back.

    Raises:
        NoSuchTable, NoSuchView: nothing of this kind has this name.
        Protected: it is protected.
        PointerMoved: it kept changing.
        FilesUnavailable: it cannot be read whether it is protected.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit(f"drop_{kind}", identifier)

    drop_as_seen(
        catalog,
        kind,
        identifier,
        lambda pointer: check_unprotected(catalog, kind, pointer, "drop"),
        recovery=recovery_of(catalog.warehouse, purge=False),
    )


def unregister(
    catalog: Catalog, kind: Kind[M], identifier: TableIdentifier, expected: str | None = None
) -> Loaded[M]:
    """Remove a table or view and return it, so that another catalog can take it over.

    Args:
        catalog: the warehouse, for one caller.
        kind: what it is.
        identifier: its name.
        expected: where its metadata must be, so that no commit is left behind.

    Raises:
        NoSuchTable, NoSuchView: nothing of this kind has this name.
        Protected: it is protected.
        CommitFailed: its metadata is not where it is expected.
        MetadataFileMissing, CorruptMetadata: its metadata file is gone, or cannot be read.
        PointerMoved: it kept changing.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit(f"unregister_{kind}", identifier)

    def look(pointer: Pointer) -> M:
        _check_unregistration(catalog, kind, pointer, expected)
        return catalog.read(kind, pointer)

    pointer, metadata = drop_as_seen(catalog, kind, identifier, look, event=UNREGISTERED)
    return Loaded(identifier, pointer.metadata_location, metadata, metadata.to_json(), pointer.registration)


def unregister_unread(
    catalog: Catalog, kind: Kind[M], identifier: TableIdentifier, expected: str | None = None
) -> Location:
    """Remove a table or view whose metadata need not be readable, and return where that is.

    Raises like `unregister`, but for what is wrong with the metadata file.
    """
    catalog.permit(f"unregister_{kind}", identifier)

    def look(pointer: Pointer) -> None:
        _check_unregistration(catalog, kind, pointer, expected)

    pointer, _ = drop_as_seen(catalog, kind, identifier, look, event=UNREGISTERED)
    return pointer.metadata_location


def _check_unregistration(catalog: Catalog, kind: Kind[M], pointer: Pointer, expected: str | None) -> None:
    check_unprotected(catalog, kind, pointer, "unregister")
    if expected is not None and pointer.metadata_location != expected:
        error = CommitFailed(
            f"Cannot unregister {pointer.identifier}: expected metadata-location {expected[:500]}, "
            f"it is at {pointer.metadata_location}"
        )
        explain(error, Base(kind, pointer.identifier, pointer, None), ())
        raise error


def drop_as_seen(
    catalog: Catalog,
    kind: Kind[M],
    identifier: TableIdentifier,
    look: Callable[[Pointer], T],
    *,
    event: str = "dropped",
    recovery: Recovery = NO_RECOVERY,
) -> tuple[Pointer, T]:
    """Remove a table or view as `look` has seen it; look again if its pointer moves meanwhile.

    Args:
        look: called with the pointer; its result is returned, its errors are raised.
        event: what pointer history calls it.
        recovery: as for `PointerStore.drop`.

    Raises:
        NoSuchTable, NoSuchView: nothing of this kind has this name.
        PointerMoved: it kept changing.
        CommitStateUnknown: the database did not answer.
    """
    attempts = catalog.rules.commit_attempts
    for _ in range(attempts):
        pointer, seen = find_and_read(lambda: catalog.load(kind, identifier), look)
        try:
            dropped = catalog.pointers.drop(
                catalog.warehouse.id,
                identifier,
                kind.of_pointer,
                catalog.author(),
                catalog.caller.claim_of(RecordedPlace(pointer.metadata_location, pointer.uuid).to_text()),
                event=event,
                expected=pointer,
                recovery=recovery,
            )
        except PointerChanged:
            continue
        if dropped is None:
            raise kind.no_such(identifier)
        return pointer, seen
    raise PointerMoved(identifier, attempts)


def rename(catalog: Catalog, kind: Kind[M], source: TableIdentifier, destination: TableIdentifier) -> None:
    """Give a table or view another name, also in another namespace; its files stay.

    Raises:
        InvalidName: the new name cannot be used.
        NoSuchTable, NoSuchView: nothing of this kind has the old name.
        NoSuchNamespace: the new namespace is not there.
        TableExists, ViewExists: the new name is taken.
        Protected: it is protected.
        PointerMoved: it kept changing.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit(f"rename_{kind}", source, destination)
    check_identifier(destination)
    attempts = catalog.rules.commit_attempts
    for _ in range(attempts):
        pointer, _ = find_and_read(
            lambda: catalog.load(kind, source),
            lambda found: check_unprotected(catalog, kind, found, "rename"),
        )
        try:
            renamed = catalog.pointers.rename(
                catalog.warehouse.id,
                kind.of_pointer,
                source,
                destination,
                catalog.author(),
                catalog.caller.claim,
                expected=pointer,
            )
        except NameTaken as taken:
            raise taken_for_rename(taken.kind, source, destination) from taken
        except PointerChanged:
            continue
        if renamed is None:
            raise kind.no_such(source)
        return
    raise PointerMoved(source, attempts)


@dataclass(frozen=True)
class Registration(Intention[M, None]):
    """A name for a metadata file that exists already."""

    kind: Kind[M]
    identifier: TableIdentifier
    location: Location
    overwrite: bool
    read_only: bool = False
    """Whether it stays another catalog's."""
    expected: str | None = None
    """Where the metadata must be of what is overwritten."""
    reads_base = False
    needs_writable = False
    spares_protected = True
    """Whether it leaves what is protected alone."""
    created_as, advanced_as = "registered", "replaced"

    def require(self, base: Base[M]) -> bool:
        """Check that the name is free, or may be taken over.

        Raises:
            CommitFailed: what has it is not where it is expected.
        """
        if not self.overwrite or base.seen is None:
            base.check_free()
        if self.expected is not None and base.stored_at != self.expected:
            found = "nothing has the name" if base.stored_at is None else f"it is at {base.stored_at}"
            raise CommitFailed(
                f"Cannot overwrite {self.identifier}: expected metadata-location {self.expected[:500]}, {found}"
            )
        return True

    def apply(self, catalog: Catalog, base: Base[M], _files: StagedFiles) -> Planned[M, None]:
        """Read the file."""
        if base.seen is not None and self.spares_protected:
            check_unprotected(catalog, self.kind, base.seen, "replace")
        since_ms = catalog.server.file_deletions.now_ms()
        metadata = catalog.read_file(self.kind, self.location, registration=-1 if self.read_only else 0)
        return Planned(
            metadata,
            None,
            stored_at=self.location,
            read_since_ms=since_ms,
            is_read_only=self.read_only,
            expiry=self._record(catalog, base, metadata),
        )

    def _record(self, catalog: Catalog, base: Base[M], metadata: M) -> QueuedExpiry | None:
        """Return a record of the snapshots that older metadata of the same table takes out.

        Raises:
            CommitFailed: a commit may just be deleting the file of that metadata.
        """
        if base.seen is None or base.seen.uuid != metadata.uuid:
            return None
        try:
            before = catalog.read(self.kind, base.seen)
        except (MetadataFileMissing, CorruptMetadata):
            return None  # It may be overwritten because it is damaged.
        check_not_let_go(catalog, base.seen, before, self.location, metadata)
        return record_of_removal(before, metadata)


def check_registrable(catalog: Catalog) -> None:
    """Check that metadata files can be registered in the warehouse.

    Raises:
        TreeRefusal: it is of layout hadoop.
    """
    if not catalog.has_rows:
        raise refused(
            "register a metadata file",
            "the newest version in a folder is the table",
            "put the table's folder where its name says, or register the file in a warehouse of layout catalog",
        )


def register(
    catalog: Catalog,
    kind: Kind[M],
    identifier: TableIdentifier,
    location: str,
    *,
    overwrite: bool = False,
    read_only: bool = False,
    expected: str | None = None,
) -> Loaded[M]:
    """Point a name at a metadata file that exists; with `overwrite` also a name that is in use.

    Args:
        read_only: the table or view stays another catalog's. Commits to it are refused, and its files are not deleted.
        expected: where the metadata must be of what is overwritten.

    Raises:
        InvalidName: the name cannot be used.
        TreeRefusal: the warehouse is of layout hadoop.
        InvalidLocation: the file, or the table or view, is outside the warehouse.
        MetadataFileMissing: no file is there.
        InvalidMetadata: the file is not metadata of this kind.
        NoSuchNamespace: the namespace is not there.
        TableExists, ViewExists: the name is taken.
        Protected: what was to be overwritten is protected.
        CommitFailed: what is to be overwritten is not where it is expected, or its last commit may just be deleting the
            file.
        PointerMoved: it kept changing.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit(f"register_{kind}", identifier)
    check_identifier(identifier)
    check_registrable(catalog)
    check_location(catalog, location, "metadata-location")
    wanted = Registration(kind, identifier, Location(location), overwrite, read_only, expected)
    return land_one(catalog, wanted).loaded


def load(catalog: Catalog, kind: Kind[M], identifier: TableIdentifier) -> Loaded[M]:
    """Return a table or view as it is now.

    Raises:
        NoSuchTable, NoSuchView: nothing of this kind has this name.
        MetadataFileMissing, CorruptMetadata: its metadata file is gone, or cannot be read.
        FilesUnavailable: the store does not answer.
    """
    catalog.permit(f"load_{kind}", identifier)
    pointer, metadata = catalog.read_now(kind, identifier)
    return Loaded(identifier, pointer.metadata_location, metadata, metadata.to_json(), pointer.registration)


def load_recorded(catalog: Catalog, kind: Kind[M], identifier: TableIdentifier, recorded: str) -> Loaded[M]:
    """Return a table or view for a repeated request: as it is now, else as it was recorded.

    Something else may have the name by now: it is the same only if its pointer has been at this location, and no other
    table's metadata has been registered over it since.

    Args:
        recorded: what was recorded with the Idempotency-Key.

    Raises:
        NoSuchTable, NoSuchView: it was dropped since, and the file is gone too.
        MetadataFileMissing: the same, and another one's metadata is in its place.
    """
    catalog.permit(f"load_{kind}", identifier)
    pointer, at = catalog.find(identifier), RecordedPlace.of_text(recorded)
    if (
        pointer is not None
        and pointer.kind is kind.of_pointer
        and at.uuid in (None, pointer.uuid)
        and (event := event_at(catalog, pointer.id, at.location)) is not None
        and event.uuid == pointer.uuid
    ):
        return load(catalog, kind, identifier)
    return load_as_recorded(catalog, kind, identifier, recorded)


def load_as_recorded(
    catalog: Catalog, kind: Kind[M], identifier: TableIdentifier, recorded: str
) -> Loaded[M]:
    """Return what a request made, or let go, whatever has the name now.

    Raises:
        NoSuchTable, NoSuchView: the file is gone.
        MetadataFileMissing: another one's metadata is in its place.
        FilesUnavailable: the store does not answer.
    """
    catalog.permit(f"load_{kind}", identifier)
    at = RecordedPlace.of_text(recorded)
    try:
        metadata = catalog.read_file(kind, at.location, at.uuid)
    except Unavailable:
        raise
    except IcetowerError as error:
        if isinstance(error, MetadataFileMissing) and error.because:
            raise
        raise kind.no_such(identifier) from error
    return Loaded(identifier, at.location, metadata, metadata.to_json())


def load_landed(catalog: Catalog, kind: Kind[M], identifier: TableIdentifier, recorded: str) -> Loaded[M]:
    """Return the table or view of a commit that is repeated under its Idempotency-Key.

    Raises:
        CommitStateUnknown: it has landed, and cannot be shown any more. A client that hears of a refusal would delete
            manifests that the table has, wherever it is by now.
        FilesUnavailable: the store does not answer.
    """
    catalog.permit(f"load_{kind}", identifier)
    try:
        return load_recorded(catalog, kind, identifier, recorded)
    except (NotFound, CorruptMetadata) as error:
        raise CommitStateUnknown(
            f"This commit to {identifier} has landed, but the {kind} has left this name since, and the metadata file "
            "of the commit is gone. Nothing was deleted now"
        ) from error


def event_at(catalog: Catalog, pointer_id: int, location: str) -> PointerEvent | None:
    """Return the event that took a pointer to a location, if it is among the last ones."""
    taken = (
        event
        for event in last_events(catalog, pointer_id)
        if event.location == location and event.previous_location != location
    )
    return next(taken, None)
