"""Checks whether the catalog can work: the database and the warehouses' files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from anyio import CapacityLimiter, to_thread

from app.catalog.context.places.file_names import TRIES
from app.catalog.context.rows import Warehouse
from app.catalog.context.server import Server
from app.engine.model.ids import Location
from app.errors import IcetowerError

ANSWER_S: Final = 3.0
"""How long all checks may take together: orchestrators and people wait no longer."""
_TRY: Final = b"written to see whether the warehouse is writable\n" * 1_400


class PunctualChecks:
    """Checks that are answered in time, whatever they have to wait for.

    They belong to one event loop. Each runs in a thread of its own, once at a time: those who ask meanwhile get the
    same answer. So what holds the threads of all requests does not hold the answer to why.
    """

    def __init__(self, checks: Mapping[str, Callable[[], str | None]], answer_s: float = ANSWER_S) -> None:
        """Prepare checks by their names; each returns its problem, or None."""
        self._checks = dict(checks)
        self._answer_s = answer_s
        self._running: dict[str, asyncio.Task[str | None]] = {}

    async def problems(self) -> dict[str, str | None]:
        """Return the problem of each part, or None; a part that does not answer in time has one."""
        asked = {name: self._begun(name) for name in self._checks}
        await asyncio.wait(asked.values(), timeout=self._answer_s)
        late = f"It has not answered within {self._answer_s:g} s"
        return {name: task.result() if task.done() else late for name, task in asked.items()}

    def _begun(self, name: str) -> asyncio.Task[str | None]:
        running = self._running.get(name)
        if running is None or running.done():
            running = asyncio.get_running_loop().create_task(_in_thread(self._checks[name]))
            self._running[name] = running
        return running


async def _in_thread(check: Callable[[], str | None]) -> str | None:
    try:
        return await to_thread.run_sync(check, abandon_on_cancel=True, limiter=CapacityLimiter(1))
    except RuntimeError as error:  # no thread can be started
        return f"It could not be begun: {error}"


def readiness(
    server: Server,
    default_warehouse: Callable[[], Warehouse],
    check_writes: Callable[[], None],
    check_migrations: Callable[[], None],
) -> PunctualChecks:
    """Return the checks of all that requests need.

    Args:
        default_warehouse: looks up the one whose files are tried; raises `NoSuchWarehouse`.
        check_writes: raises an error if the database takes no changes.
        check_migrations: raises `DatabaseBehind` or `DatabaseUnavailable`.
    """

    def check_database() -> None:
        server.warehouses.list_page(0, 1)
        check_writes()

    checks: dict[str, Callable[[], object]] = {
        "database": check_database,
        "migrations": check_migrations,
        "warehouse": lambda: check_warehouse(server, default_warehouse()),
    }
    return PunctualChecks({name: partial(_problem, check) for name, check in checks.items()})


def check_warehouse(server: Server, warehouse: Warehouse) -> None:
    """Write and delete a file below a warehouse's root.

    It is about as large as the metadata file of a table: a disk that is nearly full takes smaller ones.

    Raises:
        FilesUnavailable: the store does not answer, or refuses it.
    """
    location = Location(f"{warehouse.root_location}/{TRIES}ready-{server.new_uuid()}")
    files = server.files_of(warehouse)
    files.write_new(location, _TRY)
    files.delete(location)


def _problem(check: Callable[[], object]) -> str | None:
    try:
        check()
    except IcetowerError as error:
        return str(error)
    return None
