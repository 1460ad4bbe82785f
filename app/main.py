"""Puts the parts together: settings in, a FastAPI application out. The only such place."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

from anyio import to_thread
from fastapi import FastAPI

from app.api.dependencies import Parts
from app.api.entrance.addresses import OFF, ON, Addresses, host_and_port, is_loopback
from app.api.entrance.commit_ids import CommitIds
from app.api.entrance.front_door import FrontDoor
from app.api.responses.packed_answers import PackedAnswers
from app.api.routing import Dispatcher, endpoints, endpoints_of_the_past, mutations, route_labels, routes
from app.catalog.context.callers import SERVER_ITSELF, Permit, everyone_may
from app.catalog.context.name_lists import NameLists
from app.catalog.context.places.locations import roots_of_warehouse
from app.catalog.context.pointer_batches import PointerBatches
from app.catalog.context.seen.receipt_book import ReceiptBook
from app.catalog.context.seen.traffic import Traffic
from app.catalog.context.server import COMMIT_WAIT_S, Rules, Server
from app.catalog.context.threads.convoys import Convoys
from app.catalog.context.threads.crew import Crew
from app.catalog.context.threads.rooms import Rooms
from app.catalog.deletions.housekeeping import keep_house
from app.catalog.health import readiness
from app.catalog.slots.held_loads import HeldLoads
from app.catalog.slots.landing_slots import LandingSlots
from app.catalog.warehouses import WarehouseMemo, check_stores_soon, create_warehouse
from app.database.connections.clock import DatabaseClock
from app.database.connections.database import Database
from app.database.connections.process_turns import ProcessTurns
from app.database.connections.sqlite_files import FileIdentity, prepare_file
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
from app.database.schema.revisions import check_revision, found_revision, known_revision
from app.database.schema.rights import check_changes
from app.database.signing_keys import SigningKeys
from app.database.warehouses import Warehouse, Warehouses
from app.engine.health.thresholds import HealthThresholds
from app.errors import IcetowerError, InvalidLocation, InvalidName, InvalidSetting, WarehouseExists
from app.fileio.failures import not_opened
from app.fileio.files import FileIO
from app.fileio.locations import scheme_of
from app.fileio.schemes import files_for
from app.fileio.storage_settings import StorageEnvironment
from app.formats.manifests.folder import ManifestFolder
from app.formats.manifests.source import ManifestCache
from app.formats.metadata.files import MetadataFiles
from app.lines import Lines
from app.settings import Settings
from app.telemetry import log_lines
from app.waits import do_meanwhile

log = logging.getLogger(__name__)

LOG_FLUSH_SECONDS = 0.25
SPARE_THREADS = 4
PACKED_SHARE = 8
"""Compressed answers get one part in so many of the metadata cache's size."""


