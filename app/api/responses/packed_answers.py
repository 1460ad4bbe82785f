"""Load answers in gzip, kept by ETag, so that a busy table is compressed once."""

from __future__ import annotations

from app import telemetry
from app.api.compression import compress
from app.formats.caches import BoundedCache

_HITS = telemetry.ANSWER_READS.labels(cache="hit")
_MISSES = telemetry.ANSWER_READS.labels(cache="miss")


class PackedAnswers:
    """Compressed bodies by ETag: the same tag is the same body."""

    def __init__(self, max_bytes: int) -> None:
        self._bodies: BoundedCache[bytes] = BoundedCache(max_bytes)

    def find(self, tag: bytes) -> bytes | None:
        """Return the compressed body of the answer with this tag, if it is kept."""
        found = self._bodies.find(tag)
        (_MISSES if found is None else _HITS).inc()
        return found

    def pack(self, tag: bytes, body: bytes) -> bytes:
        """Compress a body and keep it."""
        packed = compress(body)
        self._bodies.put(tag, packed, len(packed) + 200)
        return packed
