"""`Server`: what one server process has for all its warehouses and callers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from app.catalog.context.callers import SERVER_ITSELF, Caller, Permit, Question, everyone_may
from app.catalog.context.seen.landed_commits import LandedCommits
from app.catalog.context.seen.last_reads import LastReads
from app.catalog.context.seen.left_metadata import LeftMetadata
from app.catalog.context.seen.live_paths import LivePaths
from app.catalog.context.seen.receipt_book import ReceiptBook
from app.catalog.context.seen.traffic import Traffic
from app.catalog.context.threads.rooms import Rooms
from app.catalog.context.threads.scan_workers import ScanWorkers
from app.catalog.context.threads.side_work import SideWork
from app.catalog.filesystem_tables.seen_tables import SeenTables
from app.database.connections.process_turns import ProcessTurns
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
from app.database.past import Past
from app.database.pointer_exports import PointerExports
from app.database.pointer_states import PointerStates
from app.database.pointers.pointers import Pointers
from app.database.scan_plans import ScanPlans
from app.database.signing_keys import SigningKeys
from app.database.warehouses import Warehouse, Warehouses
from app.engine.health.column_profile import TableProfile
from app.engine.health.facts import FileFacts, HealthFacts, ManifestFacts
from app.engine.health.file_summary import FileSummary
from app.engine.health.thresholds import DEFAULT_THRESHOLDS, HealthThresholds
from app.engine.selection.deletes import DeleteIndex
from app.fileio.files import FileIO
from app.fileio.storage_settings import StorageEnvironment
from app.formats.caches import BoundedCache, ReadThroughCache
from app.formats.manifests.folder import ManifestFolder
from app.formats.manifests.source import ManifestCache
from app.formats.metadata.files import MetadataFiles
from app.lines import Lines

DELETE_INDEX_BYTES = 64 << 20
SCAN_ANSWER_BYTES = 32 << 20
LIVE_PATHS_BYTES = 256 << 20
COMMITS_TOGETHER = 64
COMMIT_WAIT_S = 30.0
SIDE_THREADS = COMMITS_TOGETHER
READ_AHEAD_THREADS = COMMITS_TOGETHER
FILE_SUMMARY_BYTES = 64 << 20
COUNTED_FILES_BYTES = 16 << 20
TABLE_OVERVIEW_BYTES = 16 << 20
TABLE_PROFILE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Rules:
    """What an operator may set about how the catalog behaves; `app.settings` has the defaults."""

    commit_attempts: int
    """How often a commit that keeps losing the race for the pointer is tried before it is refused."""
    allow_external_locations: bool
    """Whether tables may lie outside their warehouse's root location."""
    allowed_locations: tuple[str, ...]
    """Roots besides each warehouse's own below which tables may lie."""
    storage_environment: StorageEnvironment
    """Which environment variables the storage settings of warehouses may name."""
    guard_read_bytes: int
    """How much of manifest lists and manifests the guard may read for one commit."""
    expired_file_grace_ms: int
    """How long files stay that only expired snapshots reached: queries may be reading them."""
    orphan_age_ms: int
    """How old files that no commit landed are when they are deleted; 0 if they never are."""
    orphan_grace_ms: int
    """How long files stay after they were marked as orphans."""
    history_ms: int
    """How long old events and finished deletions are kept; 0 for ever."""
    scan_page_files: int
    """How many files one answer to scan planning lists before it leaves the rest to plan tasks."""
    scan_submit_bytes: int
    """Scans that must read more manifest bytes than this are planned in the background."""
    scan_plan_lifetime_ms: int
    """How long a client can ask for what was planned in the background."""
    pointer_export_ms: int = 0
    """How often the pointers of each warehouse are written down beside its tables; 0 for never."""
    pointer_exports_kept: int = 48
    """How many of these exports stay."""
    health_thresholds: HealthThresholds = DEFAULT_THRESHOLDS
    """From which figures on a table needs upkeep."""


def _ignore(_name: str) -> None:
    return None


