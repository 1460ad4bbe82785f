"""Lines that commands print, and questions. Remarks and failures go to standard error.

Colours need the library for terminals, which is imported with the first of them: a start of the server seldom has any.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

import typer

from app.cli.terminal.texts import plain

_SHOWN_LINKS = 10


def print_json(value: object) -> None:
    """Print one JSON document, and nothing else, on standard output."""
    print(json_text(value))


def print_json_list(items: Iterable[object]) -> None:
    """Print a JSON array of values as they come, and keep none in memory.

    Where they end with an error the array stays open: it does not look whole.
    """
    number = 0
    try:
        for number, item in enumerate(items, 1):
            text = json_text(item).replace("\n", "\n  ")
            print(f"[\n  {text}" if number == 1 else f",\n  {text}", end="")
    except Exception:
        # The line that says what is wrong begins on its own.
        if number:
            print()
        raise
    print("\n]" if number else "[]")


def json_text(value: object, indent: int | None = 2) -> str:
    """Return a value as JSON; characters that standard output lacks are written out."""
    has_all_characters = (sys.stdout.encoding or "").lower().startswith("utf")
    return json.dumps(value, indent=indent, ensure_ascii=not has_all_characters)


def print_line(text: str) -> None:
    """Print one line of result."""
    print(plain(text), flush=True)


def remark(text: str) -> None:
    """Print a line for people on standard error."""
    print(plain(text), file=sys.stderr)


def warn(text: str) -> None:
    """Print a line on standard error that people must not overlook."""
    from app.cli.terminal.rendering import print_styled

    print_styled((f"WARNING  {text}", "bold yellow"))


def warn_of_links(links: Iterable[str]) -> None:
    """Warn of symbolic links that a search has passed over."""
    found = sorted(links)
    if found:
        shown = ", ".join(found[:_SHOWN_LINKS])
        more = f", and {len(found) - _SHOWN_LINKS} more" if len(found) > _SHOWN_LINKS else ""
        warn(f"Symbolic links are not followed, and what is behind them is left out: {shown}{more}")


def print_failure(text: str) -> None:
    """Print on standard error why a command failed."""
    from app.cli.terminal.rendering import print_styled

    print_styled(("Error: ", "bold red"), (text, "default"))


def confirm_or_stop(question: str) -> None:
    """Continue only if a person agrees; without a terminal `--yes` is needed."""
    if not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to ask at: add --yes if it is meant")
    try:
        typer.confirm(question, abort=True, err=True)
    except typer.Abort as stopped:
        # The library makes a refusal of both a "no" and Ctrl+C.
        if isinstance(stopped.__context__, KeyboardInterrupt):
            remark("")
            raise KeyboardInterrupt from stopped
        raise
