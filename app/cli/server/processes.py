"""`icetower serve`: settings, database, socket, then uvicorn with one process or several."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from math import ceil
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import uvicorn
from uvicorn.supervisors import Multiprocess

from app.api.addresses import ON, is_loopback
from app.cli.server.database_folder import make_database_folder
from app.cli.server.http_protocol import protocol_for
from app.cli.server.listeners import Listeners
from app.cli.terminal.output import remark, warn
from app.main import build_server, create_app, open_database, prepare
from app.setting_types import mask_url_password
from app.settings import Settings, load_settings
from app.telemetry import configure_logging, log_lines

METRICS_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def run_server(flags: Mapping[str, object], config_file: Path | None) -> None:
    """Run the server until SIGINT or SIGTERM stops it."""
    settings = load_settings(flags, config_file).settings
    make_database_folder(settings.database_url.get_secret_value())
    with closing(Listeners(settings.host, settings.port, settings.management)) as listeners:
        settings = settings.model_copy(update={"port": listeners.port, "management": listeners.management})
        # Each process does this again when it starts; here a refusal is one line and an exit status.
        _log_from(settings)
        with closing(open_database(settings)) as database:
            prepare(settings, database, build_server(settings, database))
        _introduce(settings)
        # Before uvicorn takes over the signals, and after it has handed them back, they end the process.
        for stop_signal in (signal.SIGINT, signal.SIGTERM):
            signal.signal(stop_signal, _leave)
        config = uvicorn.Config(
            partial(application, settings),
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
        else:
            # Nothing else flushes the log lines of the process that only supervises the others.
            logging.getLogger().addHandler(_Flushing())
            with _metrics_folder():
                Multiprocess(config, sockets=listeners.sockets).run()


def application(settings: Settings) -> object:
    """Build the application in the process that will serve it."""
    _log_from(settings)
    if parent := parent_process():
        threading.Thread(target=_stop_without, args=(parent,), daemon=True).start()
    # Planning a scan makes many small objects and no cycles: the search for cycles took a third of the time.
    gc.set_threshold(50_000, 20, 50)
    return create_app(settings)


def _stop_without(parent: BaseProcess) -> None:
    """Stop this process when its supervisor has ended, so that it does not keep the port."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _log_from(settings: Settings) -> None:
    configure_logging(settings.log_level)
    # The first log lines of a migration are of no use; a started server shows that migrations are done.
    logging.getLogger("alembic").setLevel(logging.WARNING)


class _Flushing(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - the parent's signature
        log_lines.flush()


def _leave(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _introduce(settings: Settings) -> None:
    """Print on standard error where everything is; standard output has the log lines."""
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    processes = "1 process" if settings.workers == 1 else f"{settings.workers} processes"
    remark(f"Icetower listens on http://{shown}:{settings.port} with {processes}; Ctrl+C stops it.")
    remark(f"  database   {mask_url_password(settings.database_url.get_secret_value())}")
    if settings.management != ON:
        remark(f"  management {settings.management}")
    remark(f"  warehouse  {settings.default_warehouse} at {settings.default_warehouse_location}")
    if not is_loopback(settings.host):
        warn(
            f"There is no authentication, and Icetower listens on {settings.host}: everyone who reaches port "
            f"{settings.port} can read, change and drop every table. Put a proxy that authenticates in front of it, or "
            "listen on 127.0.0.1."
        )


@contextmanager
def _metrics_folder() -> Iterator[None]:
    """Give the processes a folder for shared metrics, unless the user chose one."""
    if METRICS_FOLDER_VARIABLE in os.environ:
        yield
        return
    with TemporaryDirectory(prefix="icetower-metrics-") as folder:
        os.environ[METRICS_FOLDER_VARIABLE] = folder
        yield
