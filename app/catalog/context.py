"""`Catalog`: the outside things that each use case is given, and `Call`: who asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.database.file_deletions import FileDeletions
from app.database.idempotency_keys import IdempotencyClaim, IdempotencyKeys
from app.database.namespaces import Namespaces
from app.database.pointers import Author, Pointer, Pointers
from app.database.warehouses import Warehouse, Warehouses
from app.fileio.files import FileIO
from app.formats.manifest_source import ManifestCache
from app.formats.metadata_files import MetadataFiles

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


@dataclass(frozen=True, slots=True)
class Rules:
    """What an operator may set about how the catalog behaves."""

    commit_attempts: int = 20
    """How often a commit that keeps losing the race for the pointer is tried before it is refused."""
    allow_external_locations: bool = False
    """Whether tables may lie outside their warehouse's root location."""
    allowed_locations: tuple[str, ...] = ()
    """Roots besides each warehouse's own below which tables may lie."""
    expired_file_grace_ms: int = 0
    """How long files stay that only expired snapshots reached: queries may be reading them."""


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
    metadata_files: MetadataFiles
    files_of: Callable[[Warehouse], FileIO]
    now_ms: Callable[[], int]
    new_uuid: Callable[[], str]
    pause: Callable[[float], None]
    """Wait a number of seconds (between attempts at a contended pointer)."""
    rules: Rules = field(default_factory=Rules)
    manifest_cache: ManifestCache = field(default_factory=lambda: ManifestCache(DEFAULT_MANIFEST_CACHE_BYTES))
    """Parsed manifests, shared by all warehouses; see `app.catalog.table_manifests`."""
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
