"""`icetower serve`: settings, socket and metrics first, then all that takes long to import."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from app.api.entrance.addresses import ON, is_loopback
from app.cli.server.cpus import Cpus
from app.cli.server.listeners import Listeners
from app.cli.terminal.output import remark, warn
from app.setting_types import mask_url_password
from app.settings import Settings, load_settings

METRICS_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_METRICS_PREFIX = "icetower-metrics-"
_STARTED_WITHIN_S = 60.0
_IN_MEMORY = "/dev/shm"  # noqa: S108 - the folder inside it is this user's alone


def run_server(flags: Mapping[str, object], config_file: Path | None) -> None:
    """Run the server until SIGINT or SIGTERM stops it."""
    settings = load_settings(flags, config_file).settings
    cpus = Cpus(settings.workers) if settings.pin_workers else None
    with (
        closing(Listeners(settings.host, settings.port, settings.management)) as listeners,
        _metrics_folder(settings.workers),
    ):
        settings = settings.model_copy(update={"port": listeners.port, "management": listeners.management})
        # What is imported stays: to look for garbage among it would take a tenth of the start.
        gc.disable()
        from app.cli.server.serving import prepare_once, serve

        warehouse_location = prepare_once(settings)
        _introduce(settings, warehouse_location)
        serve(settings, listeners, cpus)


def _introduce(settings: Settings, warehouse_location: str) -> None:
    """Print on standard error where everything is; standard output has the log lines."""
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    processes = "1 process" if settings.workers == 1 else f"{settings.workers} processes"
    remark(f"Icetower listens on http://{shown}:{settings.port} with {processes}; Ctrl+C stops it.")
    remark(f"  database   {mask_url_password(settings.database_url.get_secret_value())}")
    if settings.management != ON:
        remark(f"  management {settings.management}")
    remark(f"  warehouse  {settings.default_warehouse} at {warehouse_location}")
    if not is_loopback(settings.host):
        warn(
            f"There is no authentication, and Icetower listens on {settings.host}: everyone who reaches port "
            f"{settings.port} can read, change and drop every table. Put a proxy that authenticates in front of it, or "
            "listen on 127.0.0.1."
        )
    if 0 < settings.orphan_age_hours < 1:
        warn(
            f"The setting orphan_age_hours is {settings.orphan_age_hours}: files of a commit that takes longer may be "
            "deleted before it lands. Set it to an hour at least, or to 0, and none is deleted for its age."
        )


@contextmanager
def _metrics_folder(workers: int) -> Iterator[None]:
    """Give several processes a folder for shared metrics, unless the user chose one."""
    if workers == 1 or METRICS_FOLDER_VARIABLE in os.environ:
        yield
        return
    # The files in it are mapped: on a full disk, writing to a new page of one would end the process.
    parent = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK | os.X_OK) else None
    if parent is not None:
        _delete_left_folders(Path(parent))
    with TemporaryDirectory(prefix=_METRICS_PREFIX, dir=parent) as folder, _locked(folder):
        os.environ[METRICS_FOLDER_VARIABLE] = folder
        yield


def _delete_left_folders(parent: Path) -> None:
    """Delete what killed servers have left: it is locked while one of their processes lives."""
    for left in parent.glob(f"{_METRICS_PREFIX}*"):
        # A new one may not be locked yet; those of other users cannot be opened.
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STARTED_WITHIN_S:
                with _locked(left):
                    shutil.rmtree(left)


@contextmanager
def _locked(folder: str | Path) -> Iterator[None]:
    """Lock a folder for this process and all that are forked from it.

    Raises:
        OSError: others have locked it, or it cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
