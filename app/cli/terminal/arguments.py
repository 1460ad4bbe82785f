"""What people write on the command line, as values: names, properties, JSON, moments."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from typing import Any

import typer

from app.engine.model.identifiers import Namespace, TableIdentifier, check_identifier, check_namespace
from app.errors import InvalidName

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)
_LIKE_A_TIME = re.compile(r"\d{4}-|\d+$", re.ASCII)
"""A date or a time, or epoch milliseconds."""


def namespace_from(text: str, separator: str) -> Namespace:
    """Read `a.b` as the namespace b within a."""
    try:
        return check_namespace(Namespace(pieces_of(text, separator)))
    except InvalidName as error:
        raise typer.BadParameter(f"{text!r}: {error}") from error


def identifier_from(text: str, separator: str) -> TableIdentifier:
    """Read `a.b.t` as the table or view t in the namespace a.b."""
    *levels, name = pieces_of(text, separator)
    if not levels:
        raise typer.BadParameter(f"{text!r} has no namespace: write <namespace>{separator}{text}")
    try:
        return check_identifier(TableIdentifier(Namespace(tuple(levels)), name))
    except InvalidName as error:
        raise typer.BadParameter(f"{text!r}: {error}") from error


def written(name: Namespace | TableIdentifier, separator: str) -> str:
    """Write a name as the command line takes it."""
    pieces = name.levels if isinstance(name, Namespace) else (*name.namespace.levels, name.name)
    return separator.join(pieces)


def properties_from(texts: list[str] | None) -> dict[str, str]:
    """Read `key=value` pairs; the value may hold further equals signs."""
    found = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{text!r} is not <key>=<value>")
        found[key] = value
    return found


def json_from(text: str | bytes | None, source: str) -> Any:
    """Read JSON if there is a text; `source` names it in an error."""
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{source} is not JSON: {error}") from error


def find_object(text: str | bytes | None, source: str) -> dict[str, Any] | None:
    """Read a JSON object if there is a text; `source` names it in an error."""
    value = json_from(text, source)
    if text is not None and not isinstance(value, dict):
        raise typer.BadParameter(f"{source} is not a JSON object")
    found: dict[str, Any] | None = value
    return found


def find_iso_ms(text: str) -> int | None:
    """Read a time in ISO 8601 as epoch milliseconds; without an offset it is in UTC. None if it is not one."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def duration_from(text: str) -> int:
    """Read a number and a unit, like `90s` or `7d`, as seconds."""
    match = _AGO.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a number and a unit, like 90s, 30m, 12h, 7d or 2w")
    return int(match[1]) * _UNITS_S[match[2]]


def moment_from(text: str) -> int:
    """Read an age or a moment as epoch milliseconds; a moment without an offset is in UTC."""
    if _AGO.fullmatch(text):
        return max(0, round(time.time() * 1000) - duration_from(text) * 1000)
    moment_ms = find_iso_ms(text)
    if moment_ms is None:
        raise typer.BadParameter(f"{text!r} is neither an age, like 7d, nor a moment, like 2025-01-31")
    return max(0, moment_ms)


def server_moment(text: str) -> str:
    """Return an age, like 2h, as epoch milliseconds; a time as it is, for the server to read."""
    if _AGO.fullmatch(text):
        return str(moment_from(text))
    if not _LIKE_A_TIME.match(text):
        raise typer.BadParameter(
            f"{text!r} is neither an age, like 2h, nor a time, like 2026-11-20 or 2026-11-20T10:00:00Z"
        )
    return text


def pieces_of(text: str, separator: str) -> tuple[str, ...]:
    """Read `a.b.t` as its pieces; none of them is empty."""
    if not separator:
        raise typer.BadParameter("the separator is empty")
    pieces = tuple(text.split(separator))
    if not all(pieces):
        raise typer.BadParameter(f"{text!r} has an empty name between its separators {separator!r}")
    return pieces
