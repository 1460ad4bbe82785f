"""What was dropped and can come back: listed, brought back, or purged for good."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.catalog.context.absent_stores import check_store_is_there
from app.catalog.context.catalog import Catalog, new_in_warehouse
from app.catalog.context.kinds import TABLES, VIEWS, Kind
from app.catalog.context.listings import Listing, Page, page_of
from app.catalog.context.protection import check_namespace_unprotected, check_unprotected
from app.catalog.context.registrations import new_registration
from app.catalog.exports.forks import find_fork, find_view_fork
from app.database.dropped import Dropped, DroppedMeanwhile, FilesInUse
from app.database.pointers.history import UNREGISTERED
from app.database.pointers.moves import NameTaken
from app.database.pointers.pointer import PointerKind
from app.engine.model.data_types.moments import moment_text
from app.engine.model.identifiers import Namespace, TableIdentifier, check_identifier, check_namespace
from app.engine.model.settings.properties import allows_deletes
from app.errors import (
    CorruptMetadata,
    InvalidRequest,
    MetadataFileMissing,
    NamespaceExists,
    NoSuchNamespace,
    PurgeRefused,
)
from app.recoveries import NoSuchDropped, PastIsGone, UndropRefused

log = logging.getLogger(__name__)

MOST_CHOICES = 20
"""How many of the things that had one name a message lists."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of the things that were dropped is meant: one by its id, or the latest of a name."""

    id: int | None = None
    namespace: Namespace | None = None
    name: str | None = None
    """Of a table or view; None for the namespace itself."""

    @property
    def text(self) -> str:
        """What is looked for, as in messages."""
        if self.id is not None:
            return f"id {self.id}"
        return str(self.namespace if self.name is None else TableIdentifier(self._namespace, self.name))

    @property
    def _namespace(self) -> Namespace:
        assert self.namespace is not None
        return self.namespace

    @property
    def as_name(self) -> tuple[Namespace, str | None]:
        """The name that is looked for."""
        return self._namespace, self.name


@dataclass(frozen=True, slots=True)
class NewName:
    """The name under which something comes back; what is None stays as it was."""

    namespace: tuple[str, ...] | None = None
    name: str | None = None
    with_namespace: bool = False
    """Whether to make the namespace if it is missing, with the properties that it had if it was dropped."""


AS_IT_WAS = NewName()


def list_dropped(
    catalog: Catalog, page: Page, *, namespace: Namespace | None = None, name: str | None = None
) -> Listing[Dropped]:
    """Return what can come back, latest drop first.

    Args:
        catalog: the warehouse.
        page: which part; `after` is the last id of the part before.
        namespace: only what was this namespace; with `name`, only tables and views of this name in it.
        name: of a table or view.
    """
    catalog.permit("list_dropped", *([namespace] if namespace else []))
    before = int(page.after) if page.after else None
    found = catalog.server.dropped.list(
        catalog.warehouse.id,
        catalog.now_ms(),
        before=before,
        limit=page.read_limit,
        name=None if namespace is None else (namespace, name),
    )
    cut = page_of(tuple(str(entry.id) for entry in found), page)
    return Listing(found[: len(cut.items)], cut.next_after)


