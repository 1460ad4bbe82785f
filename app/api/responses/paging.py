"""Pages of a listing: the page that a query asks for, and the token of the next one."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping

from app.catalog.context.listings import Page
from app.engine.model.identifiers import check_name
from app.errors import InvalidName, InvalidPageToken, InvalidRequest

MAX_PAGE_SIZE = 10_000
DEFAULT_PAGE_SIZE = 1_000
"""For a client that reads pages but does not say their size."""
PAGING = ("pageToken", "pageSize")
"""The query parameters of every listing."""

_VERSION = b"\x01"
_CHECKSUM_BYTES = 4
_MOST_DIGITS = 18
"""A number with one more may be larger than what a database can compare."""


def page_in_query(query: Mapping[str, str], listing: str) -> Page:
    """Return the page that a query asks for; a query without paging asks for everything.

    `listing` names what is listed, so that a token of another listing is refused. Raises `InvalidPageToken` or
    `InvalidRequest`.
    """
    token = query.get("pageToken")
    size = query.get("pageSize")
    after = _after(token, listing) if token else None
    if size is None:
        return Page(after, None if token is None else DEFAULT_PAGE_SIZE)
    return Page(after, _page_size(size))


def numbered_page_in_query(query: Mapping[str, str], listing: str) -> Page:
    """Return the same for a listing whose entries have numbers; raises as `page_in_query`."""
    page = page_in_query(query, listing)
    if page.after is not None and not (
        page.after.isascii() and page.after.isdigit() and len(page.after) <= _MOST_DIGITS
    ):
        raise InvalidPageToken(query["pageToken"])
    return page


def page_token(after: str, listing: str) -> str:
    """Return the token of the page that follows the name `after`."""
    name = after.encode()
    packed = _VERSION + _checksum(name, listing) + name
    return base64.urlsafe_b64encode(packed).decode("ascii").rstrip("=")


def next_page_token(next_after: str | None, listing: str) -> str | None:
    """Return the token of the next page; None if there is none."""
    return None if next_after is None else page_token(next_after, listing)


def _page_size(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not text.strip("0"):
        raise InvalidRequest(f"Invalid pageSize {text[:100]!r}: it must be a whole number, 1 or more")
    digits = text.lstrip("0")
    return MAX_PAGE_SIZE if len(digits) > len(str(MAX_PAGE_SIZE)) else min(int(digits), MAX_PAGE_SIZE)


def _after(token: str, listing: str) -> str:
    try:
        packed = base64.b64decode(
            token.encode("ascii") + b"=" * (-len(token) % 4), altchars=b"-_", validate=True
        )
        name = packed[len(_VERSION) + _CHECKSUM_BYTES :]
        if packed[: len(_VERSION) + _CHECKSUM_BYTES] != _VERSION + _checksum(name, listing):
            raise InvalidPageToken(token)
        return check_name(name.decode("utf-8"), "name")
    except (binascii.Error, UnicodeError, InvalidName) as error:
        raise InvalidPageToken(token) from error


def _checksum(name: bytes, listing: str) -> bytes:
    # Catches mistakes, not forgers: a forged token shows only what the caller could list anyway.
    return zlib.crc32(name, zlib.crc32(listing.encode())).to_bytes(_CHECKSUM_BYTES, "big")
