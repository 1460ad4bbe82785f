"""A catalog behind HTTP in this process, and the bodies that tests send to it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from app.cli.server.http_protocol import protocol_for
from app.database.warehouses import Warehouse
from app.fileio.files import FileIO
from app.main import create_app
from app.setting_types import DatabaseUrl
from app.settings import Settings
from tests.builders.databases import migrated
from tests.builders.error_answers import check_response

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "note", "type": "string", "required": False},
    ],
}
VIEW_VERSION: dict[str, Any] = {
    "version-id": 1,
    "timestamp-ms": 1_700_000_000_000,
    "schema-id": 0,
    "summary": {"engine-name": "test"},
    "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 1"}],
    "default-namespace": ["a"],
}
_NAP_SECONDS = 0.01


def settings_in(folder: Path, **changes: Any) -> Settings:
    """Return settings that keep everything below a folder."""
    given: dict[str, Any] = {
        "database_url": DatabaseUrl(f"sqlite:///{folder / 'icetower.db'}"),
        "default_warehouse_location": str(folder / "warehouse"),
        "log_level": "error",
        "threads": 8,
        "file_deletion_interval_seconds": 3600.0,
        **changes,
    }
    return Settings(**given)


@contextmanager
def http_catalog(
    folder: Path,
    *,
    step: Callable[[str], None] | None = None,
    files_of: Callable[[Warehouse], FileIO] | None = None,
    **changes: Any,
) -> Iterator[httpx.Client]:
    """Serve a catalog until the block ends."""
    settings = settings_in(folder, **changes)
    database_url = settings.database_url.get_secret_value()
    if database_url.startswith("sqlite"):
        migrated(database_url)
    with served(create_app(settings, step=step, files_of=files_of), settings) as client:
        yield client


@contextmanager
def served(app: FastAPI, settings: Settings | None = None) -> Iterator[httpx.Client]:
    """Serve an application on a free port until the block ends, and hand out a client for it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        server = _AnnouncingServer(
            uvicorn.Config(app, http=protocol_for(settings or Settings()), log_config=None, access_log=False)
        )
        thread = threading.Thread(target=server.run, args=([listener],), name="catalog under test")
        thread.start()
        try:
            assert server.is_up.wait(30), "the catalog did not start"
            headers = {"accept-encoding": "identity", "content-type": "application/json"}
            with httpx.Client(
                base_url=f"http://127.0.0.1:{port}",
                headers=headers,
                timeout=60,
                event_hooks={"response": [check_response]},
            ) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


class _AnnouncingServer(uvicorn.Server):
    """A server that says when it has started, and ends without uvicorn's naps of 100 ms."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.is_up.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # noqa: ASYNC110 - uvicorn has flags and lists, and no event
            await asyncio.sleep(_NAP_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in self.servers:
            listening.close()
        for each in sockets or []:
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - as above
            await asyncio.sleep(_NAP_SECONDS)
        await self.lifespan.shutdown()


def make_namespace(client: httpx.Client, *levels: str) -> None:
    """Create a namespace."""
    response = client.post("/v1/namespaces", json={"namespace": list(levels)})
    assert response.status_code == 200, response.text


def make_table(client: httpx.Client, namespace: str, name: str) -> dict[str, Any]:
    """Create a table in a namespace of one level, and return the answer."""
    response = client.post(f"/v1/namespaces/{namespace}/tables", json={"name": name, "schema": SCHEMA})
    assert response.status_code == 200, response.text
    loaded: dict[str, Any] = response.json()
    return loaded


def make_view(client: httpx.Client, namespace: str, name: str) -> dict[str, Any]:
    """Create a view in a namespace of one level, and return the answer."""
    body = {"name": name, "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}
    response = client.post(f"/v1/namespaces/{namespace}/views", json=body)
    assert response.status_code == 200, response.text
    loaded: dict[str, Any] = response.json()
    return loaded


def set_properties(**updates: str) -> dict[str, Any]:
    """Return the body of a commit that sets properties, whatever the table is like."""
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": updates}]}


def error_of(response: Any) -> tuple[int, str, str]:
    """Return status, type and message of a refusal, after checking its shape."""
    error = response.json()["error"]
    assert error["code"] == response.status_code
    return response.status_code, error["type"], error["message"]


def stale_append(snapshot_id: int) -> dict[str, Any]:
    """Return a commit whose writer has seen another head of main than there is."""
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": 1,
        "timestamp-ms": 1_700_000_000_000,
        "manifest-list": "file:///nowhere/list.avro",
        "summary": {"operation": "append"},
    }
    return {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}],
        "updates": [{"action": "add-snapshot", "snapshot": snapshot}],
    }