def create_app(
    settings: Settings,
    *,
    step: Callable[[str], None] | None = None,
    files_of: Callable[[Warehouse], FileIO] | None = None,
    ask_permission: Permit = everyone_may,
    opened: FileIdentity | None = None,
) -> FastAPI:
    """Return the application; the database is opened when it starts and closed when it ends.

    Args:
        settings: the operator's settings.
        step: for tests of crashes: called with the name of each step of a commit.
        files_of: for tests: where a warehouse's files are, instead of where its storage settings say.
        ask_permission: asked before each use case what its caller may do.
        opened: as for `open_database`.

    Raises:
        InvalidSetting: this build does not know such a database URL.
    """
    database = open_database(settings, opened)
    server = build_server(settings, database, step=step, files_of=files_of, ask_permission=ask_permission)
    executor = None if database.dialect_name == "sqlite" else ThreadPoolExecutor(1, "pointer-lookups")
    crew = Crew()
    slots = LandingSlots(server.landing_queues, settings.commit_hold_seconds, server.traffic)
    held_loads = HeldLoads(server.landing_queues, settings.commit_hold_seconds, server.traffic)
    served = routes()
    app = FastAPI(
        title="Icetower",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # Ours is in app/telemetry.py; FastAPI's takes longer than routing, even if it has nothing to do.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        lifespan=lambda _app: _lifespan(settings, database, server, (slots, held_loads), executor, crew),
    )
    warehouses = WarehouseMemo(server)
    commit_ids = CommitIds(mutations(served), server.receipts, settings.default_warehouse)
    app.state.parts = Parts(
        server=server,
        rooms=server.rooms,
        crew=crew,
        convoys=Convoys(crew, server.side_work.start),
        slots=slots,
        held_loads=held_loads,
        warehouses=warehouses,
        lookups=PointerBatches(server.pointers, executor),
        name_lists=NameLists(is_instant=database.dialect_name == "sqlite"),
        packed_answers=PackedAnswers(settings.metadata_cache_bytes // PACKED_SHARE),
        default_warehouse=settings.default_warehouse,
        max_body_values=settings.max_body_values,
        key_lifetime_minutes=settings.idempotency_key_lifetime_minutes,
        endpoints=endpoints(served),
        endpoints_of_the_past=endpoints_of_the_past(endpoints(served)),
        commit_ids=commit_ids,
        readiness=readiness(
            server,
            lambda: warehouses.load(settings.default_warehouse),
            lambda: check_changes(database),
            lambda: check_revision(database),
        ),
    )
    # The front door does what FastAPI's own middleware would do, and the errors of the protocol besides.
    app.middleware_stack = FrontDoor(
        Dispatcher(app, served),
        addresses=Addresses(settings.host, settings.allowed_hosts, settings.management),
        max_body_bytes=settings.max_body_bytes,
        max_bodies_bytes=settings.max_bodies_bytes,
        log_requests=settings.log_level in ("debug", "info"),
        route_labels=route_labels(served),
        commit_ids=commit_ids,
    )
    return app


def open_database(settings: Settings, opened: FileIdentity | None = None) -> Database:
    """Return the database of these settings, not yet connected; makes a SQLite file's folder.

    Args:
        settings: the operator's settings.
        opened: the SQLite file that this server was started on. In the place of one that was moved away, a process
            that is started later would make an empty database, or take another one for it.
    """
    url = settings.database_url.get_secret_value()
    if opened is None:
        prepare_file(url)
    return Database.open(url, pool_size=settings.database_pool_size, opened=opened)


def build_server(
    settings: Settings,
    database: Database,
    *,
    step: Callable[[str], None] | None = None,
    files_of: Callable[[Warehouse], FileIO] | None = None,
    ask_permission: Permit = everyone_may,
) -> Server:
    """Return the server that works on this database."""
    folder = settings.manifest_folder
    environment = StorageEnvironment(
        settings.storage_environment,
        settings.default_warehouse_storage.get_secret_value(),
        settings.default_warehouse_location,
    )
    rules = Rules(
        commit_attempts=settings.commit_attempts,
        allow_external_locations=settings.allow_external_locations,
        allowed_locations=settings.allowed_locations,
        storage_environment=environment,
        guard_read_bytes=settings.guard_read_bytes,
        expired_file_grace_ms=round(settings.expired_file_grace_seconds * 1000),
        orphan_age_ms=round(settings.orphan_age_hours * 3_600_000),
        orphan_grace_ms=round(settings.orphan_grace_hours * 3_600_000),
        history_ms=settings.history_days * 24 * 3_600_000,
        scan_page_files=settings.scan_page_files,
        scan_submit_bytes=settings.scan_submit_bytes,
        pointer_export_ms=round(settings.pointer_export_hours * 3_600_000),
        pointer_exports_kept=settings.pointer_exports_kept,
        scan_plan_lifetime_ms=settings.scan_plan_lifetime_minutes * 60_000,
        health_thresholds=HealthThresholds.of(settings.health_thresholds),
    )
    now_ms = DatabaseClock(database).now_ms
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
        receipts=ReceiptBook(Receipts(database), now_ms),
        traffic=Traffic(now_ms),
        metadata_files=MetadataFiles(
            settings.metadata_cache_bytes,
            round(settings.metadata_recheck_seconds * 1000),
            settings.max_metadata_bytes,
        ),
        manifest_cache=ManifestCache(settings.manifest_cache_bytes, settings.max_metadata_bytes),
        manifest_folder=None if folder is None else ManifestFolder(folder, settings.manifest_folder_bytes),
        files_of=files_of or _FilesOfWarehouses(rules, settings.store_answer_seconds),
        now_ms=now_ms,
        new_uuid=lambda: str(uuid.uuid4()),
        pause=lambda seconds: do_meanwhile(lambda: time.sleep(seconds)),
        rules=rules,
        ask_permission=ask_permission,
        rooms=Rooms(settings.threads),
        commit_lines=Lines(settings.commits_together, COMMIT_WAIT_S),
        turns=ProcessTurns.beside(settings.database_url.get_secret_value()),
        step=step or (lambda _name: None),
    )


def prepare(settings: Settings, database: Database, server: Server, *, has_tables: bool = False) -> None:
    """Prepare the database for requests; this may run again, and twice at once.

    SQLite is migrated. Postgres is not: other servers may be at work on it.

    Args:
        settings: of the server.
        database: which.
        server: on this database.
        has_tables: whether there may be tables in the default warehouse that its new database does not know.

    Raises:
        DatabaseBehind: the database's revision is not the one this build knows.
        DatabaseUnavailable: the database does not answer.
        InvalidSetting: the settings of the default warehouse cannot be used.
    """
    if database.dialect_name == "sqlite" and found_revision(database) != known_revision():
        # Imported only here: most starts need no migration, and Alembic takes longer to import than they should take.
        from app.database.schema.migrations import migrate

        migrate(database)
    check_revision(database)
    server.now_ms()  # how far the database's clock is from ours is measured now, when no request waits for it
    present = server.warehouses.find(settings.default_warehouse)
    if present is None:
        try:
            create_warehouse(
                server,
                SERVER_ITSELF,
                settings.default_warehouse,
                settings.default_warehouse_location,
                settings.default_warehouse_properties.get_secret_value(),
                settings.default_warehouse_overrides.get_secret_value(),
                settings.default_warehouse_storage.get_secret_value(),
                has_tables=has_tables,
            )
        except WarehouseExists:
            pass
        except InvalidName as error:
            raise InvalidSetting(f"Invalid setting default_warehouse: {error}") from error
        except InvalidLocation as error:
            raise InvalidSetting(f"Invalid setting default_warehouse_location: {error}") from error
    else:
        _warn_of_what_has_no_effect(settings, present)


