"""`Catalog`: the outside things that each use case is given, and `Call`: who asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.catalog.scan_workers import ScanWorkers
from app.database.file_deletions import FileDeletions
from app.database.idempotency_keys import IdempotencyClaim, IdempotencyKeys
from app.database.namespaces import Namespaces
from app.database.pointers import Author, Pointer, Pointers
from app.database.scan_plans import ScanPlans
from app.database.signing_keys import SigningKeys
from app.database.warehouses import Warehouse, Warehouses
from app.engine.scan.delete_index import DeleteIndex
from app.fileio.files import FileIO
from app.formats.caches import BoundedCache, ReadThroughCache
from app.formats.manifests.folder import ManifestFolder
from app.formats.manifests.source import ManifestCache
from app.formats.metadata.files import MetadataFiles

# Rows that use cases hand out are named here, for rooms that may not see the database.
__all__ = [
    "Call",
    "Catalog",
    "IdempotencyClaim",
    "Listing",
    "Page",
    "Pointer",
    "Rules",
    "Warehouse",
    "page_of",
    "read_limit",
]

Item = TypeVar("Item")

DEFAULT_MANIFEST_CACHE_BYTES = 64 << 20
DELETE_INDEX_BYTES = 64 << 20
SCAN_ANSWER_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Rules:
    """What an operator may set about how the catalog behaves."""

    commit_attempts: int = 20
    """How often a commit that keeps losing the race for the pointer is tried before it is refused."""
    allow_external_locations: bool = False
    """Whether tables may lie outside their warehouse's root location."""
    allowed_locations: tuple[str, ...] = ()
    """Roots besides each warehouse's own below which tables may lie."""
    guard_read_bytes: int = 4 << 20
    """How much of manifest lists and manifests the guard may read for one commit."""
    expired_file_grace_ms: int = 0
    """How long files stay that only expired snapshots reached: queries may be reading them."""
    scan_page_files: int = 5_000
    """How many files one answer to scan planning lists before it leaves the rest to plan tasks."""
    scan_submit_bytes: int = 1 << 30
    """From how many bytes of manifests to be read on a scan is planned in the background."""
    scan_plan_lifetime_ms: int = 3_600_000
    """How long what was planned in the background can be asked for."""


def _ignore(_name: str) -> None:
    return None


@dataclass(frozen=True)
class Catalog:
    """Everything outside that use cases touch: rows, files, the clock, chance."""

    pointers: Pointers
    namespaces: Namespaces
    warehouses: Warehouses
    idempotency_keys: IdempotencyKeys
    file_deletions: FileDeletions
    scan_plans: ScanPlans
    signing_keys: SigningKeys
    metadata_files: MetadataFiles
    files_of: Callable[[Warehouse], FileIO]
    now_ms: Callable[[], int]
    new_uuid: Callable[[], str]
    pause: Callable[[float], None]
    """Wait a number of seconds (between attempts at a contended pointer)."""
    rules: Rules = field(default_factory=Rules)
    manifest_cache: ManifestCache = field(default_factory=lambda: ManifestCache(DEFAULT_MANIFEST_CACHE_BYTES))
    """Parsed manifests, shared by all warehouses; see `app.catalog.table_manifests`."""
    manifest_folder: ManifestFolder | None = None
    """Copies of manifests from object stores on the local disk, if the operator wants that."""
    delete_indexes: ReadThroughCache[DeleteIndex] = field(
        default_factory=lambda: ReadThroughCache(DELETE_INDEX_BYTES)
    )
    """The deletes of scans planned last: the plan tasks of one scan share them."""
    scan_answers: BoundedCache[bytes] = field(default_factory=lambda: BoundedCache(SCAN_ANSWER_BYTES))
    """Planned scans as they were answered last: dashboards ask the same again and again."""
    scan_workers: ScanWorkers = field(default_factory=ScanWorkers)
    """Where scans are planned in the background."""
    step: Callable[[str], None] = _ignore
    """Told the name of each step of a commit as it is reached; crash tests stop the process there."""


@dataclass(frozen=True, slots=True)
class Call:
    """Who asks, and under which Idempotency-Key."""

    principal: str
    request_id: str
    claim: IdempotencyClaim | None = None

    def author(self, at_ms: int) -> Author:
        """Return what pointer history remembers of this call."""
        return Author(principal=self.principal, request_id=self.request_id, at_ms=at_ms)


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a listing: names after `after`, at most `limit` of them; None for all."""

    after: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Listing(Generic[Item]):
    """One page, and the name after which the next one starts; None when this is the last."""

    items: list[Item]
    next_after: str | None


def page_of(names: list[str], page: Page) -> Listing[str]:
    """Cut a list that was read with one name more than the page holds."""
    if page.limit is None or len(names) <= page.limit:
        return Listing(names, None)
    return Listing(names[: page.limit], names[page.limit - 1])


def read_limit(page: Page) -> int | None:
    """Return how many names to read so that it shows whether more follow."""
    return None if page.limit is None else page.limit + 1
