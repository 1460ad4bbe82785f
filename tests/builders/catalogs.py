"""A `Catalog` without HTTP: SQLite or Postgres rows, files in memory or on disk, a clock that tests move."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from app.catalog.context import Call, Catalog, Rules
from app.database.connection import Database
from app.database.file_deletions import FileDeletions
from app.database.idempotency_keys import IdempotencyKeys
from app.database.namespaces import Namespaces
from app.database.pointers import Pointers
from app.database.revisions import migrate
from app.database.scan_plans import ScanPlans
from app.database.signing_keys import SigningKeys
from app.database.warehouses import Warehouse, Warehouses
from app.fileio.files import FileIO
from app.fileio.memory import MemoryFiles
from app.formats.metadata.files import MetadataFiles

START_MS = 1_700_000_000_000
CALL = Call(principal="tester", request_id="test")


@dataclass
class Clock:
    """Epoch milliseconds that move on by one with every look."""

    now_ms: int = START_MS
    ticks: itertools.count[int] = field(default_factory=itertools.count)

    def __call__(self) -> int:
        return self.now_ms + next(self.ticks)


def catalog_on(
    database_url: str,
    files: FileIO | None = None,
    *,
    rules: Rules | None = None,
    step: Callable[[str], None] = lambda _name: None,
) -> Catalog:
    """Return a catalog on an empty or migrated database."""
    database = Database.open(database_url)
    migrate(database)
    shared = files or MemoryFiles()
    return Catalog(
        pointers=Pointers(database),
        namespaces=Namespaces(database),
        warehouses=Warehouses(database),
        idempotency_keys=IdempotencyKeys(database),
        file_deletions=FileDeletions(database),
        scan_plans=ScanPlans(database),
        signing_keys=SigningKeys(database),
        metadata_files=MetadataFiles(64 << 20, 0),
        files_of=lambda _warehouse: shared,
        now_ms=Clock(),
        new_uuid=lambda: str(uuid.uuid4()),
        pause=lambda _seconds: None,
        rules=rules or Rules(),
        step=step,
    )


def warehouse_in(catalog: Catalog, name: str = "wh", root: str = "memory://wh") -> Warehouse:
    """Return a new warehouse."""
    return catalog.warehouses.create(name, root, created_ms=START_MS)
