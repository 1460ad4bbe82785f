"""Answers in gzip, kept, so that a busy table is compressed once for all its clients."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from functools import partial

from app import telemetry
from app.api.compression import SLOW_GZIP_BYTES, compress, made_beside
from app.formats.caches import BoundedCache

_HITS = telemetry.ANSWER_READS.labels(cache="hit")
_MISSES = telemetry.ANSWER_READS.labels(cache="miss")


class PackedAnswers:
    """Compressed bodies, kept under what stands for them; belongs to one event loop."""

    def __init__(self, max_bytes: int) -> None:
        self._bodies: BoundedCache[bytes] = BoundedCache(max_bytes)
        self._under_way: dict[Hashable, asyncio.Task[bytes]] = {}

    async def pack(self, key: Hashable, parts: Sequence[bytes]) -> bytes:
        """Return a body in gzip: the one that is kept, or a new one, which is kept.

        Args:
            key: the same key is the same body.
            parts: the body; only put together if it has to be, which costs more than all else.
        """
        found = self._bodies.find(key)
        (_MISSES if found is None else _HITS).inc()
        if found is not None:
            return found
        if sum(map(len, parts)) < SLOW_GZIP_BYTES:
            return self._compress(key, parts)
        # Those who ask meanwhile wait for the first one. It goes on without it if its client has gone.
        task = self._under_way.get(key)
        if task is None:
            making = made_beside(partial(self._compress, key, parts))
            task = self._under_way[key] = asyncio.create_task(making)
            task.add_done_callback(lambda _: self._under_way.pop(key))
        return await asyncio.shield(task)

    def _compress(self, key: Hashable, parts: Sequence[bytes]) -> bytes:
        packed = compress(b"".join(parts))
        self._bodies.put(key, packed, len(packed) + 200)
        return packed
