"""Lives of tables that share, or claim to share, files: all that changes them, registers them, and deletes."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, Literal, TypeVar

import fastavro
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, text

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.server import Server
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots
from app.catalog.deletions.foreign_looks import UnknownReaders
from app.catalog.deletions.orphan_search import OrphanWish
from app.catalog.deletions.orphans import mark_orphans
from app.catalog.named import unregister
from app.catalog.tables import NewTable, purge_table
from app.database.connections.database import Database
from app.database.schema import rows
from app.engine.change.updates import (
    RemoveSnapshotRef,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
)
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.statistics import PartitionStatisticsFile, StatisticsFile
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.engine.retention.expired_snapshots import ExpiryWish
from app.engine.retention.reachability import CleanupLevel, statistics_of
from app.errors import IcetowerError
from app.fileio.files import FileIO, ListedFile
from tests.builders.catalogs import START_MS, new_warehouse
from tests.builders.commits import commit_table
from tests.builders.table_files import NamingFiles
from tests.builders.tables import FLIGHTS, SCHEMA, append, load_table, namespace_in

Found = TypeVar("Found")
_numbers = itertools.count(1)
TEN_DAYS_MS = 10 * 24 * 3_600_000


@dataclass
class Ground:
    """Two warehouses over one folder, on one server."""

    server: Server
    store: FileIO
    root: str
    catalogs: list[Catalog]
    at_step: list[Callable[[str], None]]
    """What is called at each step of whatever is done."""

    def there(self) -> set[str]:
        """Return every file there is."""
        return {file.location for file in self.store.list_files(Location(self.root))}


class Life:
    """Tables that share places, uuids and files, with all that changes and deletes them."""

    def __init__(self, ground: Ground, numbers: Iterator[int]) -> None:
        self.ground = ground
        self.files = NamingFiles(ground.store)
        self.left: list[str] = []
        self.junk: list[str] = []
        self._numbers = numbers
        self._lists_of: dict[str, set[str]] = {}
        """By uuid, the manifest lists and manifests that a table has or had."""

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

    def overwrite(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        """Put a new data file in the place of one that the table has."""
        loaded = load_table(catalog, identifier)
        snapshot = loaded.metadata.current_snapshot
        live = [
            entry.file.file_path
            for manifest in (self.files.manifests.get(snapshot.snapshot_id, ()) if snapshot else ())
            for entry in self.files.entries[manifest.manifest_path]
            if entry.is_live
        ]
        if live:
            self.left.append(str(loaded.location))
            removed = "@" + self.chosen(sorted(set(live)))
            made = self.files.snapshot(loaded.metadata, [f"f{next(_numbers)}"], [removed])
            commit_table(catalog, identifier, [], append(made))

    def branch_off(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        """Let a tag, or a branch of a snapshot of its own, keep what main may lose."""
        metadata = load_table(catalog, identifier).metadata
        if not metadata.snapshots:
            return
        kinds: list[Literal["branch", "tag"]] = ["branch", "tag"]
        kind = self.chosen(kinds)
        at = self.chosen(metadata.snapshots)
        ref = SetSnapshotRef(ref_name=f"r{kind}", snapshot_id=at.snapshot_id, type=kind)
        commit_table(catalog, identifier, [], [ref])
        if kind == "branch":
            metadata = load_table(catalog, identifier).metadata
            made = self.files.snapshot(metadata, [f"f{next(_numbers)}"], parent=at)
            commit_table(catalog, identifier, [], append(made, "rbranch"))

    def unbranch(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        """Let go of a branch or tag."""
        name = self.chosen(["rbranch", "rtag"])
        commit_table(catalog, identifier, [], [RemoveSnapshotRef(ref_name=name)])

    def spelled(self, location: str) -> str:
        """Return a location in one of the spellings that clients have."""
        scheme, path = location.split(":", 1)
        others = {"file": [f"file:{path}", f"file://{path}", path], "s3": [f"s3:{path}", f"s3a:{path}"]}
        return self.chosen(others.get(scheme, [location]))

    def name_junk(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        if self.junk:
            self.append(catalog, identifier, "@" + self.spelled(self.chosen(self.junk)))

    def name_junk_and_leave(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        self.name_junk(catalog, identifier)
        self.drop(catalog, identifier)

    def name_any(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        # No file is asked whether it is data as well as a list or manifest of the same table, see ADR 14.
        others = self.there() - self.note_lists(load_table(catalog, identifier).metadata)
        self.append(catalog, identifier, "@" + self.spelled(self.chosen(sorted(others))))

    def note_lists(self, metadata: TableMetadata) -> set[str]:
        """Note the manifest lists and manifests of a table before it loses some; return all that it had."""
        known = self._lists_of.setdefault(metadata.uuid, set())
        for snapshot in metadata.snapshots:
            known.add(str(snapshot.manifest_list))
            known |= {each.manifest_path for each in self.files.manifests.get(snapshot.snapshot_id, ())}
        return known

    def name_statistics(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        """Name any file as the statistics of a snapshot."""
        loaded = load_table(catalog, identifier)
        snapshot = loaded.metadata.current_snapshot
        if snapshot is not None:
            path = Location(self.spelled(self.chosen(sorted(self.there()))))
            if self.chosen([True, False]):
                partitions = PartitionStatisticsFile(
                    snapshot_id=snapshot.snapshot_id, statistics_path=path, file_size_in_bytes=1
                )
                set_partitions = SetPartitionStatistics(partition_statistics=partitions)
                commit_table(catalog, identifier, [], [set_partitions])
                return
            file = StatisticsFile(
                snapshot_id=snapshot.snapshot_id,
                statistics_path=path,
                file_size_in_bytes=1,
                file_footer_size_in_bytes=1,
                blob_metadata=(),
            )
            commit_table(catalog, identifier, [], [SetStatistics(statistics=file)])

    def guard_off(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        commit_table(catalog, identifier, [], [SetProperties(updates={"icetower.guard": "off"})])

    def unregister(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        """Undo a registration, or let go of a table."""
        unregister(catalog, TABLES, identifier)

    def look(self, _catalog: Catalog, _identifier: TableIdentifier) -> None:
        """Let housekeeping look at tables that may name files anywhere."""
        UnknownReaders(self.ground.server).look_for(60)

    def roll_back(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        snapshots = load_table(catalog, identifier).metadata.snapshots
        if snapshots:
            snapshot_id = self.chosen(snapshots).snapshot_id
            ref = SetSnapshotRef(ref_name="main", snapshot_id=snapshot_id, type="branch")
            commit_table(catalog, identifier, [], [ref])

    def restore(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        """Register an earlier state of any table under this name."""
        if self.left:
            self.note_lists(load_table(catalog, identifier).metadata)
            named.register(catalog, TABLES, identifier, Location(self.chosen(self.left)), overwrite=True)

    def register_twin(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        """Register a copy of a table's metadata with another uuid, in a folder of its own, under another name."""
        first = load_table(catalog, identifier).metadata
        document: dict[str, Any] = json.loads(first.to_json())
        document["table-uuid"] = f"{next(_numbers):08x}-0000-4000-8000-000000000000"
        self._lists_of[document["table-uuid"]] = set(self.note_lists(first))
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
        self.note_lists(load_table(catalog, identifier).metadata)
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
        return self.ground.there()

    def in_use(self, *, left: bool = True) -> set[str]:
        """Return the files that any table reaches now, or that one reached last that was dropped without purge."""
        found: set[str] = set()
        states = [load_table(*each).metadata for each in self.tables()]
        for metadata in [*states, *(self.may_come_back() if left else ())]:
            found |= {file.location for file in statistics_of(metadata)}
            for snapshot in metadata.snapshots:
                found |= set(reached(self.ground.store, str(snapshot.manifest_list)))
        pointers = self.ground.server.pointer_states.current()
        found |= {pointer.metadata_location for pointer in pointers}
        return {_as_listed(location) for location in found} & self.there()

    def may_come_back(self) -> Iterator[TableMetadata]:
        for state in self.ground.server.pointer_states.left():
            if self.ground.store.exists(state.location):
                yield read_table_metadata(self.ground.store.read(state.location))

    def queued(self) -> list[str]:
        query = text("SELECT kind FROM file_deletions WHERE state = 'queued' ORDER BY id")
        database = self.ground.server.orphan_runs._database
        return list(database.read(lambda connection: connection.scalars(query).all()))


