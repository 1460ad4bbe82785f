"""Answers are read within bounds: a server may send bytes without end, or one a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import httpx

MOST_BYTES: Final = 512 << 20
"""Unpacked; the largest answers are tables with metadata of 256 MiB."""
PATIENCE_OF_WHOLE_ANSWERS: Final = 10
"""An answer may take so many times as long as each of its pieces."""
_ENCODINGS: Final = frozenset({"", "identity", "gzip", "deflate"})
"""A piece of these becomes a thousand times its size at most; of several in a row, or of others, any size."""

_ABOUT_TRANSFER: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


def read_whole(
    response: httpx.Response,
    patience_s: float,
    elapsed: Callable[[], float],
    most_bytes: int | None = None,
) -> httpx.Response:
    """Return a response with its content, unpacked.

    Args:
        response: one that is sent as a stream.
        patience_s: how long each piece of it is waited for.
        elapsed: a clock, in seconds.
        most_bytes: how large it may be, unpacked; as answers of catalogs unless given.

    Raises:
        httpx.RequestError: it broke off, is too large, takes too long, or is packed in a strange way.
    """
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in _ENCODINGS:
        raise httpx.DecodingError(f"it is packed as {encoding[:50]!r}, which was not asked for")
    longest_s = patience_s * PATIENCE_OF_WHOLE_ANSWERS
    most = MOST_BYTES if most_bytes is None else most_bytes
    end, content = elapsed() + longest_s, bytearray()
    for piece in response.iter_bytes():
        content += piece
        if len(content) > most:
            raise httpx.DecodingError(f"it has more than {most} bytes")
        if elapsed() > end:
            raise httpx.ReadTimeout(f"it was not whole after {longest_s:g} seconds")
    headers = [(name, text) for name, text in response.headers.multi_items() if name not in _ABOUT_TRANSFER]
    return httpx.Response(
        response.status_code, headers=headers, content=bytes(content), request=response.request
    )
