"""Gzip: whether a client accepts it, and the compression of bodies."""

from __future__ import annotations

import gzip
import re
from functools import lru_cache

MIN_GZIP_BYTES = 1_024
GZIP_LEVEL = 5
FAST_GZIP_LEVEL = 3
"""For large bodies that are sent once: half the time for a tenth more bytes."""
SLOW_GZIP_BYTES = 256 * 1024
"""Bodies from this size on are compressed outside the event loop."""


@lru_cache(maxsize=256)
def accepts_gzip(accept_encoding: bytes) -> bool:
    """Return whether an Accept-Encoding header allows gzip; without one, nothing is compressed."""
    allowed = False
    for part in accept_encoding.decode("latin-1").lower().split(","):
        coding, _, weight = part.partition(";")
        refused = re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight) is not None
        if coding.strip() in ("gzip", "x-gzip"):
            return not refused
        if coding.strip() == "*":
            allowed = not refused
    return allowed


def compress(body: bytes, level: int = GZIP_LEVEL) -> bytes:
    """Return the body in gzip; equal bodies give equal bytes."""
    return gzip.compress(body, level, mtime=0)
