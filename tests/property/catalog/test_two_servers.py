"""Two servers, two warehouses with equal roots, files copied and edited by hand: all see the same, and lose nothing."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.server import Server
from app.catalog.tables import NewTable, find_json, purge_table, table_json
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.errors import MetadataFileMissing
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.commits import commit_table
from tests.builders.queues import work_off_one
from tests.builders.table_files import TableFiles
from tests.builders.tables import FLIGHTS, SCHEMA, append, load_table, namespace_in

SERVERS, WAREHOUSES = st.integers(0, 1), st.integers(0, 1)
NAMES = st.sampled_from(["t", "u"])
_numbers = itertools.count(1)


@dataclass
class Known:
    """A metadata file that may be registered, and what it holds."""

    warehouse: int
    location: str
    uuid: str
    mark: str


class TwoServers(RuleBasedStateMachine):
    """Catalogs on one side; on the other what each name must show."""

    servers: tuple[Server, Server]
    stores: dict[int, MemoryFiles]

    def __init__(self) -> None:
        super().__init__()
        number = next(_numbers)
        root = f"memory://lake{number}"
        made = [new_warehouse(self.servers[0], f"{name}{number}", root) for name in ("staging", "production")]
        self.catalogs = [[replace(each, server=server) for each in made] for server in self.servers]
        for each in made:
            namespace_in(each)
        self.live: dict[tuple[int, str], Known] = {}
        self.left: list[Known] = []
        self.purged: list[str] = []

    def catalog(self, server: int, warehouse: int) -> Catalog:
        return self.catalogs[server][warehouse]

    def store(self, warehouse: int) -> MemoryFiles:
        files = self.catalog(0, warehouse).files
        assert isinstance(files, MemoryFiles)
        return files

    @rule(server=SERVERS, warehouse=WAREHOUSES, name=NAMES)
    def create(self, server: int, warehouse: int, name: str) -> None:
        if (warehouse, name) in self.live:
            return
        catalog, identifier, mark = self.catalog(server, warehouse), TableIdentifier(FLIGHTS, name), _mark()
        named.create(catalog, NewTable(identifier, SCHEMA, None, None, None, {"mark": mark}))
        made = TableFiles(self.store(warehouse)).snapshot(
            load_table(catalog, identifier).metadata, ["a", "b"]
        )
        done = commit_table(catalog, identifier, [], append(made))
        self.live[warehouse, name] = Known(warehouse, str(done.location), done.metadata.uuid, mark)

    @rule(server=SERVERS, data=st.data())
    @precondition(lambda self: bool(self.live))
    def commit(self, server: int, data: st.DataObject) -> None:
        (warehouse, name), known = data.draw(
            st.sampled_from(sorted(self.live.items(), key=lambda item: item[0]))
        )
        mark = _mark()
        changes = [SetProperties(updates={"mark": mark})]
        done = commit_table(self.catalog(server, warehouse), TableIdentifier(FLIGHTS, name), [], changes)
        self.left.append(known)
        self.live[warehouse, name] = replace(known, location=str(done.location), mark=mark)

    @rule(server=SERVERS, with_purge=st.booleans(), data=st.data())
    @precondition(lambda self: bool(self.live))
    def drop(self, server: int, with_purge: bool, data: st.DataObject) -> None:
        warehouse, name = data.draw(st.sampled_from(sorted(self.live)))
        catalog, identifier = self.catalog(server, warehouse), TableIdentifier(FLIGHTS, name)
        known = self.live.pop((warehouse, name))
        self.left.append(known)
        if with_purge:
            purge_table(catalog, identifier)
            self.purged.append(known.uuid)
        else:
            named.drop(catalog, TABLES, identifier)

    @rule(data=st.data())
    @precondition(lambda self: bool(self.left or self.live))
    def copy_to_the_other_store(self, data: st.DataObject) -> None:
        known = data.draw(st.sampled_from([*self.left, *self.live.values()]))
        source, target = self.store(known.warehouse), self.store(1 - known.warehouse)
        for location, (content, _) in list(source._files.items()):
            if not target.exists(location):
                target.write_new(location, content)
        copy = replace(known, warehouse=1 - known.warehouse)
        content = json.loads(target.read(Location(copy.location)))
        self.left.append(replace(copy, uuid=content["table-uuid"], mark=content["properties"]["mark"]))

    @rule(data=st.data(), with_new_uuid=st.booleans())
    @precondition(lambda self: bool(self.left))
    def edit(self, data: st.DataObject, with_new_uuid: bool) -> None:
        known = data.draw(st.sampled_from(self.left))
        store, location = self.store(known.warehouse), Location(known.location)
        if location in {each.location for each in self.live.values() if each.warehouse == known.warehouse}:
            return
        document: dict[str, Any] = json.loads(store.read(location))
        document["properties"]["mark"] = mark = _mark()
        if with_new_uuid:
            document["table-uuid"] = f"{next(_numbers):08x}-0000-4000-8000-000000000000"
        store.delete(location)
        store.write_new(location, json.dumps(document).encode())
        for each in self.left:
            if (each.warehouse, each.location) == (known.warehouse, location):
                each.mark, each.uuid = mark, document["table-uuid"]

    @rule(server=SERVERS, name=NAMES, overwrite=st.booleans(), data=st.data())
    @precondition(lambda self: bool(self.left))
    def register(self, server: int, name: str, overwrite: bool, data: st.DataObject) -> None:
        known = data.draw(st.sampled_from(self.left))
        key = known.warehouse, name
        if key in self.live and not overwrite:
            return
        catalog, identifier = self.catalog(server, known.warehouse), TableIdentifier(FLIGHTS, name)
        try:
            named.register(catalog, TABLES, identifier, known.location, overwrite=overwrite)
        except MetadataFileMissing:
            raise AssertionError("a file that no purge has deleted is gone") from None
        before = self.live.get(key)
        if before is not None:
            self.left.append(before)
        self.live[key] = replace(known)

    @rule(server=SERVERS)
    def work_off_the_queue(self, server: int) -> None:
        while work_off_one(self.servers[server]):
            pass
        in_use = {each.uuid for each in self.live.values()}
        if set(self.purged) - in_use:
            # Copies with an edited uuid share what was deleted: from here on nothing is known of what was left.
            self.left.clear()
        self.purged.clear()

    @invariant()
    def every_server_shows_the_same_and_no_file_is_gone(self) -> None:
        if set(self.purged) or not self.live:
            return
        for (warehouse, name), known in self.live.items():
            identifier = TableIdentifier(FLIGHTS, name)
            for server in (0, 1):
                catalog = self.catalog(server, warehouse)
                pointer = catalog.load(TABLES, identifier)
                loaded = load_table(catalog, identifier)
                assert (loaded.location, loaded.metadata.properties["mark"]) == (known.location, known.mark)
                answer = table_json(catalog, pointer, refs_only=False)
                assert json.loads(answer.content)["properties"]["mark"] == known.mark
                assert find_json(catalog, pointer, refs_only=False) == answer
            head = load_table(self.catalog(0, warehouse), identifier).metadata.current_snapshot
            if head is not None:
                missing = [
                    each
                    for each in _reached(self.store(warehouse), str(head.manifest_list))
                    if not self.store(warehouse).exists(Location(each))
                ]
                assert missing == []


def _mark() -> str:
    return f"{next(_numbers):06}"


def _reached(store: MemoryFiles, manifest_list: str) -> Iterator[str]:
    def records(location: str) -> list[dict[str, Any]]:
        return list(fastavro.reader(BytesIO(store.read(Location(location)))))  # type: ignore[arg-type]  # records are mappings here

    for manifest in records(manifest_list):
        yield from (entry["data_file"]["file_path"] for entry in records(manifest["manifest_path"]))


def test_two_servers_and_two_warehouses(tmp_path: Path) -> None:
    stores: dict[int, MemoryFiles] = {}
    url = f"sqlite:///{tmp_path}/icetower.db"
    first, second = (
        replace(server_on(url), files_of=lambda warehouse: stores.setdefault(warehouse.id, MemoryFiles()))
        for _ in range(2)
    )

    class OnThisDatabase(TwoServers):
        servers = (first, second)

    run_state_machine_as_test(OnThisDatabase, settings=settings(max_examples=30, stateful_step_count=25))