def undrop(catalog: Catalog, wanted: Wanted, new: NewName = AS_IT_WAS) -> dict[str, object]:
    """Bring something back as it was, and return what it is called now.

    Raises:
        InvalidName: the new name cannot be used.
        InvalidRequest: a namespace is to become a table.
        NoSuchDropped: nothing that is meant can come back.
        NoSuchNamespace: the namespace is not there, and was not to be made.
        NoSuchWarehouse: the warehouse is gone since the request came.
        UndropRefused: the name is taken, a table with the same files is there, or another catalog has gone on with it.
        PastIsGone: its metadata file is gone, or another table's is in its place.
        FilesUnavailable: the store does not answer, or is not there.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit("undrop", *([wanted.namespace] if wanted.namespace else []))
    entry = _load(catalog, wanted)
    namespace = entry.namespace if new.namespace is None else check_namespace(Namespace(new.namespace))
    if entry.pointer is None and new.name is not None:
        raise InvalidRequest(f"{entry} is a namespace: it comes back under the name of a namespace")
    if entry.pointer is not None and not catalog.files.exists(entry.pointer.metadata_location):
        check_store_is_there(catalog, entry.pointer.metadata_location)
        raise PastIsGone(
            f"{entry} cannot come back: its metadata file has been deleted, as Spark's DROP TABLE … PURGE does "
            f"by itself: {entry.pointer.metadata_location}"
        )
    entry = _registered_anew(catalog, entry)
    _check_not_forked(catalog, entry)
    name = entry.name if new.name is None else new.name
    answer = _summary(entry, namespace, name)
    claim = catalog.caller.claim_of(answer_text(answer))
    catalog.server.step("before_undrop")
    try:
        with new_in_warehouse(catalog):
            if name is None:
                catalog.server.dropped.undrop_namespace(entry, namespace, catalog.author(), claim)
            else:
                catalog.server.dropped.undrop(
                    entry,
                    check_identifier(TableIdentifier(namespace, name)),
                    catalog.author(),
                    claim,
                    with_namespaces=new.with_namespace,
                )
    except DroppedMeanwhile as error:
        raise NoSuchDropped(str(error)) from error
    except NoSuchNamespace as error:
        raise NoSuchNamespace(
            f"{namespace}. Undrop it first, or set create-namespace to true (--create-namespace)"
        ) from error
    except FilesInUse as error:
        raise UndropRefused(
            f"Cannot undrop {entry}: {error.identifier} has the same table uuid, so its files are in use"
        ) from error
    except NamespaceExists as error:
        raise UndropRefused(f"Cannot undrop {entry}: namespace {namespace} is there") from error
    except NameTaken as taken:
        raise UndropRefused(
            f"Cannot undrop {entry} as {taken.identifier}: a {taken.kind} of this name is there. "
            "Bring it back under another name",
            _choices(catalog, (entry.namespace, entry.name)),
        ) from taken
    catalog.server.step("after_undrop")
    return answer


def _registered_anew(catalog: Catalog, entry: Dropped) -> Dropped:
    """Return what was registered with another number.

    So no server believes what it keeps of a file that others wrote.

    Raises:
        PastIsGone: another table's metadata is where its own was.
    """
    pointer = entry.pointer
    if pointer is None or not pointer.registration:
        return entry
    kind: Kind[Any] = TABLES if pointer.kind is PointerKind.TABLE else VIEWS
    number = new_registration()
    pointer = replace(pointer, registration=-number if pointer.is_read_only else number)
    try:
        catalog.read(kind, pointer)
    except MetadataFileMissing as error:
        raise PastIsGone(f"{entry} cannot come back: {error}") from error
    except CorruptMetadata as error:
        log.warning("%s comes back with metadata that cannot be read: %s", entry, error)
    return replace(entry, pointer=pointer)


def _check_not_forked(catalog: Catalog, entry: Dropped) -> None:
    """Check that no other catalog has committed to a table or view since it was dropped.

    Raises:
        UndropRefused: another one has; both would commit to it.
        FilesUnavailable: the store does not answer.
    """
    pointer = entry.pointer
    if pointer is None or pointer.is_read_only:
        return
    try:
        if pointer.kind is PointerKind.VIEW:
            fork = find_view_fork(catalog, pointer, catalog.read(VIEWS, pointer))
        else:
            metadata = catalog.read(TABLES, pointer)
            fork = find_fork(catalog, pointer.uuid, pointer.id, pointer.metadata_location, metadata)
    except (CorruptMetadata, MetadataFileMissing):
        return
    if fork is not None:
        raise UndropRefused(
            f"Cannot undrop {entry}: {fork} is a commit to it that this catalog does not have: another one has taken "
            "it over, or the database is an old backup. If no other catalog has it by now, register that file"
        )


def purge_dropped(catalog: Catalog, wanted: Wanted) -> dict[str, object]:
    """Forget something that was dropped.

    A table's files are queued for deletion, those of a view stay.

    Raises:
        NoSuchDropped: nothing that is meant can come back.
        UndropRefused: several things had this name: one has to be chosen by its id.
        Protected: it is protected; where it was, as that is now.
        PurgeRefused: gc.enabled is false, or the table belongs to another catalog.
        FilesUnavailable: the table's metadata cannot be read now.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit("purge_dropped", *([wanted.namespace] if wanted.namespace else []))
    entry = _load(catalog, wanted)
    if wanted.id is None:
        choices = _choices(catalog, wanted.as_name)
        if len(choices) > 1:
            raise UndropRefused(f"{wanted.text} was dropped several times: choose one by its id", choices)
    is_table = entry.pointer is not None and entry.pointer.kind is PointerKind.TABLE
    if is_table:
        _check_gc(catalog, entry)
    if entry.pointer is None:
        properties = catalog.find_namespace(entry.namespace) or {}
        check_namespace_unprotected(catalog, entry.namespace, properties, "purge")
    elif is_table:
        check_unprotected(catalog, TABLES, entry.pointer, "purge")
    else:
        check_unprotected(catalog, VIEWS, entry.pointer, "purge")
    answer = _summary(entry, entry.namespace, entry.name)
    claim = catalog.caller.claim_of(answer_text(answer))
    catalog.server.step("before_purge_dropped")
    try:
        catalog.server.dropped.purge(entry, catalog.author(), claim, deletion=is_table)
    except DroppedMeanwhile as error:
        raise NoSuchDropped(str(error)) from error
    catalog.server.step("after_purge_dropped")
    catalog.server.has_deletions.set()
    return answer


