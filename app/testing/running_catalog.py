"""A whole catalog server inside this process, on a free port and in a temporary folder."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import uvicorn

from app.catalog.context.server import Server
from app.errors import InvalidSetting
from app.main import build_server, create_app, open_database, prepare
from app.setting_types import DatabaseUrl, SecretProperties
from app.settings import Settings

SHUTDOWN_GRACE_SECONDS = 5


@contextmanager
def icetower_catalog(
    *,
    warehouse_location: str | None = None,
    database_url: str | None = None,
    storage: Mapping[str, str] | None = None,
    client_properties: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Run a catalog until the block ends, and hand out its address.

    Nothing of the user's own settings is read: no environment, no file.

    Args:
        warehouse_location: where the default warehouse keeps its files: a folder, a URI, or `memory://` and a name for
            tests that never read data files. By default a temporary folder.
        database_url: the database; Postgres must have been migrated. By default SQLite in a temporary folder.
        storage: how the server reaches the warehouse's files: `s3.endpoint` and so on.
        client_properties: what clients receive as defaults.

    Raises:
        IcetowerError: one of these makes no sense, or the database does not answer.
    """
    with TemporaryDirectory(prefix="icetower-") as folder:
        settings = Settings(
            host="127.0.0.1",
            port=0,
            threads=8,
            database_url=DatabaseUrl(database_url or f"sqlite:///{quote(str(Path(folder, 'icetower.db')))}"),
            default_warehouse_location=warehouse_location or str(Path(folder, "warehouse")),
            default_warehouse_storage=SecretProperties(dict(storage or {})),
            default_warehouse_properties=SecretProperties(dict(client_properties or {})),
            shutdown_grace_seconds=SHUTDOWN_GRACE_SECONDS,
            log_level="error",
        )
        # The server does this again when it starts; here a failure is raised where the caller sees it.
        with closing(open_database(settings)) as database:
            server = build_server(settings, database)
            prepare(settings, database, server)
            _check_place(server, settings)
        with _serving(settings) as url:
            yield url


def _check_place(server: Server, settings: Settings) -> None:
    """Refuse a database whose warehouse lies elsewhere, as in a temporary folder that is gone."""
    found = server.warehouses.find(settings.default_warehouse)
    if found is not None and found.root_location.rstrip("/") != settings.default_warehouse_location.rstrip(
        "/"
    ):
        raise InvalidSetting(
            f"The database has a warehouse already, at {found.root_location}: give that as warehouse_location, or "
            "another database_url. A database that stays needs a warehouse_location from the start"
        )


@contextmanager
def _serving(settings: Settings) -> Iterator[str]:
    with (
        closing(socket.create_server((settings.host, settings.port))) as listener,
        ThreadPoolExecutor(1, thread_name_prefix="icetower") as thread,
    ):
        config = uvicorn.Config(
            create_app(settings),
            log_config=None,
            timeout_graceful_shutdown=settings.shutdown_grace_seconds,
        )
        # As an argument it would silence the logger that all servers of this process share, for good.
        config.access_log = False
        server = _AnnouncingServer(config)
        # Whatever ends the wait, Ctrl+C or a time limit, ends the server: its thread is waited for.
        try:
            running = thread.submit(server.run, [listener])
            running.add_done_callback(lambda _: server.is_settled.set())
            server.is_settled.wait()
            if running.done():
                raise RuntimeError("The catalog did not start") from running.exception()
            yield f"http://{settings.host}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True


class _AnnouncingServer(uvicorn.Server):
    """A server with an event for its start."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_settled = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_settled.set()
