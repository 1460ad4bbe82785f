"""Serving: the database is prepared, then uvicorn answers, in one process or in several."""

from __future__ import annotations

import gc
import logging
from contextlib import closing
from functools import partial
from math import ceil
from multiprocessing import parent_process

import uvicorn

from app.catalog.context.server import Server
from app.catalog.health import check_warehouse
from app.cli.server.connections import raise_descriptor_limit
from app.cli.server.cpus import Cpus
from app.cli.server.database_failures import naming_database
from app.cli.server.http_protocol import protocol_for
from app.cli.server.listeners import Listeners
from app.cli.server.workers import (
    HAS_FORKS,
    Supervisor,
    in_a_child,
    leave_when_stopped,
    share_memory,
    stop_without,
)
from app.cli.terminal.output import warn
from app.database.connections.database import Database
from app.database.connections.sqlite_files import FileIdentity, found_file
from app.database.schema.rights import check_changes
from app.errors import CommitStateUnknown, Unavailable
from app.fileio.locations import is_instant
from app.main import build_server, create_app, open_database, prepare
from app.settings import Settings
from app.telemetry import configure_logging, log_lines


def prepare_once(settings: Settings) -> str:
    """Prepare the database, and return where the default warehouse is.

    So a refusal is one line and an exit status. Each process prepares it again.

    Raises like `app.main.prepare`.
    """
    _log_from(settings)
    if settings.workers > 1 and HAS_FORKS:
        # Libraries that reach stores and databases start threads, and no process with threads may be forked.
        return in_a_child(partial(_prepare, settings))
    return _prepare(settings)


def serve(settings: Settings, listeners: Listeners, cpus: Cpus | None) -> None:
    """Answer requests until SIGINT or SIGTERM comes."""
    # Before uvicorn takes over the signals, and after it has handed them back, they end the process.
    leave_when_stopped()
    raise_descriptor_limit()
    opened = found_file(settings.database_url.get_secret_value())
    config = uvicorn.Config(
        partial(application, settings, cpus, opened),
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        http=protocol_for(settings),
        timeout_keep_alive=ceil(settings.idle_connection_seconds),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=settings.shutdown_grace_seconds,
        # A process that is silent for longer is replaced; importing alone takes seconds on a busy machine.
        timeout_worker_healthcheck=60,
    )
    if settings.workers == 1:
        uvicorn.Server(config).run(sockets=listeners.sockets)
        return
    # Nothing else flushes the log lines of the process that only supervises the others.
    logging.getLogger().addHandler(_Flushing())
    if HAS_FORKS:
        share_memory()
    Supervisor(config, sockets=listeners.sockets).run()


def application(settings: Settings, cpus: Cpus | None, opened: FileIdentity | None) -> object:
    """Build the application in the process that will serve it."""
    _log_from(settings)
    if cpus is not None:
        cpus.take_one()
    if parent := parent_process():
        stop_without(parent)
    app = create_app(settings, opened=opened)
    # All that is there by now stays.
    gc.freeze()
    # Planning a scan makes many small objects and no cycles: the search for cycles took a third of the time.
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
    return app


def _prepare(settings: Settings) -> str:
    with (
        naming_database(settings.database_url.get_secret_value()),
        closing(open_database(settings)) as database,
    ):
        server = build_server(settings, database)
        prepare(settings, database, server)
        _warn_of_what_cannot_be_written(settings, database, server)
        warehouse = server.warehouses.find(settings.default_warehouse)
        return settings.default_warehouse_location if warehouse is None else warehouse.root_location


def _warn_of_what_cannot_be_written(settings: Settings, database: Database, server: Server) -> None:
    """Say before the server listens what `/ready` would say; it may be meant for reading alone."""
    try:
        check_changes(database)
        warehouse = server.warehouses.find(settings.default_warehouse)
        # A store of a network may take long to say so.
        if warehouse is not None and is_instant(warehouse.root_location):
            check_warehouse(server, warehouse)
    except (Unavailable, CommitStateUnknown) as error:
        warn(f"Nothing can be changed here, and /ready is answered 503: {error}")


def _log_from(settings: Settings) -> None:
    configure_logging(settings.log_level)
    # The first log lines of a migration are of no use; a started server shows that migrations are done.
    logging.getLogger("alembic").setLevel(logging.WARNING)


class _Flushing(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - the parent's signature
        log_lines.flush()