def _warn_of_what_has_no_effect(settings: Settings, present: Warehouse) -> None:
    if present.root_location.rstrip("/") != settings.default_warehouse_location.rstrip("/"):
        log.warning(
            "warehouse %s stays at %s, where it was created; the setting default_warehouse_location says %s. To have "
            "it there, drop it while nothing has been in it (icetower warehouse drop %s), and start the server again",
            present.name,
            present.root_location,
            settings.default_warehouse_location,
            present.name,
        )
    for setting, wanted, kept in (
        ("storage", settings.default_warehouse_storage, present.storage),
        ("properties", settings.default_warehouse_properties, present.default_properties),
        ("overrides", settings.default_warehouse_overrides, present.override_properties),
    ):
        # Only names are said: values may be secret.
        others = sorted(name for name, value in wanted.get_secret_value().items() if kept.get(name) != value)
        if others:
            log.warning(
                "warehouse %s was created before: the setting default_warehouse_%s has no effect on %s, which "
                "`icetower warehouse update %s` changes",
                present.name,
                setting,
                ", ".join(others),
                present.name,
            )


@contextlib.asynccontextmanager
async def _lifespan(
    settings: Settings,
    database: Database,
    server: Server,
    holds: Sequence[LandingSlots | HeldLoads],
    executor: Executor | None,
    crew: Crew,
) -> AsyncIterator[None]:
    # `Rooms` decides who has a thread; what belongs to no request, such as looking up a warehouse, needs some more.
    to_thread.current_default_thread_limiter().total_tokens = settings.threads + SPARE_THREADS
    _warn_if_open(settings.host)
    if settings.management not in {ON, OFF}:
        _warn_if_open(host_and_port(settings.management)[0])
    try:
        await asyncio.to_thread(prepare, settings, database, server)
    except IcetowerError as error:
        log.critical("cannot start: %s", error)
        raise
    stop = server.is_stopping
    stop.clear()
    housekeeping = threading.Thread(
        target=keep_house, args=(server, stop, settings.file_deletion_interval_seconds), name="housekeeping"
    )
    housekeeping.start()
    writing = threading.Thread(target=server.receipts.keep_writing, args=(stop,), name="receipts")
    writing.start()
    await asyncio.to_thread(check_stores_soon, server)
    flushing = asyncio.create_task(_flush_logs())
    try:
        yield
    finally:
        flushing.cancel()
        stop.set()
        server.has_deletions.set()
        for hold in holds:
            await hold.stop()
        await asyncio.to_thread(housekeeping.join, settings.shutdown_grace_seconds or None)
        await asyncio.to_thread(writing.join, settings.shutdown_grace_seconds or None)
        await asyncio.to_thread(server.scan_workers.stop, settings.shutdown_grace_seconds or None)
        if executor is not None:
            executor.shutdown(wait=False)
        crew.stop()
        await asyncio.to_thread(database.close)
        log_lines.flush()


async def _flush_logs() -> None:
    while True:
        await asyncio.sleep(LOG_FLUSH_SECONDS)
        log_lines.flush()


def _warn_if_open(host: str) -> None:
    if not is_loopback(host):
        log.warning(
            "listening on %s without authentication: everyone who reaches this address may read, change and drop "
            "every table; put a proxy that authenticates in front, or listen on 127.0.0.1",
            host,
        )


class _FilesOfWarehouses:
    """Each warehouse's files, found once for the same storage settings: every load needs them."""

    def __init__(self, rules: Rules, answer_s: float) -> None:
        self._answer_s = answer_s
        self._rules = rules
        self._kept: dict[int, tuple[Mapping[str, str], FileIO]] = {}

    def __call__(self, warehouse: Warehouse) -> FileIO:
        kept = self._kept.get(warehouse.id)
        if kept is not None and kept[0] == warehouse.storage:
            return kept[1]
        roots = roots_of_warehouse(warehouse, self._rules)
        is_open = self._rules.allow_external_locations
        local = () if is_open else tuple(root for root in roots if scheme_of(root) == "file")
        try:
            files = files_for(warehouse.storage, self._rules.storage_environment, self._answer_s, local)
        except InvalidSetting as error:
            raise not_opened(error, f"the store of warehouse {warehouse.name}") from error
        self._kept[warehouse.id] = (warehouse.storage, files)
        return files
