"""The plan of a rebuild: which pointers are added or move, and what is left and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS, Kind
from app.catalog.context.places.file_names import mark_of
from app.catalog.context.places.locations import is_allowed
from app.catalog.exports.export_files import ExportedDrop, ExportedWarehouse
from app.catalog.named import event_at
from app.catalog.rebuild.drops import DropToNote, drop_text, drops_to_note
from app.catalog.rebuild.known_pointers import Known, KnownPointer, NamedBy, load_known
from app.catalog.rebuild.names import name_from_location, with_uuid
from app.catalog.rebuild.search import AnyVerdict, FoundName, SearchResult, search
from app.catalog.rebuild.warehouse_settings import MissingSettings, missing_settings
from app.database.pointers.pointer import PointerKind
from app.engine.chains.verdicts import Evidence, FoundTable, FoundView
from app.engine.model.identifiers import Namespace, TableIdentifier, check_identifier
from app.engine.model.ids import Location, TableUuid
from app.engine.properties.own_properties import MOVED_TO
from app.errors import InvalidLocation, InvalidMetadata, InvalidName, MetadataFileMissing
from app.fileio.locations import is_inside
from app.formats.metadata.chain_facts import place_text
from app.formats.metadata.own_names import mark_in

DEFAULT_NAMESPACE = Namespace(("rebuilt",))


class Action(StrEnum):
    """What a rebuild does about one table or view."""

    ADD = "add"
    ADVANCE = "advance"
    """Its pointer is older than storage, and moves forward."""
    KEEP = "keep"
    LEAVE = "leave"
    """Nothing: the reason says why."""


@dataclass(frozen=True, slots=True)
class RebuildWish:
    """What a person wants of a rebuild."""

    takes_likely: bool = False
    """Whether files count that are the newest in all likelihood, but not for certain."""
    takes_dropped: bool = False
    """Whether tables come back that were found but had been dropped, as far as an export or the database knows."""
    export: Location | None = None
    """The export to use; None for the newest one that is younger than the database."""
    uses_exports: bool = True
    namespace: Namespace = DEFAULT_NAMESPACE
    """Where tables go whose location names no namespace."""


@dataclass(frozen=True, slots=True)
class RebuildItem:
    """What is planned for one table or view."""

    action: Action
    kind: PointerKind
    uuid: str
    identifier: TableIdentifier
    named_by: NamedBy
    location: Location | None = None
    """Its newest metadata file, as far as that is known."""
    seen: Location | None = None
    """Where its pointer is."""
    evidence: Evidence | None = None
    reason: str | None = None
    others: tuple[Location, ...] = ()
    """Files that may be the newest instead; of what is kept, the last ones of commits that it lacks."""
    is_read_only: bool = False
    """Whether it belongs to another catalog, as far as a database or an export says."""


@dataclass
class RebuildPlan:
    """What a rebuild would do."""

    items: list[RebuildItem] = field(default_factory=list)
    namespaces: dict[Namespace, dict[str, str]] = field(default_factory=dict)
    """Those to create, with their properties; parents first."""
    found: SearchResult = field(default_factory=SearchResult)
    export: Location | None = None
    dropped: frozenset[TableUuid] = frozenset()
    """What the database remembered to have dropped when the plan was begun."""
    drops: list[DropToNote] = field(default_factory=list)
    """What can come back, as it could before."""
    waiting_purges: int = 0
    """Purges of dropped tables that wait: they are called off, as the tables may have come back after a backup."""
    settings: MissingSettings = field(default_factory=MissingSettings)
    warehouses: list[ExportedWarehouse] = field(default_factory=list)
    """Others that the server had, as an export says. Only shown: it may be planted, and name any place."""

    @property
    def has_changes(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.of(Action.ADD, Action.ADVANCE) or self.namespaces or self.drops or self.settings)

    def of(self, *actions: Action) -> list[RebuildItem]:
        """Return the items with these actions."""
        return [item for item in self.items if item.action in actions]


def plan_rebuild(catalog: Catalog, wish: RebuildWish) -> RebuildPlan:
    """Return what is to be done for the database to have what storage has; changes nothing.

    Raises:
        InvalidRequest: the export cannot be understood.
        FileMissing, FilesUnavailable, DatabaseUnavailable: safe to try again.
    """
    catalog.permit("rebuild_catalog")
    known = load_known(catalog, wish.export, uses_exports=wish.uses_exports)
    catalog.server.step("rebuild_known")
    plan = RebuildPlan(
        export=known.export.location if known.export else None, dropped=frozenset(known.dropped)
    )
    plan.found = search(catalog, known.by_key())
    met = {
        (pointer.kind, pointer.identifier)
        for name in plan.found.names
        for pointer, _ in name.judged
        if pointer
    }
    items = [item for name in plan.found.names for item in _items_of(catalog, wish, known, name)]
    items += [
        _not_found(catalog, wish, known, pointer)
        for pointer in known.pointers
        if (pointer.kind, pointer.identifier) not in met
    ]
    plan.items = sorted(
        _with_own_names(known, items), key=lambda item: (item.identifier, item.kind, item.uuid)
    )
    plan.namespaces = dict(_missing_namespaces(catalog, known, plan.of(Action.ADD)))
    present = {item.uuid for item in plan.of(Action.ADD, Action.ADVANCE, Action.KEEP)}
    plan.drops = list(drops_to_note(catalog, known.drops, present))
    plan.settings = missing_settings(catalog.warehouse, known.export.settings if known.export else None)
    plan.warehouses = _missing_warehouses(catalog, known)
    if plan.has_changes:
        plan.waiting_purges = known.waiting_purges
    catalog.server.step("rebuild_planned")
    return plan


def _items_of(catalog: Catalog, wish: RebuildWish, known: Known, name: FoundName) -> Iterator[RebuildItem]:
    for pointer, verdict in name.judged:
        if pointer is not None:
            item = RebuildItem(
                Action.LEAVE,
                name.kind,
                name.uuid or pointer.uuid,
                pointer.identifier,
                pointer.named_by,
                is_read_only=pointer.is_read_only,
            )
            if pointer.named_by is NamedBy.DATABASE:
                item = replace(item, seen=pointer.location)
        else:
            root, drop = catalog.warehouse.root_location, _drop_of(known, name.uuid)
            identifier, named_by = (
                name_from_location(name.home, root, name.uuid, wish.namespace)
                if drop is None
                else (TableIdentifier(drop.namespace, drop.name or ""), NamedBy.DROPPED)
            )
            item = RebuildItem(Action.LEAVE, name.kind, name.uuid, identifier, named_by)
        item = _judged(catalog, wish, known, name, item, verdict)
        if pointer is not None and item.action in {Action.ADD, Action.ADVANCE}:
            item = _fenced(catalog, pointer, item)
        if item.action in {Action.ADD, Action.ADVANCE}:
            item = _by_others(catalog, wish, known, item)
        if pointer is None:
            item = _left_to_others(catalog, known, name, item)
        elif pointer.named_by is NamedBy.EXPORT and item.reason is None:
            item = replace(item, reason=_twin_of(catalog, known, item))  # It may be meant: only said.
        if (
            item.action is Action.ADVANCE
            and pointer is not None
            and _goes_back(catalog, pointer, item, verdict.newest.last_updated_ms if verdict.newest else 0)
        ):
            reason = (
                "its pointer has been there before, and the file that it names now is there"
                if catalog.files.exists(pointer.location)
                else "the file that its pointer names is gone, and the newest one left is older"
            )
            item = replace(item, action=Action.LEAVE, reason=reason)
        if (
            item.action is Action.ADVANCE
            and pointer is not None
            and _is_of_another_name(catalog, pointer, item)
        ):
            reason = (
                f"{item.location} was committed under another name of this table: if that name was let go, register "
                "that file to take over what was committed there"
            )
            item = replace(item, action=Action.LEAVE, reason=reason)
        yield item


def _left_to_others(catalog: Catalog, known: Known, name: FoundName, item: RebuildItem) -> RebuildItem:
    """Leave an unknown table to the warehouse that has it, or the inner one around it."""
    twin = _twin_of(catalog, known, item)
    if twin is not None:
        return replace(item, action=Action.LEAVE, reason=twin)
    for inner, root in known.inner:
        if is_inside(name.home, root):
            reason = f"it is inside warehouse {inner}, at {root}: rebuild that one, or create it again"
            return replace(item, action=Action.LEAVE, reason=reason)
    return item


def _twin_of(catalog: Catalog, known: Known, item: RebuildItem) -> str | None:
    """Return a sentence about another name, in any warehouse, that has the table already."""
    if not item.uuid or not known.has_neighbours:
        return None
    twins = catalog.server.neighbours.with_uuid(TableUuid(item.uuid), 1)
    return next((f"{twin} is the same table: commits to both would undo each other" for twin in twins), None)


def _fenced(catalog: Catalog, pointer: KnownPointer, item: RebuildItem) -> RebuildItem:
    """Leave a table or view at its fence, if the catalog that it was moved to has gone on."""
    if item.location in {None, pointer.location}:
        return item
    kind: Kind[Any] = TABLES if item.kind is PointerKind.TABLE else VIEWS
    try:
        moved_to = catalog.read_file(kind, pointer.location).properties.get(MOVED_TO)
    except (InvalidMetadata, InvalidLocation, MetadataFileMissing):
        return item
    assert item.location is not None
    if moved_to is None or MOVED_TO in catalog.read_file(kind, item.location).properties:
        return item
    reason = f"it was moved to {moved_to}, where others have committed since"
    action = Action.LEAVE if item.seen is not None else item.action
    return replace(item, action=action, location=pointer.location, reason=reason)


def _goes_back(catalog: Catalog, pointer: KnownPointer, item: RebuildItem, updated_ms: int) -> bool:
    """Say whether a file is, or may be, older than where the pointer of a database is."""
    if pointer.id is None or item.location is None:
        return False
    if event_at(catalog, pointer.id, item.location) is not None:
        return True
    if catalog.files.exists(pointer.location):
        return False  # The logs have said which of the two follows the other.
    last = catalog.pointers.history(pointer.id, limit=1)
    return bool(last) and updated_ms < last[0].at_ms


def _is_of_another_name(catalog: Catalog, pointer: KnownPointer, item: RebuildItem) -> bool:
    """Say whether the database knows a file as the last one of another pointer."""
    if pointer.id is None or item.location is None or not item.uuid:
        return False
    ended = catalog.server.pointer_states.ended(TableUuid(item.uuid), pointer.id)
    return place_text(item.location) in {place_text(each.location) for each in ended}


def _judged(
    catalog: Catalog,
    wish: RebuildWish,
    known: Known,
    name: FoundName,
    item: RebuildItem,
    verdict: AnyVerdict,
) -> RebuildItem:
    newest = verdict.newest
    item = replace(item, evidence=verdict.evidence, reason=verdict.reason, others=verdict.others)
    if newest is None:
        return item
    item = replace(item, location=newest.location)
    if item.seen is not None and place_text(item.seen) == newest.place:
        reason = _beside(verdict) or _since_backup(known, item, newest)
        return replace(item, action=Action.KEEP, reason=reason, others=verdict.beside)
    if not verdict.is_certain and not wish.takes_likely:
        return item
    flaw = _flaw_of(catalog, name, item) or _dropped(catalog, wish, known, item, newest)
    if flaw is not None:
        return replace(item, reason=flaw)
    reason = item.reason or _beside(verdict) or _since_backup(known, item, newest)
    return replace(item, action=Action.ADD if item.seen is None else Action.ADVANCE, reason=reason)


def _beside(verdict: AnyVerdict) -> str | None:
    """Return a sentence about commits that landed, and that the newest file was not built on."""
    if not verdict.beside:
        return None
    return (
        f"commits up to {verdict.beside[0]} are not in it: they landed before the database was set back, or in "
        "another catalog. Register that file under another name to take over what they wrote"
    )


def _by_others(catalog: Catalog, wish: RebuildWish, known: Known, item: RebuildItem) -> RebuildItem:
    """Leave a table at its pointer if another database has written its newest file.

    Of one that is added it is only said. Another database may be the predecessor of this one: it has written what this
    one has, or this one has written nothing.
    """
    own, mark = mark_of(catalog.server).hex(), mark_in(item.location or "")
    if mark == own or item.is_read_only:
        return item
    text = (
        f"{item.location} was written by another catalog: if that one has it, commits to both undo each other"
    )
    seen = item.seen
    if known.export is not None and item.named_by is NamedBy.EXPORT:
        seen = known.export.pointers[item.identifier].location
        if mark == known.export.mark:
            return item
    if seen is None:
        is_predecessor = own not in known.marks or mark in known.marks
        return item if is_predecessor else replace(item, reason=item.reason or text)
    if mark == mark_in(seen) or wish.takes_likely:
        return item
    return replace(item, action=Action.LEAVE, reason=item.reason or f"{text}. --likely takes it")


def _flaw_of(catalog: Catalog, name: FoundName, item: RebuildItem) -> str | None:
    """Return why a pointer could not be made, whatever it is called."""
    try:
        check_identifier(item.identifier)
    except InvalidName as error:
        return str(error)
    for location in (item.location, name.home):
        if location is not None and not is_allowed(catalog, location):
            return f"{location} is outside the warehouse"
    return None


def _dropped(
    catalog: Catalog, wish: RebuildWish, known: Known, item: RebuildItem, newest: FoundTable | FoundView
) -> str | None:
    """Return why something seems to have been dropped, if that counts."""
    if wish.takes_dropped or item.named_by is NamedBy.DATABASE:
        return None
    if item.named_by is NamedBy.EXPORT:
        return _taken_over(known, item)
    drop = _drop_of(known, item.uuid)
    if item.uuid and item.uuid in known.dropped and not _came_back(known, drop, newest):
        return "it was dropped; its files stayed"
    if known.export is not None and item.uuid in known.export.unregistered:
        return "it was unregistered: another catalog has it"
    if drop is not None and drop.location != newest.location:
        # What has no mark, no catalog of ours has written.
        marks = {
            mark_of(catalog.server).hex(),
            mark_in(drop.location or ""),
            known.export and known.export.mark,
        }
        if mark_in(newest.location) not in marks - {None}:
            return f"it was dropped, and {newest.location} was written by another catalog, which may have it"
    if drop is not None and (drop.location == item.location or isinstance(newest, FoundView)):
        return drop_text(drop)
    # What was written after the export was alive then, or is younger.
    if known.export is not None and newest.last_updated_ms <= known.export.at_ms:
        return "found, and not in the export: it was dropped before, or made by another catalog"
    return None


def _taken_over(known: Known, item: RebuildItem) -> str | None:
    """Return why what another database's export has is left, if this one let it go."""
    if known.is_export_own or not item.uuid or item.uuid not in known.dropped:
        return None
    return "it was dropped or unregistered here, and is in the export of another database: another catalog may have it"


