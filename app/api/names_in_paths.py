"""Names in the raw bytes of a URL: the warehouse prefix, namespaces and tables."""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import parse_qsl, quote, unquote_to_bytes

from app.api.short_arguments import kept_if_short
from app.catalog.warehouses import RESERVED_NAMES
from app.engine.model.identifiers import (
    LEVEL_SEPARATOR,
    Namespace,
    TableIdentifier,
    check_identifier,
    check_name,
    check_namespace,
)
from app.errors import InvalidName, InvalidRequest

RESOURCES = frozenset(
    {
        "commits",
        "diff",
        "dropped",
        "health",
        "namespaces",
        "restore",
        "tables",
        "tower",
        "transactions",
        "undrop",
        "views",
    }
)
"""First pieces of the paths that may have a warehouse prefix."""

_VERSION = "/v1/"
_BROKEN_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")


def split_prefix(raw_path: bytes) -> tuple[str, str | None]:
    """Return the path to route, still percent-encoded, and the warehouse that its prefix names.

    A prefix is one opaque piece between `/v1/` and a resource: `/v1/sales/namespaces` is `/v1/namespaces` in the
    warehouse `sales`.

    Raises:
        InvalidRequest: the path has bytes outside ASCII, or its prefix cannot be decoded.
    """
    try:
        path = raw_path.decode("ascii")
    except UnicodeDecodeError as error:
        raise InvalidRequest("Invalid path: characters outside ASCII must be percent-encoded") from error
    if not path.startswith(_VERSION):
        return path, None
    first, slash, rest = path[len(_VERSION) :].partition("/")
    if not slash or not first or first in RESERVED_NAMES or rest.partition("/")[0] not in RESOURCES:
        return path, None
    return _VERSION + rest, check_name(decode_piece(first), "prefix")


def encode_prefix(warehouse_name: str) -> str:
    """Return the warehouse's name as the one path piece that clients put after `/v1/`."""
    return quote(warehouse_name, safe="@:")


def decode_piece(piece: str) -> str:
    """Return the text of a path piece; both `+` and `%20` are a space. Raises `InvalidRequest`."""
    if "%" not in piece and "+" not in piece:
        return piece
    if _BROKEN_PERCENT.search(piece):
        raise InvalidRequest(
            f"Invalid path piece {piece[:200]!r}: '%' must be followed by two hexadecimal digits"
        )
    try:
        return unquote_to_bytes(piece.replace("+", " ")).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"Invalid path piece {piece[:200]!r}: it is not percent-encoded UTF-8"
        ) from error


@kept_if_short(4096)
def namespace_in_path(piece: str) -> Namespace:
    """Return the namespace of a path piece, levels separated by 0x1F; raises `BadRequest`."""
    return check_namespace(Namespace(tuple(decode_piece(piece).split(LEVEL_SEPARATOR))))


@kept_if_short(16384)
def identifier_in_path(namespace_piece: str, name_piece: str) -> TableIdentifier:
    """Return the table or view that two path pieces name; raises `BadRequest`."""
    return check_identifier(TableIdentifier(namespace_in_path(namespace_piece), decode_piece(name_piece)))


def namespaces_in_parent(value: str, literal: str) -> list[Namespace]:
    """Return what the `parent` of a listing may mean, likeliest first; empty for the top level.

    Some clients encode the levels before they encode the query, so a value with percent signs has a second reading.
    Others send a plus as it is.

    Args:
        value: the value, decoded.
        literal: the same, where each `+` means itself.

    Raises:
        InvalidName: a level of the first reading cannot be a name.
    """
    if not value:
        return []
    readings = [check_namespace(Namespace(tuple(value.split(LEVEL_SEPARATOR))))]
    if "%" in value:
        with suppress(InvalidRequest, InvalidName):
            readings.append(namespace_in_path(value))
    if literal != value:
        with suppress(InvalidName):
            readings.append(check_namespace(Namespace(tuple(literal.split(LEVEL_SEPARATOR)))))
    return readings


def with_literal_plus(piece: str) -> str:
    """Return a path piece whose `+` mean themselves, for clients that send a plus as it is."""
    return piece.replace("+", "%2B")


def warehouse_in_path(piece: str) -> str:
    """Return the warehouse name that a path piece names; raises `BadRequest`."""
    return check_name(decode_piece(piece), "warehouse name")


def parameters_in_query(query_string: bytes) -> dict[str, str]:
    """Return the query parameters, the first of each name; raises `InvalidRequest`."""
    if not query_string:
        return {}
    try:
        pairs = parse_qsl(query_string.decode("ascii"), keep_blank_values=True, errors="strict")
    except (UnicodeDecodeError, ValueError) as error:
        raise InvalidRequest("Invalid query: it is not percent-encoded UTF-8") from error
    parameters: dict[str, str] = {}
    for name, value in pairs:
        parameters.setdefault(name, value)
    return parameters


def true_or_false(name: str, text: str) -> bool:
    """Return a parameter or header that is `true` or `false`; an empty one is false.

    Raises:
        InvalidRequest: it is another text.
    """
    value = text.lower()
    if value in ("true", "false", ""):
        return value == "true"
    raise InvalidRequest(f"Invalid {name} {value[:100]!r}: it must be true or false")
