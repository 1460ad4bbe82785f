"""A rebuild that is killed at each of its steps, and run again: it ends as if nothing had happened."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.exports.writing import export_pointers
from app.catalog.named import drop
from app.database.pointers.pointer import PointerKind
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.fileio.local import LocalFiles
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.databases import migrated_database_of
from tests.builders.tables import commit_to, table_in, view_in
from tests.crash import rebuilding_process
from tests.servers.forks import ForkedProcess
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.slow
DROPPED = [TableIdentifier(Namespace(("a", "b")), f"dropped{number}") for number in range(2)]
NAMES = [TableIdentifier(Namespace(("a", "b")), f"t{number}") for number in range(5)]
STEPS = [
    ("rebuild_planned", 0),
    ("rebuild_settings_set", 0),
    ("rebuild_namespace_made", 0),
    ("before_put", 0),
    ("after_put", 0),
    ("before_put", 1),
    ("rebuild_batch_landed", 1),
    ("after_put", 3),
    ("rebuild_drop_noted", 0),
]


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.nightly])]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database for what is rebuilt."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/found.db"
    postgres: PostgresServer = request.getfixturevalue("postgres_server")
    return postgres.url(migrated_database_of(postgres))


def rebuild(url: str, root: str, log: Path, step: str, passed: int = 0) -> int:
    """Run a rebuild that dies at a step, and return its status."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ICETOWER_")}
    arguments = (url, root, step, passed)
    process = ForkedProcess(rebuilding_process.main, *arguments, env=environment, cwd=log.parent, log=log)
    status = process.wait()
    assert status in (0, -signal.SIGKILL), log.read_text()[-3000:]
    return status


def lost_catalog(tmp_path: Path) -> Catalog:
    """Return tables and views whose database will not be there."""
    server = server_on(f"sqlite:///{tmp_path}/lost.db", LocalFiles())
    catalog = new_warehouse(server, "default", f"file://{tmp_path}/lake")
    for identifier in NAMES:
        table_in(catalog, identifier)
        commit_to(catalog, SetProperties(updates={"n": identifier.name}), identifier=identifier)
    view_in(catalog, TableIdentifier(Namespace(("a",)), "v"))
    catalog.namespaces.create(
        catalog.warehouse.id, Namespace(("quiet",)), {"owner": "anna"}, catalog.author()
    )
    settings = {"icetower.undrop.keep-ms": str(20 * 365 * 86_400_000)}  # By a clock that stands still.
    changed = server.warehouses.update("default", lambda there: replace(there, default_properties=settings))
    catalog = Catalog(server, changed, catalog.caller)
    for number, identifier in enumerate(DROPPED):
        # One of the name of another one that is there.
        table_in(catalog, identifier)
        if number:
            commit_to(catalog, SetProperties(updates={"n": identifier.name}), identifier=identifier)
        drop(catalog, TABLES, identifier)
    table_in(catalog, DROPPED[1])
    export_pointers(server, catalog.warehouse)
    return catalog


def content(catalog: Catalog) -> dict[str, Any]:
    """Return all names with what they point to."""
    names: dict[str, Any] = {}
    for namespace, properties in catalog.server.namespaces.list_all(catalog.warehouse.id, None, 100):
        names[str(namespace)] = properties
    for kind in PointerKind:
        for pointer in catalog.pointers.list_pointers(catalog.warehouse.id, kind, 0, 100):
            names[str(pointer.identifier)] = (pointer.kind, pointer.uuid, pointer.metadata_location)
    entries = catalog.server.dropped.list(catalog.warehouse.id, catalog.now_ms())
    for entry in entries:
        assert entry.pointer is not None
        names[f"dropped {entry}"] = (entry.dropped_ms, entry.until_ms, entry.pointer.metadata_location)
    assert len(entries) == len(DROPPED)
    return names


@pytest.mark.parametrize(("step", "passed"), STEPS, ids=str)
def test_a_rebuild_goes_on_after_a_kill(tmp_path: Path, url: str, step: str, passed: int) -> None:
    lost = lost_catalog(tmp_path)
    root = lost.warehouse.root_location

    log = tmp_path / "rebuild.log"
    assert rebuild(url, root, log, step, passed) == -signal.SIGKILL
    assert rebuild(url, root, log, "never") == 0

    found = server_on(url, LocalFiles())
    warehouse = found.warehouses.find("default")
    assert warehouse is not None
    rebuilt = Catalog(found, warehouse, lost.caller)
    assert content(rebuilt) == content(lost)
    assert warehouse.default_properties == lost.warehouse.default_properties
    for identifier in NAMES:
        pointer = rebuilt.find(identifier)
        assert pointer is not None
        assert [event.event for event in rebuilt.pointers.history(pointer.id)] == ["rebuilt"]
    found.pointers._database.close()
