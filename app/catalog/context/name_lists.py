"""Lists of names: equal ones that are asked for together are read once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import Kind
from app.catalog.context.listings import Listing, Page, page_of
from app.engine.model.identifiers import Namespace
from app.formats.caches import BoundedCache

SHORT: Final = 2_000
"""Names of a list that is read on the event loop: it takes less than a millisecond."""
_KEPT_BYTES: Final = 1 << 20
_Key = tuple[int, object, Namespace, Page]
_Names = tuple[str, ...]
InThread = Callable[[Callable[[], _Names]], Awaitable[_Names]]


class NameLists:
    """Reads lists of names for coroutines of one event loop.

    Each list is read after it was asked for, as if each were read alone. While one is being read, those who ask for the
    same wait for the next read, and share it.
    """

    def __init__(self, *, is_instant: bool) -> None:
        """Read short lists on the loop if the database is in this process."""
        self._is_instant = is_instant
        self._short: BoundedCache[bool] = BoundedCache(_KEPT_BYTES)
        self._read_now: dict[_Key, asyncio.Future[None]] = {}
        self._read_next: dict[_Key, asyncio.Future[_Names | None]] = {}

    async def list_names(
        self, catalog: Catalog, kind: Kind[Any], namespace: Namespace, page: Page, in_thread: InThread
    ) -> Listing[str]:
        """Return the names of the tables, or of the views, in a namespace as it is now, in order.

        Raises:
            NotAllowed: the caller may not do this.
            NoSuchNamespace: the namespace is not there.
            DatabaseUnavailable, Unavailable: the database does not answer, or no thread is free.
        """
        catalog.permit(f"list_{kind}s", namespace)
        key = (catalog.warehouse.id, kind.of_pointer, namespace, page)

        def read() -> _Names:
            return catalog.pointers.list_names(
                catalog.warehouse.id, namespace, kind.of_pointer, page.after, page.read_limit
            )

        on_loop = self._is_instant and self._short.find(key)
        names = await self._shared(key, lambda: _soon(read) if on_loop else in_thread(read))
        if self._is_instant:
            self._short.put(key, len(names) <= SHORT, 500 + len(repr(namespace)))
        return page_of(names, page)

    async def _shared(self, key: _Key, read: Callable[[], Awaitable[_Names]]) -> _Names:
        joined = self._read_next.get(key)
        if joined is not None:
            found = await asyncio.shield(joined)
            # It failed for the one who read it: what holds for this one, its own read shows.
            return await read() if found is None else found
        followers: asyncio.Future[_Names | None] | None = None
        if key in self._read_now:
            followers = self._read_next[key] = asyncio.get_running_loop().create_future()
        found = None
        ended: asyncio.Future[None] | None = None
        try:
            while (running := self._read_now.get(key)) is not None:
                await asyncio.shield(running)
            ended = self._read_now[key] = asyncio.get_running_loop().create_future()
            if followers is not None:
                del self._read_next[key]
            found = await read()
            return found
        finally:
            if ended is not None:
                del self._read_now[key]
                ended.set_result(None)
            if followers is not None:
                if self._read_next.get(key) is followers:
                    del self._read_next[key]
                followers.set_result(found)


async def _soon(read: Callable[[], _Names]) -> _Names:
    # Requests that have come with this one are parsed first, and share the next read.
    await asyncio.sleep(0)
    return read()