@dataclass(frozen=True)
class Server:
    """Everything outside that use cases touch: rows, files, the clock, chance."""

    pointers: Pointers
    namespaces: Namespaces
    warehouses: Warehouses
    idempotency_keys: IdempotencyKeys
    file_deletions: FileDeletions
    metadata_sweeps: MetadataSweeps
    old_rows: OldRows
    orphan_runs: OrphanRuns
    foreign_places: ForeignPlaces
    neighbours: Neighbours
    pointer_states: PointerStates
    past: Past
    """What was at a time."""
    dropped: DroppedThings
    pointer_exports: PointerExports
    landing_queues: LandingQueues
    maintenance_jobs: MaintenanceJobs
    scan_plans: ScanPlans
    signing_keys: SigningKeys
    receipts: ReceiptBook
    traffic: Traffic
    """What comes of commits to the busiest tables."""
    metadata_files: MetadataFiles
    manifest_cache: ManifestCache
    """Parsed manifests, shared by all warehouses; see `app.catalog.manifests`."""
    files_of: Callable[[Warehouse], FileIO]
    now_ms: Callable[[], int]
    new_uuid: Callable[[], str]
    pause: Callable[[float], None]
    """Wait a number of seconds (between attempts at a contended pointer)."""
    rules: Rules
    ask_permission: Permit = everyone_may
    manifest_folder: ManifestFolder | None = None
    """Copies of manifests from object stores on the local disk, if the operator wants that."""
    delete_indexes: ReadThroughCache[DeleteIndex] = field(
        default_factory=lambda: ReadThroughCache(DELETE_INDEX_BYTES)
    )
    """The deletes of the scans planned last: the plan tasks of one scan share them."""
    scan_answers: BoundedCache[bytes] = field(default_factory=lambda: BoundedCache(SCAN_ANSWER_BYTES))
    """The answers to the scans planned last: dashboards ask the same again and again."""
    live_paths: LivePaths = field(default_factory=lambda: LivePaths(LIVE_PATHS_BYTES))
    """Which files the branches have that were appended to last."""
    rooms: Rooms = field(default_factory=lambda: Rooms(16))
    """Who may have a thread: every request that needs one asks here first."""
    scan_workers: ScanWorkers = field(default_factory=ScanWorkers)
    """Where scans are planned in the background."""
    commit_lines: Lines[Any] = field(default_factory=lambda: Lines(COMMITS_TOGETHER, COMMIT_WAIT_S))
    """Commits to one table wait for each other here."""
    turns: ProcessTurns = field(default_factory=lambda: ProcessTurns(None))
    """Commits to one table wait here for those of other processes of this machine that have lost a race."""
    side_work: SideWork = field(default_factory=lambda: SideWork(SIDE_THREADS))
    """Where the manifest lists of commits that land together are written."""
    read_ahead: SideWork = field(default_factory=lambda: SideWork(READ_AHEAD_THREADS))
    """Where files are read for commits that wait: apart, or those at work would have to wait for them."""
    file_summaries: BoundedCache[FileSummary] = field(
        default_factory=lambda: BoundedCache(FILE_SUMMARY_BYTES)
    )
    """What was counted of the live files of manifests whose tables were asked for their health."""
    counted_files: ReadThroughCache[tuple[FileFacts, ManifestFacts]] = field(
        default_factory=lambda: ReadThroughCache(COUNTED_FILES_BYTES)
    )
    """The facts about the files of the tables whose health was asked for last."""
    table_overviews: BoundedCache[HealthFacts] = field(
        default_factory=lambda: BoundedCache(TABLE_OVERVIEW_BYTES)
    )
    """The facts about the tables of the warehouses whose health was asked for last; without files."""
    table_profiles: ReadThroughCache[TableProfile] = field(
        default_factory=lambda: ReadThroughCache(TABLE_PROFILE_BYTES)
    )
    """The columns of the tables whose profile was asked for last."""
    last_reads: LastReads = field(default_factory=LastReads)
    """When tables were last read, as far as this process has seen it."""
    landed_commits: LandedCommits = field(default_factory=LandedCommits)
    """Commits that this process has answered, and whether the database still has them."""
    left_metadata: LeftMetadata = field(default_factory=LeftMetadata)
    """Metadata files of commits that did not land, which could not be deleted yet."""
    seen_tables: SeenTables = field(default_factory=SeenTables)
    """Which file-system tables were seen last, by the ids of their pointers."""
    has_deletions: threading.Event = field(default_factory=threading.Event)
    """Set when files were queued that may be deleted at once: housekeeping need not wait for its next round."""
    is_stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the process is to end: deletions of files end at the next batch, and another process goes on."""
    step: Callable[[str], None] = _ignore
    """Called with the name of each step of a commit as it is reached; crash tests stop the process there."""

    def permit(self, caller: Caller, operation: str) -> None:
        """Ask whether a caller may do something with the server as a whole.

        Raises:
            NotAllowed: the caller may not.
        """
        self.ask(Question(caller, operation, None, ()))

    def ask(self, question: Question) -> None:
        """Ask whether a caller may do something; the server itself may do everything.

        Raises:
            NotAllowed: the caller may not.
        """
        if question.caller is not SERVER_ITSELF:
            self.ask_permission(question)