def answer_text(answer: dict[str, object]) -> str:
    """Return an answer as JSON: the same for the request and when it is sent again."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def _summary(entry: Dropped, namespace: Namespace, name: str | None) -> dict[str, object]:
    """Return what answers say of one thing, as JSON."""
    answer: dict[str, object] = {"id": entry.id, "kind": entry.kind, "namespace": list(namespace.levels)}
    if entry.pointer is not None:
        answer |= {"name": name, "metadata-location": entry.pointer.metadata_location}
    return answer


def _load(catalog: Catalog, wanted: Wanted) -> Dropped:
    now_ms, stored, warehouse_id = catalog.now_ms(), catalog.server.dropped, catalog.warehouse.id
    if wanted.id is not None:
        entry = stored.find(warehouse_id, wanted.id, now_ms)
    else:
        entry = next(iter(stored.list(warehouse_id, now_ms, limit=1, name=wanted.as_name)), None)
    if entry is None:
        raise NoSuchDropped(
            f"Nothing that was dropped can come back under {wanted.text}: {_why_not(catalog, wanted)}"
        )
    return entry


def _why_not(catalog: Catalog, wanted: Wanted) -> str:
    if wanted.name is not None:
        last = catalog.server.past.last_event(
            catalog.warehouse.id, TableIdentifier(wanted.as_name[0], wanted.name)
        )
        if last is not None and last.event == UNREGISTERED:
            return (
                f"{last.kind.value} {wanted.text} was not dropped but unregistered at {moment_text(last.at_ms)}. If "
                f"no other catalog has it by now, register its metadata file: {last.previous_location}"
            )
    return "it was never dropped here, was purged or brought back, or its time is over"


def _choices(catalog: Catalog, name: tuple[Namespace, str | None]) -> Sequence[str]:
    found = catalog.server.dropped.list(catalog.warehouse.id, catalog.now_ms(), limit=MOST_CHOICES, name=name)
    return [
        f"id {entry.id}, a {entry.kind} dropped by {entry.principal} at {moment_text(entry.dropped_ms)}"
        for entry in found
    ]


def _check_gc(catalog: Catalog, entry: Dropped) -> None:
    assert entry.pointer is not None
    if entry.pointer.is_read_only:
        raise PurgeRefused(entry, is_read_only=True)
    try:
        metadata = catalog.read(TABLES, entry.pointer)
    except (MetadataFileMissing, CorruptMetadata):
        return  # The purge finds out that it cannot know the files.
    if not allows_deletes(metadata.properties):
        raise PurgeRefused(entry)
