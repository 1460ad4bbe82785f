"""ETags of load answers, and whether a client's If-None-Match names one."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b

_TAG = re.compile(r'(?:W/)?"([^"]*)"|([^\s,"]+)')


class ExactCase(bytes):
    """A header name that keeps its case.

    The Java client looks headers up case-sensitively and wants `ETag`; the HTTP server lower-cases every name with
    `lower()`, which would turn the client's caching off without a word.
    """

    def lower(self) -> bytes:
        return self


ETAG = ExactCase(b"ETag")


@lru_cache(maxsize=16384)
def etag(location: str, version: str) -> bytes:
    """Return the tag of an answer: where the metadata is, and which content.

    The location alone would not do: files are edited, restored, and equal in two stores. The tag is weak, as the same
    answer travels plain or compressed.
    """
    digest = blake2b(f"{location}\0{version}".encode("utf-8", "surrogatepass"), digest_size=12)
    return f'W/"{digest.hexdigest()}"'.encode("ascii")


def is_unchanged(if_none_match: bytes | None, current: bytes) -> bool:
    """Say whether a client has the answer with this tag; tags compare weakly, `*` is any."""
    if if_none_match is None:
        return False
    if if_none_match == current:
        return True
    text = if_none_match.decode("latin-1").strip()
    if text == "*":
        return True
    wanted = _opaque(current.decode("ascii"))
    return any((quoted or bare) == wanted for quoted, bare in _TAG.findall(text))


def _opaque(tag: str) -> str:
    return tag.removeprefix("W/").strip('"')
