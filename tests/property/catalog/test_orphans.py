"""Whatever tables share, or claim to share: no orphan run deletes a file that a state in use reaches."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, text

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.server import Server
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots
from app.catalog.deletions.orphan_search import OrphanWish
from app.catalog.deletions.orphans import mark_orphans
from app.catalog.deletions.queue import work_off_one
from app.catalog.tables import NewTable, purge_table
from app.database import rows
from app.database.connections.database import Database
from app.engine.change.updates import SetLocation, SetProperties, SetSnapshotRef
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.manifests import DataFile, FileContent
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.engine.retention.expired_snapshots import ExpiryWish
from app.engine.retention.reachability import CleanupLevel
from app.errors import IcetowerError
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import START_MS, new_warehouse, server_on
from tests.builders.commits import commit_table
from tests.builders.table_files import TableFiles
from tests.builders.tables import FLIGHTS, SCHEMA, append, load_table, namespace_in
from tests.servers.postgres import PostgresServer

Found = TypeVar("Found")
_numbers = itertools.count(1)
_TEN_DAYS_MS = 10 * 24 * 3_600_000


class NamingFiles(TableFiles):
    """Writes tables' files, and names those of others: `@` and a location stand for a file that is there."""

    def _data_file(self, metadata: TableMetadata, name: str) -> DataFile:
        if not name.startswith("@"):
            return super()._data_file(metadata, name)
        return DataFile(FileContent.DATA, Location(name[1:]), "parquet", metadata.default_spec_id, (), 1, 8)


@dataclass
class Ground:
    """Two warehouses over one folder, on one server."""

    server: Server
    store: MemoryFiles
    catalogs: list[Catalog]
    at_check: list[Callable[[], None]]
    """What is done while a worker has looked at everything and has deleted nothing yet."""