def _came_back(known: Known, drop: ExportedDrop | None, newest: FoundTable | FoundView) -> bool:
    """Say whether a table was committed to after a drop from which it could come back.

    And not let go again since. Of a view that does not say it: it is dropped, too, when another catalog takes it over.
    """
    if drop is None or not isinstance(newest, FoundTable):
        return False
    return newest.last_updated_ms > max(drop.dropped_ms, known.dropped.get(newest.uuid, 0))


def _drop_of(known: Known, uuid: str) -> ExportedDrop | None:
    """Return the last drop of a table or view that is known and that could come back."""
    return known.last_drops.get(uuid) if uuid else None


def _since_backup(known: Known, item: RebuildItem, newest: FoundTable | FoundView) -> str | None:
    """Return what a younger export says otherwise of a name than the database; it is only said."""
    export = known.export
    if export is None or item.named_by is not NamedBy.DATABASE or not item.uuid:
        return None
    if not known.is_export_own:
        return None  # It may be of a catalog beside, and says nothing of this one.
    names = known.exported_names.get(item.uuid, [])
    if item.identifier in names:
        return None
    if names:
        return f"the export, which is younger than the database, calls it {names[0]}: rename it"
    if item.uuid in export.unregistered:
        return "it was unregistered after the database was saved: another catalog has it. Unregister it again"
    is_older = newest.last_updated_ms <= export.at_ms
    drop = known.exported_drops.get(item.uuid)
    if not is_older or (drop is not None and drop.location != newest.location):
        return None
    if drop is not None:
        return f"{drop_text(drop)}. The database is from before: drop it again"
    return "it is not in the export, which is younger than the database: it may have been dropped since"


