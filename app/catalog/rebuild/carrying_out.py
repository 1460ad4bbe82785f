"""Carrying a rebuild out: settings, namespaces, pointers through the one door, and drops."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.catalog.commits.intentions import Base
from app.catalog.commits.landing import land
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS, Kind, M
from app.catalog.named import Registration
from app.catalog.rebuild.drops import note_drop
from app.catalog.rebuild.known_pointers import pointers_of
from app.catalog.rebuild.planning import Action, RebuildItem, RebuildPlan
from app.catalog.rebuild.warehouse_settings import set_missing
from app.engine.model.ids import Location, TableUuid
from app.errors import IcetowerError, NamespaceExists, PointerMoved

BATCH = 32
"""How many pointers land in one transaction."""
WORKERS = 8


@dataclass(frozen=True)
class Rebuilt(Registration[M]):
    """A name for the newest metadata file that was found; it only moves forward."""

    seen: Location | None = None
    spares_protected = False
    needs_writable = True
    created_as, advanced_as = "rebuilt", "rebuilt"

    def require(self, base: Base[M]) -> bool:
        """Check that the name is as it was when the rebuild was planned.

        Raises:
            TableExists, ViewExists: the name has been taken.
            NoSuchTable, NoSuchView: it was renamed or dropped.
            PointerMoved: a commit came between.
        """
        if self.seen is None:
            base.check_free()
        elif base.seen is None:
            raise self.kind.no_such(self.identifier)
        elif base.seen.metadata_location != self.seen:
            raise PointerMoved(self.identifier, 1)
        return True


@dataclass(frozen=True, slots=True)
class RebuildOutcome:
    """What became of one item."""

    item: RebuildItem
    failure: str | None = None
    """Why it is not done, if it is not."""


def carry_out(catalog: Catalog, plan: RebuildPlan) -> Iterator[RebuildOutcome]:
    """Make what is planned, and yield what became of each; may be done again at any time.

    Raises:
        DatabaseUnavailable, CommitStateUnknown: settings, a namespace or a drop could not be noted; do it again.
    """
    catalog.permit("rebuild_catalog")
    if plan.waiting_purges:
        catalog.server.dropped.keep_files(catalog.warehouse.id)
        catalog.server.step("rebuild_purges_called_off")
    if plan.settings:
        set_missing(catalog, plan.settings)
        catalog.server.step("rebuild_settings_set")
    for namespace, properties in plan.namespaces.items():
        with contextlib.suppress(NamespaceExists):
            catalog.namespaces.create(catalog.warehouse.id, namespace, properties, catalog.author())
        catalog.server.step("rebuild_namespace_made")
    wanted, left = _still_wanted(catalog, plan)
    yield from left
    for kind in (TABLES, VIEWS):
        items = [item for item in wanted if item.kind is kind.of_pointer]
        batches = [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
        with ThreadPoolExecutor(WORKERS, "rebuild") as pool:
            for outcomes in pool.map(partial(_land, catalog, kind), batches):
                yield from outcomes
    # Last: what is dropped must not keep anything from being there.
    for drop in plan.drops:
        note_drop(catalog, drop)
        catalog.server.step("rebuild_drop_noted")


def _still_wanted(catalog: Catalog, plan: RebuildPlan) -> tuple[list[RebuildItem], list[RebuildOutcome]]:
    """Return what is still to be made, and what others have named or dropped since.

    A search takes minutes, and so may the person who is asked after it.
    """
    known = {(item.uuid, item.identifier) for item in plan.items if item.seen is not None}
    since = {
        pointer.uuid: pointer.identifier
        for pointer in pointers_of(catalog)
        if pointer.uuid and (pointer.uuid, pointer.identifier) not in known
    }
    dropped = catalog.server.pointer_exports.drop_times(catalog.warehouse.id).keys() - plan.dropped
    wanted, left = [], []
    for item in plan.of(Action.ADD, Action.ADVANCE):
        if item.action is Action.ADD and item.uuid in since:
            left.append(RebuildOutcome(item, f"it is in the catalog as {since[TableUuid(item.uuid)]} by now"))
        elif item.action is Action.ADD and item.uuid and item.uuid in dropped:
            left.append(RebuildOutcome(item, "it has been dropped meanwhile"))
        else:
            wanted.append(item)
    return wanted, left


def _land(catalog: Catalog, kind: Kind[Any], items: Sequence[RebuildItem]) -> list[RebuildOutcome]:
    """Make some pointers in one transaction; if that is refused, each in its own."""
    try:
        land(catalog, [_intention(kind, item) for item in items])
    except IcetowerError as error:
        if len(items) == 1:
            # The reply to COMMIT may have been lost, or another rebuild was faster.
            found = catalog.find(items[0].identifier)
            is_done = found is not None and found.metadata_location == items[0].location
            return [RebuildOutcome(items[0], None if is_done else str(error))]
        return [outcome for item in items for outcome in _land(catalog, kind, [item])]
    catalog.server.step("rebuild_batch_landed")
    return [RebuildOutcome(item) for item in items]


def _intention(kind: Kind[M], item: RebuildItem) -> Rebuilt[M]:
    assert item.location is not None
    is_there = item.seen is not None
    return Rebuilt(kind, item.identifier, item.location, is_there, item.is_read_only, seen=item.seen)