class Life:
    """Tables that share places, uuids and files, with all that changes and deletes them."""

    def __init__(self, ground: Ground, numbers: Iterator[int]) -> None:
        self.ground = ground
        self.files = NamingFiles(ground.store)
        self.left: list[str] = []
        self.junk: list[str] = []
        self._numbers = numbers

    def chosen(self, among: Sequence[Found]) -> Found:
        """Return one of some things, as the plan says."""
        return among[next(self._numbers) % len(among)]

    def tables(self) -> list[tuple[Catalog, TableIdentifier]]:
        """Return every table there is."""
        by_id = {catalog.warehouse.id: catalog for catalog in self.ground.catalogs}
        found = [
            (by_id[pointer.warehouse_id], pointer.identifier)
            for pointer in self.ground.server.pointer_states.current()
        ]
        return sorted(found, key=lambda item: (item[0].warehouse.id, item[1]))

    def do(self, what: str) -> None:
        """Do something to some table; a refusal is an answer too."""
        if not self.tables():
            return
        with contextlib.suppress(IcetowerError):
            getattr(self, what)(*self.chosen(self.tables()))

    def create(self, name: str, place: str | None) -> None:
        catalog = self.chosen(self.ground.catalogs)
        location = place and f"{catalog.warehouse.root_location}/{place}".rstrip("/.")
        with contextlib.suppress(IcetowerError):
            named.create(catalog, NewTable(TableIdentifier(FLIGHTS, name), SCHEMA, None, None, location, {}))

    def append(self, catalog: Catalog, identifier: TableIdentifier, *named_too: str) -> None:
        loaded = load_table(catalog, identifier)
        self.left.append(str(loaded.location))
        added = [f"f{next(_numbers)}", *named_too]
        commit_table(catalog, identifier, [], append(self.files.snapshot(loaded.metadata, added)))

    def name_junk(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        if self.junk:
            self.append(catalog, identifier, "@" + self.chosen(self.junk))

    def name_junk_and_leave(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        self.name_junk(catalog, identifier)
        self.drop(catalog, identifier)

    def name_any(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        self.append(catalog, identifier, "@" + self.chosen(sorted(self.there())))

    def roll_back(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        snapshots = load_table(catalog, identifier).metadata.snapshots
        if snapshots:
            snapshot_id = self.chosen(snapshots).snapshot_id
            ref = SetSnapshotRef(ref_name="main", snapshot_id=snapshot_id, type="branch")
            commit_table(catalog, identifier, [], [ref])

    def restore(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        """Register an earlier state of any table under this name."""
        if self.left:
            named.register(catalog, TABLES, identifier, Location(self.chosen(self.left)), overwrite=True)

    def register_twin(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        """Register a copy of a table's metadata with another uuid, in a folder of its own, under another name."""
        document: dict[str, Any] = json.loads(load_table(catalog, identifier).metadata.to_json())
        document["table-uuid"] = f"{next(_numbers):08x}-0000-4000-8000-000000000000"
        root = catalog.warehouse.root_location
        if next(self._numbers) % 3:  # else it claims to be where the first one is
            document["location"] = f"{root}/twins"
        where = Location(f"{root}/twins/metadata/0000{next(_numbers)}-x.metadata.json")
        self.ground.store.write_new(where, json.dumps(document).encode())
        twin = TableIdentifier(FLIGHTS, f"twin{next(_numbers)}")
        named.register(self.chosen(self.ground.catalogs), TABLES, twin, where)

    def register_again(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        where = load_table(catalog, identifier).location
        assert where is not None
        again = TableIdentifier(FLIGHTS, f"again{next(_numbers)}")
        named.register(self.chosen(self.ground.catalogs), TABLES, again, where)

    def expire(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        level = self.chosen([CleanupLevel.NONE, CleanupLevel.METADATA_ONLY, CleanupLevel.ALL])
        wish = ExpiryRequest(ExpiryWish(older_than_ms=START_MS * 2, retain_last=1), level)
        expire_snapshots(catalog, identifier, wish)

    def switch_off(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        commit_table(catalog, identifier, [], [SetProperties(updates={"gc.enabled": "false"})])

    def move(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        location = Location(f"{catalog.warehouse.root_location}/moved{next(_numbers)}")
        commit_table(catalog, identifier, [], [SetLocation(location=location)])

    def drop(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        self.left.append(str(load_table(catalog, identifier).location))
        named.drop(catalog, TABLES, identifier)

    def purge(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        self.left.append(str(load_table(catalog, identifier).location))
        purge_table(catalog, identifier)

    def leave_junk(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        location = load_table(catalog, identifier).metadata.location
        folder = self.chosen(["data", "metadata", "data/p=1"])
        where = Location(f"{location}/{folder}/junk{next(_numbers)}.parquet")
        self.ground.store.write_new(where, b"junk")
        self.junk.append(where)

    def mark(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        mark_orphans(catalog, identifier, OrphanWish())

    def there(self) -> set[str]:
        return set(self.ground.store._files)

    def in_use(self) -> set[str]:
        """Return the files that any table reaches now, or that one reached last that was dropped without purge."""
        found: set[str] = set()
        states = [
            *(load_table(*each).metadata for each in self.tables()),
            *self.may_come_back(),
        ]
        for metadata in states:
            for snapshot in metadata.snapshots:
                found |= set(reached(self.ground.store, str(snapshot.manifest_list)))
        pointers = self.ground.server.pointer_states.current()
        return (found | {pointer.metadata_location for pointer in pointers}) & self.there()

    def may_come_back(self) -> Iterator[TableMetadata]:
        for state in self.ground.server.pointer_states.left():
            if self.ground.store.exists(state.location):
                yield read_table_metadata(self.ground.store.read(state.location))

    def work_off(self, meanwhile: str | None) -> set[str]:
        """Work off the queue; return what orphan runs deleted."""
        deleted: set[str] = set()
        while queued := self._queued():
            before: list[tuple[set[str], set[str]]] = []

            def look(before: list[tuple[set[str], set[str]]] = before) -> None:
                if meanwhile is not None:
                    self.do(meanwhile)
                before.append((self.there(), self.in_use()))

            self.ground.at_check[:] = [look]
            there = self.there()
            assert work_off_one(self.ground.server)
            if before:  # an orphan run got as far as that
                gone, in_use = before[0][0] - self.there(), before[0][1]
                assert gone & in_use == set()
                deleted |= gone
            elif "orphans" in queued and len(queued) == 1:
                assert there == self.there()
            if queued == self._queued():
                return deleted  # planned anew: it waits for its lease
        return deleted

    def _queued(self) -> list[str]:
        query = text("SELECT kind FROM file_deletions WHERE state = 'queued' ORDER BY id")
        database = self.ground.server.orphan_runs._database
        return list(database.read(lambda connection: connection.scalars(query).all()))


PLACES = st.sampled_from([None, None, None, "one", "two", "one/inside", "one/data", "."])
BEFORE = st.lists(
    st.sampled_from(
        [
            "append", "name_any", "name_junk_and_leave", "roll_back", "expire", "drop", "leave_junk",
            "register_twin", "move",
        ]
    ),
    max_size=4,
)  # fmt: skip
BETWEEN = [
    "append", "name_junk", "name_junk_and_leave", "name_any", "roll_back", "restore", "register_twin",
    "register_again", "expire", "drop", "purge", "move", "switch_off",
]  # fmt: skip
NUMBERS = st.lists(st.integers(0, 59), min_size=12, max_size=12)


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "places": draw(st.tuples(PLACES, PLACES, PLACES)),
        "before": draw(BEFORE),
        "named": draw(st.integers(0, 2)),
        "between": draw(st.lists(st.sampled_from(BETWEEN), max_size=3)),
        "at check": draw(st.sampled_from([None, *BETWEEN])),
        "numbers": draw(NUMBERS),
    }


def live(ground: Ground, plan: dict[str, Any]) -> set[str]:
    """Do what a plan says; return what orphan runs deleted."""
    life = Life(ground, itertools.cycle(plan["numbers"]))
    for name, place in zip("tuv", plan["places"], strict=True):
        life.create(name, place)
    for table in life.tables():
        for _ in range(2):
            life.append(*table)
        life.leave_junk(*table)
        life.leave_junk(*table)
    for what in plan["before"]:
        life.do(what)
    for _ in range(plan["named"]):
        life.do("name_junk")
    for table in life.tables():
        with contextlib.suppress(IcetowerError):
            life.mark(*table)
    for what in plan["between"]:
        life.do(what)
    return life.work_off(plan["at check"])


def reached(store: MemoryFiles, manifest_list: str) -> Iterator[str]:
    """Yield what a snapshot reaches, as the reference reads it; what is gone is left out."""

    def records(location: str) -> list[dict[str, Any]]:
        if not store.exists(Location(location)):
            return []
        return list(fastavro.reader(BytesIO(store.read(Location(location)))))  # type: ignore[arg-type]  # records are mappings here

    yield manifest_list
    for manifest in records(manifest_list):
        yield manifest["manifest_path"]
        for entry in records(manifest["manifest_path"]):
            if entry["status"] != 2:
                yield entry["data_file"]["file_path"]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/icetower.db"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.url(server.create_database())


@pytest.fixture
def grounds(url: str) -> Iterator[Callable[[], Ground]]:
    """Makes empty grounds on one database: of an earlier one nothing is left."""
    base = server_on(url)

    def make() -> Ground:
        _empty(base.orphan_runs._database)
        # Every file is old: nothing is kept for its age.
        store = MemoryFiles(lambda: time.time_ns() // 1_000_000 - _TEN_DAYS_MS)
        at_check: list[Callable[[], None]] = []

        def step(name: str) -> None:
            if name == "orphans_checked" and at_check:
                at_check.pop()()

        server = replace(base, files_of=lambda _warehouse: store, step=step)
        number = next(_numbers)
        root = f"memory://lake{number}"
        catalogs = [new_warehouse(server, f"{name}{number}", root) for name in ("one", "two")]
        for catalog in catalogs:
            namespace_in(catalog)
        return Ground(server, store, catalogs, at_check)

    yield make
    base.orphan_runs._database.close()


def _empty(database: Database) -> None:
    every_row = (
        rows.orphan_batches, rows.file_deletions, rows.pointer_history, rows.table_places, rows.pointers,
        rows.namespaces, rows.warehouses,
    )  # fmt: skip

    def empty(connection: Connection) -> None:
        for table in every_row:
            connection.execute(delete(table))

    database.write(empty)


@pytest.mark.timeout(280)
def test_no_orphan_run_deletes_what_a_table_reaches(grounds: Callable[[], Ground]) -> None:
    deleted: list[set[str]] = []

    @given(plan=plans())
    def check(plan: dict[str, Any]) -> None:
        deleted.append(live(grounds(), plan))

    check()

    assert sum(map(bool, deleted)) > len(deleted) / 4, "most plans have to delete something to show anything"
