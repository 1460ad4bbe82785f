"""Lives of a catalog whose past is remembered: what is done to it, and what it must show afterwards."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import text

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import Loaded
from app.catalog.past.dropped import list_dropped
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.errors import IcetowerError, NoSuchNamespace
from app.recoveries import NoSuchDropped, UndropRefused
from tests.builders.catalogs import Clock
from tests.builders.queues import work_off_one
from tests.builders.table_files import NamingFiles
from tests.builders.tables import FLIGHTS
from tests.property.catalog.lives import Ground, reached
from tests.property.catalog.worlds import EVERYTHING, GONE, Key, Shown, World, look, shown

Found = TypeVar("Found")
OTHER, DEEP = Namespace(("other",)), Namespace(("other", "deep"))
NAMESPACES = [FLIGHTS, OTHER, DEEP]
HOUR_MS, DAY_MS = 3_600_000, 24 * 3_600_000
REMEMBERED_AT_ONCE = 3
"""At how many remembered times a world is compared after each step."""


class Picker:
    """Takes one of several things after another, as a plan says."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = itertools.cycle(numbers)

    def of(self, among: Sequence[Found]) -> Found:
        """Return one of some things."""
        return among[next(self._numbers) % len(among)]

    def yes(self) -> bool:
        """Return yes or no."""
        return self.of([True, False])


@dataclass(frozen=True)
class Recoverable:
    """Something that was dropped and can come back."""

    id: int
    warehouse: int
    namespace: Namespace
    name: str | None
    was: Shown | None
    """None for a namespace."""
    properties: dict[str, str]
    until_ms: int
    purge: bool

    @property
    def kind(self) -> str:
        """Return what it is."""
        return "namespace" if self.was is None else self.was.kind

    @property
    def key(self) -> Key:
        """Return the name of a table or view."""
        assert self.name is not None
        return self.warehouse, TableIdentifier(self.namespace, self.name)


