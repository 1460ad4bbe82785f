"""Gzip: whether a client accepts it, and the compression of bodies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from isal import isal_zlib

from app.api.short_arguments import kept_if_short

MIN_GZIP_BYTES = 1_024
SLOW_GZIP_BYTES = 2 * 1024 * 1024
"""Bodies from this size on are compressed outside the event loop; smaller ones take 1.5 ms at most."""
_GZIP_LEVEL = 2
"""Smaller than zlib makes it at level 3, in a seventh of its time."""
_GZIP_CONTAINER = 31
"""As zlib's `wbits`."""


@kept_if_short(256)
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


def compress(body: bytes) -> bytes:
    """Return the body in gzip; equal bodies give equal bytes."""
    return isal_zlib.compress(body, _GZIP_LEVEL, _GZIP_CONTAINER)


async def made_beside(make: Callable[[], bytes]) -> bytes:
    """Return what takes a while to make, made in a thread if one can be started.

    What it answers has mostly happened by then, and must not end in an error.
    """
    try:
        return await asyncio.to_thread(make)
    except RuntimeError:
        return make()
