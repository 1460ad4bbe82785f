"""Options of imports and exports, as values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from app.cli.terminal.arguments import identifier_from, pieces_of
from app.cli.terminal.options import optional
from app.moving.choices import Choice, PathMap
from app.moving.terms import ALLOWABLE

_WHAT, _HOW = "What is moved", "How it is moved"

Identifiers = Annotated[
    list[str] | None,
    optional(
        "--identifiers", "-i", metavar="NAME", panel=_WHAT, help="Only this table or view; may be repeated."
    ),
]
Pattern = Annotated[
    str | None,
    optional(
        "--regex", metavar="PATTERN", panel=_WHAT, help="Only names, joined by dots, that match as a whole."
    ),
]
Renames = Annotated[
    list[str] | None,
    optional(
        "--rename",
        metavar="OLD=NEW",
        panel=_WHAT,
        help="Another name for a namespace and all in it, or for a table; may be repeated.",
    ),
]
Maps = Annotated[
    list[str] | None,
    optional(
        "--map",
        metavar="OLD=NEW",
        panel=_WHAT,
        help="Another beginning for locations, up to a slash, as `s3a://lake=s3://lake`; may be repeated.",
    ),
]
Properties = Annotated[
    list[str] | None,
    optional(
        "--property",
        "-p",
        metavar="KEY=VALUE",
        help="How to log in there, as clients say it: `credential=env:NAME` (id:secret) with `oauth2-server-uri` and "
        "`scope`, or `token=env:NAME`, or `header.NAME=…`; may be repeated.",
    ),
]


def _check_allowed(codes: list[str] | None) -> list[str] | None:
    for code in codes or []:
        if code not in ALLOWABLE:
            raise typer.BadParameter(
                f"{code} is no finding that can be allowed; they are {', '.join(sorted(ALLOWABLE))}"
            )
    return codes


Allowed = Annotated[
    list[str] | None,
    optional(
        "--allow",
        metavar="CODE",
        panel=_HOW,
        help="A finding that is no reason to refuse; may be repeated.",
        callback=_check_allowed,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", rich_help_panel=_HOW, help="Change nothing, only say what would be done."),
]
Recheck = Annotated[
    bool,
    typer.Option(
        "--recheck",
        rich_help_panel=_HOW,
        help="Move nothing, only say which tables of the report have changed at the source since.",
    ),
]
Report = Annotated[
    Path,
    typer.Option(
        "--report",
        rich_help_panel=_HOW,
        help="File with one JSON line for each step. With the same file a run goes on where another one ended.",
    ),
]
Workers = Annotated[
    int, typer.Option("--workers", min=1, max=64, rich_help_panel=_HOW, help="How many tables at once.")
]


def choice_from(
    identifiers: list[str] | None, pattern: str | None, renames: list[str] | None, separator: str
) -> Choice:
    """Read what is to be moved, and what it is called then."""
    try:
        compiled = None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise typer.BadParameter(f"{pattern!r} is not a regular expression: {error}") from error
    chosen = frozenset(identifier_from(text, separator) for text in identifiers or [])
    renamed = {pieces_of(old, separator): pieces_of(new, separator) for old, new in _pairs(renames)}
    return Choice(chosen, compiled, renamed)


def paths_from(maps: list[str] | None) -> PathMap:
    """Read how locations are spelled where tables are moved to."""
    pairs = _pairs(maps)
    for old, new in pairs:
        if old.endswith("/") != new.endswith("/"):
            raise typer.BadParameter(f"'{old}={new}': both end with a slash, or neither")
    return PathMap(pairs)


def _pairs(texts: list[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for text in texts or []:
        old, equals, new = text.partition("=")
        if not old or not equals or not new:
            raise typer.BadParameter(f"{text!r} is not <old>=<new>")
        pairs.append((old, new))
    return pairs
