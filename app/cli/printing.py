"""What commands print: JSON for scripts, tables for people, remarks and refusals on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import IO

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH_OF_A_PIPE = 1000
"""Nobody looks at a pipe or file sideways, so that no name is ever cut or folded there."""


def print_json(value: object) -> None:
    """Print one JSON document, and nothing else, on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their column names."""
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    _console(sys.stdout).print(table)


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """Print names and what they stand for; several lines of one fact are a sequence."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        lines = value if isinstance(value, list | tuple) else [value]
        for number, line in enumerate(lines or ["–"]):
            grid.add_row(Text(name if number == 0 else ""), _cell(line))
    _console(sys.stdout).print(grid)


def print_line(text: str) -> None:
    """Print one line of result."""
    _console(sys.stdout).print(Text(text), soft_wrap=True)


def remark(text: str) -> None:
    """Print a line for people on standard error."""
    _console(sys.stderr).print(Text(text), soft_wrap=True)


def warn(text: str) -> None:
    """Print a line on standard error that is not to be missed."""
    _console(sys.stderr).print(Text(f"WARNING  {text}", style="bold yellow"), soft_wrap=True)


def tell_failure(text: str) -> None:
    """Print on standard error why a command did not do what it was asked."""
    line = Text("Error: ", style="bold red")
    line.append(Text(text, style="not bold default"))
    _console(sys.stderr).print(line, soft_wrap=True)


def moment(epoch_ms: object) -> str:
    """Return a time for people to read."""
    if not isinstance(epoch_ms, int):
        return ""
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return str(epoch_ms)


def _console(stream: IO[str]) -> Console:
    # Made anew each time: tests and pagers replace the standard streams.
    width = None if stream.isatty() else WIDTH_OF_A_PIPE
    return Console(file=stream, width=width, highlight=False, emoji=False)


def _cell(value: object) -> Text:
    return value if isinstance(value, Text) else Text("" if value is None else str(value))