PLACES = st.sampled_from([None, None, None, "one", "two", "one/inside", "one/data", "."])


def reached(store: FileIO, manifest_list: str) -> Iterator[str]:
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


def _as_listed(location: str) -> str:
    """Return a location as stores list it, for any of its spellings."""
    scheme, colon, path = location.rpartition(":")
    if not colon or scheme == "file":
        return "file:/" + path.lstrip("/")
    return f"s3:{path}" if scheme == "s3a" else location


class OldFiles:
    """A store in which every file is ten days older: nothing is kept for its age."""

    def __init__(self, files: FileIO) -> None:
        self._files = files

    def find_file(self, location: Location) -> ListedFile | None:
        found = self._files.find_file(location)
        return None if found is None else _older(found)

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        return map(_older, self._files.list_files(prefix))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


def _older(file: ListedFile) -> ListedFile:
    return replace(file, modified_ms=file.modified_ms - TEN_DAYS_MS)


def ground_on(base: Server, store: FileIO, root: str) -> Ground:
    """Return an empty ground on a database; of an earlier one nothing is left."""
    _empty(base.orphan_runs._database)
    at_step: list[Callable[[str], None]] = []

    def step(name: str) -> None:
        for each in at_step:
            each(name)

    # Nothing that was kept of an earlier ground's pointers is right any more.
    server = replace(base, files_of=lambda _warehouse: store, step=step)
    number = next(_numbers)
    root = f"{root}/lake{number}"
    catalogs = [new_warehouse(server, f"{name}{number}", root) for name in ("one", "two")]
    for catalog in catalogs:
        namespace_in(catalog)
    return Ground(server, store, root, catalogs, at_step)


def _empty(database: Database) -> None:
    every_row = (
        rows.orphan_batches, rows.file_deletions, rows.pointer_history, rows.pointer_names, rows.table_places,
        rows.foreign_places, rows.dropped, rows.pointers, rows.namespace_versions, rows.namespaces, rows.warehouses,
    )  # fmt: skip

    def empty(connection: Connection) -> None:
        for table in every_row:
            if table is rows.namespaces:
                connection.execute(delete(table).where(table.c.parent_id.is_not(None)))
            connection.execute(delete(table))

    database.write(empty)
