"""Pointers for the busiest routes: lookups that arrive together share one statement."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor

from app.catalog.context.catalog import Catalog
from app.database.pointers.pointer import Pointer
from app.database.pointers.pointers import Pointers
from app.engine.model.identifiers import TableIdentifier
from app.errors import NoSuchTable

MAX_BATCH = 64
Key = tuple[int, TableIdentifier]


class PointerBatches:
    """Finds pointers from coroutines of one event loop.

    Every result is read after its lookup began, as if each ran alone. While one statement runs, further lookups
    wait for the next one and share it.
    """

    def __init__(self, pointers: Pointers, executor: Executor | None) -> None:
        """Look up through `executor`; without one, on the loop, for a database without a network."""
        self._pointers = pointers
        self._executor = executor
        self._waiting: list[tuple[Key, asyncio.Future[Pointer | None]]] = []
        self._running: asyncio.Task[None] | None = None

    async def load_table(self, catalog: Catalog, operation: str, identifier: TableIdentifier) -> Pointer:
        """Return a table's pointer, for a use case that runs on the event loop.

        Raises:
            NotAllowed: the caller may not do this.
            NoSuchTable: no table has this name.
            DatabaseUnavailable: the database does not answer.
        """
        catalog.permit(operation, identifier)
        pointer = await self.find(catalog.warehouse.id, identifier)
        if pointer is None or pointer.kind != "table":
            raise NoSuchTable(identifier)
        return pointer

    async def find(self, warehouse_id: int, identifier: TableIdentifier) -> Pointer | None:
        """Return the pointer of a table or view, or None.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Pointer | None] = loop.create_future()
        self._waiting.append(((warehouse_id, identifier), answer))
        if self._running is None:
            self._running = loop.create_task(self._answer_all())
        return await answer

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
                await self._answer(batch)
        finally:
            self._running = None

    async def _answer(self, batch: list[tuple[Key, asyncio.Future[Pointer | None]]]) -> None:
        keys = list({key for key, _ in batch})
        try:
            if self._executor is None:
                found = self._pointers.find_many(keys)
            else:
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self._executor, self._pointers.find_many, keys)
        except BaseException as error:
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        for key, answer in batch:
            if not answer.done():
                answer.set_result(found.get(key))