def _not_found(catalog: Catalog, wish: RebuildWish, known: Known, pointer: KnownPointer) -> RebuildItem:
    """Return what becomes of a known pointer of which the search has met nothing."""
    item = RebuildItem(
        Action.LEAVE,
        pointer.kind,
        pointer.uuid,
        pointer.identifier,
        pointer.named_by,
        location=pointer.location,
        seen=pointer.location if pointer.named_by is NamedBy.DATABASE else None,
        is_read_only=pointer.is_read_only,
    )
    if not is_allowed(catalog, pointer.location):
        return replace(item, reason=f"{pointer.location} is outside the warehouse")
    if not catalog.files.exists(pointer.location):
        return replace(item, reason="its metadata file is gone, and no other one of it was found")
    if item.seen:
        return replace(item, action=Action.KEEP)
    # Storage has not said what the file is; an export may name any.
    try:
        uuid = _uuid_in_file(catalog, pointer)
    except InvalidMetadata as error:
        return replace(item, reason=str(error))
    if uuid != pointer.uuid:
        return replace(item, reason=f"its metadata file is of another one, with uuid {uuid or 'none'}")
    reason = None if wish.takes_dropped else _taken_over(known, item)
    return replace(item, action=Action.ADD if reason is None else Action.LEAVE, reason=reason)