class PastLife:
    """A catalog, what it must show, what it has shown before, and which files were deleted."""

    def __init__(self, ground: Ground, clock: Clock) -> None:
        self.ground, self.clock = ground, clock
        self.catalogs = ground.catalogs
        self.files = NamingFiles(ground.store)
        self.world = look(self.catalogs)
        self.recoverable: dict[int, Recoverable] = {}
        self.past: list[tuple[int, World]] = []
        self.gone: set[str] = set()
        self.undropped = self.reads = 0
        self._reached: dict[str, frozenset[str]] = {}
        self._turns = itertools.count()
        self.remember()

    # What is there

    def tables(self) -> list[Key]:
        """Return the names of all tables."""
        return sorted(key for key, it in self.world.names.items() if it.kind == "table")

    def now_ms(self) -> int:
        """Return the time."""
        return self.clock()

    def there(self) -> set[str]:
        """Return every file there is."""
        return self.ground.there()

    def states(self) -> Iterator[Shown]:
        """Yield every table and view that is there or can come back."""
        yield from self.world.names.values()
        for entry in self.recoverable.values():
            if entry.was is not None:
                yield entry.was

    def files_of(self, manifest_list: str) -> frozenset[str]:
        """Return what a snapshot reaches, as it was when it was seen first."""
        if manifest_list not in self._reached:
            self._reached[manifest_list] = frozenset(reached(self.ground.store, manifest_list))
        return self._reached[manifest_list]

    def protected(self) -> set[str]:
        """Return what no deletion may take: files of tables that are there or can come back, and of their past."""
        found: set[str] = set()
        snapshots: set[tuple[str, int]] = set()
        for it in self.states():
            found.add(it.location)
            document = it.document
            for kind in ("statistics", "partition-statistics"):
                found |= {each["statistics-path"] for each in document.get(kind, ())}
            for snapshot_id, manifest_list in it.snapshots().items():
                found |= self.files_of(manifest_list)
                snapshots.add((it.uuid, snapshot_id))
        views = {it.uuid for it in self.states() if it.kind == "view"}
        uuids = {uuid for uuid, _ in snapshots} | {it.uuid for it in self.states()}
        for _, world in self.past:
            for it in world.names.values():
                is_kept = it.uuid in uuids if it.head is None else (it.uuid, it.head) in snapshots
                if is_kept or it.uuid in views:
                    found.add(it.location)
        return found

    # What follows each step

    def refused(self) -> contextlib.AbstractContextManager[None]:
        """Return what lets a refusal be an answer: then nothing may have changed."""
        return contextlib.suppress(IcetowerError)

    def remember(self) -> None:
        """Note what the catalog must show of this moment from now on."""
        for it in self.world.names.values():
            for manifest_list in it.snapshots().values():
                self.files_of(manifest_list)
        self.past.append((self.now_ms(), self.world.copy()))

    def check_now(self) -> None:
        """Compare what is there, and what can come back, with the model."""
        assert look(self.catalogs) == self.world
        listed = {
            (entry.id, number, str(entry), entry.kind, entry.until_ms, entry.purge)
            for number, catalog in enumerate(self.catalogs)
            for entry in list_dropped(catalog, EVERYTHING).items
        }
        now_ms = self.now_ms()
        assert listed == {
            (each.id, each.warehouse, _text(each), each.kind, each.until_ms, each.purge)
            for each in self.recoverable.values()
            if each.until_ms > now_ms
        }

    def check_past(self, *, all_of_it: bool = False) -> None:
        """Compare what is shown of some remembered moments, the last one among them, with what was there."""
        turn = next(self._turns)
        chosen = [self.past[(turn * number) % len(self.past)] for number in range(1, REMEMBERED_AT_ONCE)]
        for at_ms, world in self.past if all_of_it else [*chosen, self.past[-1]]:
            self._check_at(at_ms, world)

    def _check_at(self, at_ms: int, world: World) -> None:
        seen = look(self.catalogs, at_ms)
        assert seen.namespaces == world.namespaces
        assert seen.names.keys() == world.names.keys()
        for key, was in world.names.items():
            now = seen.names[key]
            if was == GONE:
                continue
            assert now in (was, GONE), f"{key} at {at_ms} was something else"
            if self.can_be_read(was):
                assert now == was, f"{key} at {at_ms} is not readable, and nothing of it was let go"
                self.reads += 1

    def can_be_read(self, was: Shown) -> bool:
        """Say whether nothing of a state has been deleted; what may be deleted is checked with each deletion."""
        needed = {was.location}
        if was.head is not None:
            needed |= self.files_of(was.snapshots()[was.head])
        return not needed & self.gone

    # Deletions

    def work_off(self) -> None:
        """Work off the queue, and see that nothing goes that must stay."""
        for _ in range(20):
            queued = self.queued()
            if not queued:
                return
            with self.watched():
                work_off_one(self.ground.server)
            if queued == self.queued():
                return  # It waits: for its lease, or for a table that cannot be read.

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Look which files go, also between the steps of what is done, and that none of them must stay."""
        before = [self.there(), self.protected()]

        def compare(step: str = "") -> None:
            there = self.there()
            gone = before[0] - there
            self.gone |= gone
            assert gone & before[1] == set(), f"deleted after {step or 'a rule'}, and in use"
            before[:] = [there, self.protected()]

        self.ground.at_step.append(compare)
        try:
            yield
        finally:
            self.ground.at_step.remove(compare)
        compare()

    def queued(self) -> Sequence[int]:
        """Return the entries of the queue of deletions."""
        query = text("SELECT id FROM file_deletions WHERE state = 'queued' ORDER BY id")
        database = self.ground.server.orphan_runs._database
        return list(database.read(lambda connection: connection.scalars(query).all()))

    # The model's own changes

    def undrop_is_refused(
        self, entry: Recoverable, to: Namespace, name: str | None, *, makes: bool
    ) -> type[IcetowerError] | None:
        """Return what an undrop must be refused with; None if it must succeed."""
        world = self.world
        if entry.until_ms <= self.now_ms():
            return NoSuchDropped
        if entry.was is None:
            return UndropRefused if (entry.warehouse, to) in world.namespaces else None
        if any(it.uuid == entry.was.uuid for it in world.names.values()):
            return UndropRefused
        if (entry.warehouse, to) not in world.namespaces:
            return None if makes else NoSuchNamespace
        assert name is not None
        return UndropRefused if (entry.warehouse, TableIdentifier(to, name)) in world.names else None

    def properties_of_namespace(self, warehouse: int, namespace: Namespace) -> dict[str, str]:
        """Return what a missing namespace had when it was dropped last."""
        now_ms = self.now_ms()
        dropped = [
            each
            for each in self.recoverable.values()
            if each.was is None
            and (each.warehouse, each.namespace) == (warehouse, namespace)
            and each.until_ms > now_ms
        ]
        return max(dropped, key=lambda each: each.id).properties if dropped else {}

    def note(self, key: Key, kind: str, loaded: Loaded[Any]) -> None:
        """Note what a table or view is now."""
        it = shown(kind, loaded.location, loaded.json, loaded.metadata.uuid)
        self.world.names[key] = it

    def note_namespace(self, warehouse: int, namespace: Namespace, properties: dict[str, str]) -> None:
        """Note a namespace that is made, and those above it that were missing."""
        for length in range(1, len(namespace.levels)):
            above = Namespace(namespace.levels[:length])
            self.world.namespaces.setdefault((warehouse, above), {})
        self.world.namespaces[warehouse, namespace] = properties

    def dropped(self, catalog: Catalog, number: int, key: Key | None, namespace: Namespace) -> None:
        """Note what can come back after a drop, if anything can."""
        name = None if key is None else key[1].name
        was = None if key is None else self.world.names.pop(key)
        properties = {} if key is not None else dict(self.world.namespaces.pop((number, namespace)))
        newest = list_dropped(catalog, replace(EVERYTHING, limit=1)).items
        if newest and newest[0].id not in self.recoverable:
            (entry,) = newest
            self.recoverable[entry.id] = Recoverable(
                entry.id, number, namespace, name, was, properties, entry.until_ms, entry.purge
            )


def _text(entry: Recoverable) -> str:
    return str(entry.namespace if entry.name is None else TableIdentifier(entry.namespace, entry.name))
