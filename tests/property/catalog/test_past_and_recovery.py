"""Drops, returns, expiries, restores, shared files: the past stays readable, and comes back as it was."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from app.catalog import named, namespaces
from app.catalog.commits.landing import land
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.callers import SERVER_ITSELF
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS
from app.catalog.context.server import Server
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots
from app.catalog.deletions.foreign_looks import UnknownReaders
from app.catalog.deletions.orphan_search import OrphanWish
from app.catalog.deletions.orphans import mark_orphans
from app.catalog.deletions.sweeps import sweep_one
from app.catalog.named import unregister
from app.catalog.past.dropped import NewName, Wanted, purge_dropped, undrop
from app.catalog.past.restore import restore_tables
from app.catalog.rebuild.carrying_out import Rebuilt
from app.catalog.tables import NewTable, purge_table
from app.catalog.views import NewView
from app.catalog.warehouse_changes import MappingChange, WarehouseChange
from app.catalog.warehouses import update_warehouse
from app.engine.change.updates import SetProperties, SetSnapshotRef
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SnapshotId
from app.engine.retention.expired_snapshots import ExpiryWish
from app.engine.retention.reachability import CleanupLevel
from app.errors import PurgeRefused
from app.fileio.files import FileIO
from app.fileio.local import LocalFiles
from app.fileio.memory import MemoryFiles
from app.fileio.schemes import files_for
from app.recoveries import NoSuchDropped
from tests.builders.catalogs import START_MS, Clock
from tests.builders.commits import commit_table
from tests.builders.tables import FLIGHTS, SCHEMA, append, load_table, view_version
from tests.property.catalog.lives import OldFiles, ground_on
from tests.property.catalog.past_lives import DAY_MS, HOUR_MS, NAMESPACES, PastLife, Picker, Recoverable
from tests.property.catalog.worlds import Key
from tests.servers.s3 import S3Server

STEPS = [
    "append", "append", "append", "create", "create_view", "rename", "rename", "drop", "drop", "drop", "drop", "drop",
    "undrop", "undrop", "undrop", "undrop", "undrop", "change_namespaces", "change_namespaces", "commit_to_two",
    "roll_back", "switch_collection", "register", "register_what_was_dropped", "register_what_was_dropped", "restore",
    "restore", "purge_what_was_dropped", "let_time_pass", "set_recovery", "expire", "expire", "mark", "work_off",
    "keep_house", "forget_old_events",
]  # fmt: skip
PLACES = st.sampled_from([None, None, None, "one", "one/inside"])
_numbers = itertools.count(1)


class PastAndRecovery(RuleBasedStateMachine):
    """A catalog of two warehouses over one folder, against a model that remembers every moment."""

    make: Callable[[], PastLife]
    finished: ClassVar[list[PastLife]]

    def __init__(self) -> None:
        super().__init__()
        self.life = self.make()

    @initialize(places=st.tuples(PLACES, PLACES), waits=st.booleans())
    def begin(self, places: tuple[str | None, str | None], waits: bool) -> None:
        if waits:
            self.set_recovery(Picker([0, 2, 0]))
        for name, place in zip("tu", places, strict=True):
            self._create(0, TableIdentifier(FLIGHTS, name), place)
        for key in self.life.tables():
            self._append(key, [])
            self._append(key, [])

    # One rule: Hypothesis would leave out many of several in each life, and few things are interesting alone.
    @rule(what=st.sampled_from(STEPS), numbers=st.lists(st.integers(0, 59), min_size=4, max_size=4))
    def step(self, what: str, numbers: list[int]) -> None:
        getattr(self, what)(Picker(numbers))

    def teardown(self) -> None:
        self.life.work_off()
        self.let_time_pass(Picker([3, 0]))  # The time of all that was dropped is over.
        self.life.work_off()
        self.life.check_past(all_of_it=True)
        self.finished.append(self.life)

    # Names

    def create(self, pick: Picker) -> None:
        warehouse, identifier = pick.of([0, 0, 1]), TableIdentifier(pick.of(NAMESPACES), pick.of("tuv"))
        self._create(warehouse, identifier, pick.of([None, "one", "one/inside"]))

    def create_view(self, pick: Picker) -> None:
        warehouse, identifier = pick.of([0, 0, 1]), TableIdentifier(pick.of(NAMESPACES), pick.of("tuv"))
        with self.life.refused():
            new = NewView(identifier, SCHEMA, view_version(), None, {})
            self.life.note((warehouse, identifier), "view", named.create(self._catalog(warehouse), new))

    def rename(self, pick: Picker) -> None:
        for key in self._any_name(pick):
            destination = TableIdentifier(pick.of(NAMESPACES), pick.of("tuv"))
            kind: Any = TABLES if self.life.world.names[key].kind == "table" else VIEWS
            with self.life.refused():
                named.rename(self._catalog(key[0]), kind, key[1], destination)
                self.life.world.names[key[0], destination] = self.life.world.names.pop(key)

    def drop(self, pick: Picker) -> None:
        for key in self._any_name(pick):
            catalog, is_table = self._catalog(key[0]), self.life.world.names[key].kind == "table"
            how = pick.of(["drop", "drop", "drop", "purge", "purge", "unregister"])
            with self.life.refused():
                if not is_table:
                    named.drop(catalog, VIEWS, key[1])
                elif how == "drop":
                    named.drop(catalog, TABLES, key[1])
                elif how == "purge":
                    purge_table(catalog, key[1])
                else:
                    unregister(catalog, TABLES, key[1])
                self.life.dropped(catalog, key[0], key, key[1].namespace)

    # Namespaces

    def change_namespaces(self, pick: Picker) -> None:
        warehouse, namespace, text = pick.of([0, 1]), pick.of(NAMESPACES), str(next(_numbers))
        catalog, known = self._catalog(warehouse), self.life.world.namespaces
        with self.life.refused():
            if pick.yes():
                namespaces.drop_namespace(catalog, namespace)
                self.life.dropped(catalog, warehouse, None, namespace)
            elif (warehouse, namespace) in known:
                updates = {"k": text}
                namespaces.update_namespace_properties(catalog, namespace, ["l"], updates)
                was = {key: value for key, value in known[warehouse, namespace].items() if key != "l"}
                known[warehouse, namespace] = {**was, **updates}
            else:
                namespaces.create_namespace(catalog, namespace, {"l": text})
                self.life.note_namespace(warehouse, namespace, {"l": text})

    # Commits

    def append(self, pick: Picker) -> None:
        for key in self._table(pick):
            # A manifest that its own table names as a data file goes with its snapshot: ADR 14 says so.
            own = f"{self.life.world.names[key].document['location']}/metadata/"
            there = [each for each in sorted(self.life.there()) if not each.startswith(own)]
            self._append(key, ["@" + pick.of(there)] if there and pick.yes() else [])

    def commit_to_two(self, pick: Picker) -> None:
        warehouse = pick.of([0, 0, 1])
        keys = [key for key in self.life.tables() if key[0] == warehouse][-2:]
        if not keys:
            return
        mark = SetProperties(updates={"mark": str(next(_numbers))})
        with self.life.refused():
            landed = land(self._catalog(warehouse), [TableCommit(key[1], [], [mark]) for key in keys])
            for key, each in zip(keys, landed, strict=True):
                self.life.note(key, "table", each.loaded)

    def switch_collection(self, pick: Picker) -> None:
        for key in self._table(pick):
            changes = [SetProperties(updates={"gc.enabled": pick.of(["true", "false"])})]
            with self.life.refused():
                self.life.note(key, "table", commit_table(self._catalog(key[0]), key[1], [], changes))

    def roll_back(self, pick: Picker) -> None:
        for key in self._table(pick):
            ids = sorted(self.life.world.names[key].snapshots())
            if ids:
                back = SetSnapshotRef(ref_name="main", snapshot_id=SnapshotId(pick.of(ids)), type="branch")
                with self.life.refused():
                    self.life.note(key, "table", commit_table(self._catalog(key[0]), key[1], [], [back]))

    def register(self, pick: Picker) -> None:
        """Register any metadata file of any time, under a new name or one that is there."""
        locations = sorted(
            {it.location for _, world in self.life.past for it in world.names.values() if it.kind == "table"}
        )
        if locations:
            self._register(pick, pick.of(locations))

    def register_what_was_dropped(self, pick: Picker) -> None:
        """Register a table that can come back, and let go of it, or of its snapshots, perhaps at once."""
        tables = [each.was for each in self.life.recoverable.values() if each.kind == "table" and each.was]
        if not tables:
            return
        key = self._register(pick, pick.of(tables).location)
        if key not in self.life.world.names or pick.yes():
            return
        catalog = self._catalog(key[0])
        with self.life.refused():
            purge_table(catalog, key[1])
            self.life.dropped(catalog, key[0], key, key[1].namespace)
        self.life.work_off()

    def _register(self, pick: Picker, where: str) -> Key:
        warehouse, overwrites = pick.of([0, 0, 1]), pick.of([False, False, True])
        targets = [key for key in self.life.tables() if key[0] == warehouse] if overwrites else []
        new = TableIdentifier(FLIGHTS, f"again{next(_numbers)}")
        key = pick.of(targets or [(warehouse, new)])
        catalog = self._catalog(warehouse)
        with self.life.refused():
            if pick.yes() and not overwrites:
                (landed,) = land(catalog, [Rebuilt(TABLES, key[1], Location(where), overwrite=False)])
                self.life.note(key, "table", landed.loaded)
            else:
                made = named.register(catalog, TABLES, key[1], where, overwrite=overwrites)
                self.life.note(key, "table", made)
        return key

    def restore(self, pick: Picker) -> None:
        warehouse, (at_ms, then) = pick.of([0, 0, 1]), pick.of(self.life.past)
        keys = [key for key in self.life.tables() if key[0] == warehouse and key in then.names]
        keys = keys if pick.yes() else keys[:1]
        catalog = self._catalog(warehouse)
        with self.life.refused():
            restore_tables(catalog, [key[1] for key in keys], str(at_ms), dry_run=False)
            for key in keys:
                self.life.note(key, "table", load_table(catalog, key[1]))
                now = self.life.world.names[key]
                # What has the name now may have been called otherwise then.
                assert (now.uuid, now.head) in {(was.uuid, was.head) for was in then.names.values()}

    # What comes back

    def undrop(self, pick: Picker) -> None:
        if not self.life.recoverable:
            return
        by_name, moves, makes = pick.yes(), pick.of([False, False, True]), pick.of([True, True, False])
        entry = self._entry(pick, by_name=by_name)
        named_so = Wanted(namespace=entry.namespace, name=entry.name)
        wanted = named_so if by_name else Wanted(id=entry.id)
        to = pick.of(NAMESPACES) if moves else entry.namespace
        name = None if entry.name is None else pick.of(["back", "t"]) if moves else entry.name
        new = NewName(to.levels, name, makes) if moves else NewName(with_namespace=makes)
        expected = self.life.undrop_is_refused(entry, to, name, makes=makes)
        catalog = self._catalog(entry.warehouse)
        if expected is not None:
            with pytest.raises(expected):
                undrop(catalog, wanted, new)
            return
        properties = self.life.properties_of_namespace(entry.warehouse, to)
        undrop(catalog, wanted, new)
        del self.life.recoverable[entry.id]
        self.life.undropped += 1
        if entry.was is None:
            self.life.note_namespace(entry.warehouse, to, entry.properties)
        else:
            assert name is not None
            if (entry.warehouse, to) not in self.life.world.namespaces:
                self.life.note_namespace(entry.warehouse, to, properties)
            self.life.world.names[entry.warehouse, TableIdentifier(to, name)] = entry.was

    def purge_what_was_dropped(self, pick: Picker) -> None:
        if not self.life.recoverable:
            return
        entry = self._entry(pick, by_name=False)
        is_over = entry.until_ms <= self.life.now_ms()
        try:
            purge_dropped(self._catalog(entry.warehouse), Wanted(id=entry.id))
        except NoSuchDropped:
            assert is_over
        except PurgeRefused:
            assert entry.was is not None
        else:
            assert not is_over
            del self.life.recoverable[entry.id]

    def let_time_pass(self, pick: Picker) -> None:
        self.life.clock.now_ms += pick.of([1, HOUR_MS, DAY_MS, 8 * DAY_MS])
        if pick.yes():
            now_ms = self.life.now_ms()
            over = [each.id for each in self.life.recoverable.values() if each.until_ms <= now_ms]
            queued = len(self.life.queued()) + sum(self.life.recoverable[each].purge for each in over)
            assert self.life.ground.server.dropped.end(now_ms) == len(over)
            assert len(self.life.queued()) == queued
            for each in over:
                del self.life.recoverable[each]

    def set_recovery(self, pick: Picker) -> None:
        warehouse = pick.of([0, 0, 1])
        catalog = self._catalog(warehouse)
        properties = {
            "icetower.undrop.keep-ms": str(pick.of([0, HOUR_MS, 7 * DAY_MS, 7 * DAY_MS, 7 * DAY_MS])),
            "icetower.undrop.purge-waits": pick.of(["true", "true", "false"]),
        }
        name = catalog.warehouse.name
        change = WarehouseChange(default_properties=MappingChange(updates=properties))
        changed = update_warehouse(catalog.server, SERVER_ITSELF, name, change)
        self.life.catalogs[warehouse] = replace(catalog, warehouse=changed)

    # What deletes files

    def expire(self, pick: Picker) -> None:
        for key in self._table(pick):
            level = pick.of([CleanupLevel.ALL, CleanupLevel.ALL, CleanupLevel.METADATA_ONLY])
            wish = ExpiryRequest(ExpiryWish(older_than_ms=START_MS * 2, retain_last=1), level)
            catalog = self._catalog(key[0])
            with self.life.refused():
                expire_snapshots(catalog, key[1], wish)
                self.life.note(key, "table", load_table(catalog, key[1]))
            if pick.yes():
                self.life.work_off()

    def mark(self, pick: Picker) -> None:
        for key in self._table(pick):
            if pick.yes():
                location = self.life.world.names[key].document["location"]
                place = Location(f"{location}/data/junk{next(_numbers)}.parquet")
                self.life.ground.store.write_new(place, b"junk")
            with self.life.refused():
                mark_orphans(self._catalog(key[0]), key[1], OrphanWish())

    def work_off(self, pick: Picker) -> None:
        self.life.work_off()

    def keep_house(self, pick: Picker) -> None:
        with self.life.watched():
            UnknownReaders(self.life.ground.server).look_for(60)
            with self.life.refused():
                while sweep_one(self.life.ground.server):
                    pass

    def forget_old_events(self, pick: Picker) -> None:
        """Delete the events from before some remembered moment: all later ones stay readable."""
        server = self.life.ground.server
        since_ms = pick.of(self.life.past[: len(self.life.past) // 2 + 1])[0]
        kept_ms = server.file_deletions.now_ms() - since_ms
        server.old_rows.delete(kept_ms + 5_000)  # The database has a real clock.
        self.life.past[:] = [each for each in self.life.past if each[0] >= since_ms]

    @invariant()
    def all_is_shown_as_it_is_and_was(self) -> None:
        self.life.check_now()
        self.life.remember()
        self.life.check_past()

    # Helpers

    def _catalog(self, warehouse: int) -> Catalog:
        return self.life.catalogs[warehouse]

    def _table(self, pick: Picker) -> list[Key]:
        tables = self.life.tables()
        return [pick.of(tables)] if tables else []

    def _any_name(self, pick: Picker) -> list[Key]:
        names = sorted(self.life.world.names)
        return [pick.of(names)] if names else []

    def _create(self, warehouse: int, identifier: TableIdentifier, place: str | None) -> None:
        catalog = self._catalog(warehouse)
        where = place and f"{catalog.warehouse.root_location}/{place}"
        with self.life.refused():
            made = named.create(catalog, NewTable(identifier, SCHEMA, None, None, where, {}))
            self.life.note((warehouse, identifier), "table", made)

    def _entry(self, pick: Picker, *, by_name: bool) -> Recoverable:
        entry = pick.of(sorted(self.life.recoverable.values(), key=lambda each: each.id))
        if not by_name:
            return entry
        now_ms = self.life.now_ms()
        same = [
            each
            for each in self.life.recoverable.values()
            if (each.warehouse, each.namespace, each.name) == (entry.warehouse, entry.namespace, entry.name)
            and each.until_ms > now_ms
        ]
        return max(same, key=lambda each: each.id, default=entry)

    def _append(self, key: Key, others: list[str]) -> None:
        catalog = self._catalog(key[0])
        with self.life.refused():
            metadata = load_table(catalog, key[1]).metadata
            snapshot = self.life.files.snapshot(metadata, [f"f{next(_numbers)}", *others])
            self.life.note(key, "table", commit_table(catalog, key[1], [], append(snapshot)))


@pytest.fixture(
    params=[
        "memory",
        pytest.param("local", marks=pytest.mark.nightly),
        pytest.param("s3", marks=[pytest.mark.s3, pytest.mark.nightly]),
    ]
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileIO, str, int]:
    """A store, a folder in it, and how many lives are tried there."""
    match request.param:
        case "memory":
            is_long = bool(settings.default and settings.default.max_examples > 1_000)
            return MemoryFiles(), "memory:/", 250 if is_long else 30
        case "local":
            return LocalFiles(), f"file:{tmp_path}", 30
        case _:
            server: S3Server = request.getfixturevalue("s3_server")
            server.create_bucket("past")
            return files_for(server.storage), f"s3://past/{uuid.uuid4()}", 10


@pytest.mark.parametrize(
    "base_server",
    ["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.nightly])],
    indirect=True,
)
def test_past_stays_and_comes_back(base_server: Server, store: tuple[FileIO, str, int]) -> None:
    files, root, max_examples = store

    def make() -> PastLife:
        clock = Clock()
        server = replace(base_server, now_ms=clock)
        return PastLife(ground_on(server, OldFiles(files), root), clock)

    class OnThisGround(PastAndRecovery):
        finished: ClassVar[list[PastLife]] = []

    OnThisGround.make = staticmethod(make)
    run_state_machine_as_test(
        OnThisGround, settings=settings(max_examples=max_examples, stateful_step_count=40)
    )

    lives = OnThisGround.finished
    assert sum(life.undropped > 0 for life in lives) > len(lives) / 20, (
        "too little came back to show anything"
    )
    assert sum(bool(life.gone) for life in lives) > len(lives) / 20, "too little was deleted to show anything"