def _uuid_in_file(catalog: Catalog, pointer: KnownPointer) -> str:
    if pointer.kind is PointerKind.TABLE:
        return catalog.read_file(TABLES, pointer.location).uuid
    return catalog.read_file(VIEWS, pointer.location).uuid


def _with_own_names(known: Known, items: Iterable[RebuildItem]) -> Iterator[RebuildItem]:
    """Yield the items with names that no two share.

    Of two tables that claim one name by their locations neither gets it: nothing says which of them had it.
    """
    found = list(items)
    taken = {pointer.identifier for pointer in known.pointers}
    adds = (item.identifier for item in found if item.action is Action.ADD and _is_unsure(item))
    claims = Counter(adds)
    for item in found:
        is_claimed = item.identifier in taken or claims[item.identifier] > 1
        if is_claimed and item.action is Action.ADD and _is_unsure(item):
            reason = item.reason or f"{item.identifier} is claimed by another one as well"
            yield replace(item, identifier=with_uuid(item.identifier, item.uuid), reason=reason)
        else:
            yield item


def _is_unsure(item: RebuildItem) -> bool:
    return item.named_by in (NamedBy.PATH, NamedBy.LOCATION, NamedBy.DROPPED)


def _missing_namespaces(
    catalog: Catalog, known: Known, added: Iterable[RebuildItem]
) -> Iterator[tuple[Namespace, dict[str, str]]]:
    """Yield namespaces that are missing, of the export and of what is added; parents first."""
    wanted = dict(known.export.namespaces) if known.export is not None else {}
    for item in added:
        wanted.setdefault(item.identifier.namespace, {})
    for namespace in sorted(wanted):
        if catalog.namespaces.find(catalog.warehouse.id, namespace) is None:
            yield namespace, wanted[namespace]


def _missing_warehouses(catalog: Catalog, known: Known) -> list[ExportedWarehouse]:
    """Return the warehouses of the export that the server has not got."""
    there = {name for name, _root in catalog.server.warehouses.roots()}
    return [other for other in (known.export.warehouses if known.export else ()) if other.name not in there]
