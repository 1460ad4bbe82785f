"""A `Catalog` without HTTP: SQLite or Postgres rows, files in memory or on disk, a clock that tests move."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from app.catalog.context.callers import Caller
from app.catalog.context.catalog import Catalog
from app.catalog.context.seen.receipt_book import ReceiptBook
from app.catalog.context.seen.traffic import Traffic
from app.catalog.context.server import Rules, Server
from app.database.connections.database import Database
from app.database.deletions.file_deletions import FileDeletions
from app.database.deletions.foreign_places import ForeignPlaces
from app.database.deletions.metadata_sweeps import MetadataSweeps
from app.database.deletions.neighbours import Neighbours
from app.database.deletions.old_rows import OldRows
from app.database.deletions.orphan_runs import OrphanRuns
from app.database.dropped import DroppedThings
from app.database.landing_queues import LandingQueues
from app.database.maintenance_jobs import MaintenanceJobs
from app.database.namespaces import Namespaces
from app.database.outcomes.idempotency_keys import IdempotencyKeys
from app.database.outcomes.receipts import Receipts
from app.database.past import Past
from app.database.pointer_exports import PointerExports
from app.database.pointer_states import PointerStates
from app.database.pointers.pointers import Pointers
from app.database.scan_plans import ScanPlans
from app.database.signing_keys import SigningKeys
from app.database.warehouses import Warehouses
from app.fileio.files import FileIO
from app.fileio.memory import MemoryFiles
from app.fileio.storage_settings import StorageEnvironment
from app.formats.manifests.source import ManifestCache
from app.formats.metadata.files import MetadataFiles
from app.lines import Lines
from tests.builders.databases import migrated

START_MS = 1_700_000_000_000
CALLER = Caller(principal="tester", request_id="test")
RULES = Rules(
    commit_attempts=20,
    allow_external_locations=False,
    allowed_locations=(),
    storage_environment=StorageEnvironment(),
    guard_read_bytes=16 << 20,
    expired_file_grace_ms=0,
    orphan_age_ms=24 * 3_600_000,
    orphan_grace_ms=0,
    history_ms=90 * 24 * 3_600_000,
    scan_page_files=5_000,
    scan_submit_bytes=1 << 30,
    scan_plan_lifetime_ms=3_600_000,
)


@dataclass
class Clock:
    """Epoch milliseconds that move on by one with every look."""

    now_ms: int = START_MS
    ticks: itertools.count[int] = field(default_factory=itertools.count)

    def __call__(self) -> int:
        return self.now_ms + next(self.ticks)


def server_on(
    database_url: str,
    files: FileIO | None = None,
    *,
    rules: Rules = RULES,
    step: Callable[[str], None] = lambda _name: None,
) -> Server:
    """Return a server on an empty or migrated database."""
    database = Database.open(migrated(database_url))
    shared, clock = files or MemoryFiles(), Clock()
    return Server(
        pointers=Pointers(database),
        namespaces=Namespaces(database),
        warehouses=Warehouses(database),
        idempotency_keys=IdempotencyKeys(database),
        file_deletions=FileDeletions(database),
        metadata_sweeps=MetadataSweeps(database),
        old_rows=OldRows(database),
        orphan_runs=OrphanRuns(database),
        foreign_places=ForeignPlaces(database),
        neighbours=Neighbours(database),
        pointer_states=PointerStates(database),
        past=Past(database),
        dropped=DroppedThings(database),
        pointer_exports=PointerExports(database),
        landing_queues=LandingQueues(database),
        maintenance_jobs=MaintenanceJobs(database),
        scan_plans=ScanPlans(database),
        signing_keys=SigningKeys(database),
        receipts=ReceiptBook(Receipts(database), clock),
        traffic=Traffic(clock),
        metadata_files=MetadataFiles(64 << 20, 0),
        manifest_cache=ManifestCache(64 << 20),
        files_of=lambda _warehouse: shared,
        now_ms=clock,
        new_uuid=lambda: str(uuid.uuid4()),
        pause=lambda _seconds: None,
        rules=rules,
        step=step,
    )


def catalog_on(
    database_url: str,
    files: FileIO | None = None,
    *,
    rules: Rules = RULES,
    step: Callable[[str], None] = lambda _name: None,
) -> Catalog:
    """Return a new warehouse on an empty or migrated database, for one caller."""
    return new_warehouse(server_on(database_url, files, rules=rules, step=step))


def new_warehouse(server: Server, name: str = "wh", root: str = "memory://wh", **settings: Any) -> Catalog:
    """Return a new warehouse, for one caller."""
    created = server.warehouses.create(name, root, created_ms=START_MS, **settings)
    return Catalog(server, created, CALLER)


def with_server(catalog: Catalog, **parts: Any) -> Catalog:
    """Return the same catalog on another server, of which some parts are others: commits do not wait for each other."""
    lines: Lines[Any] = Lines(64, 30.0)
    return replace(catalog, server=replace(catalog.server, **({"commit_lines": lines} | parts)))


def with_warehouse(catalog: Catalog, **settings: Any) -> Catalog:
    """Return the same catalog with other settings of the warehouse."""
    return replace(catalog, warehouse=replace(catalog.warehouse, **settings))


def with_rules(catalog: Catalog, **rules: Any) -> Catalog:
    """Return the same catalog under other rules."""
    return with_server(catalog, rules=replace(catalog.rules, **rules))
