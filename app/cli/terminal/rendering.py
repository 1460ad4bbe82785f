"""What commands show by means of a library: tables, facts, progress, and lines in colour."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate, chain, islice, zip_longest
from time import sleep
from typing import IO

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table
from rich.text import Text

from app.cli.terminal.texts import plain

NAME_WIDTH = 12
"""Long names are folded so far, if the columns beside them need the room."""
FITTED_ROWS = 1000
"""So many rows are looked at for the widths of their columns."""
_GAP = "   "


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, optional: int = 0) -> bool:
    """Print rows under their column names, if there are any; return whether there were.

    Of the last columns so many are optional: they are left out where a terminal is too narrow for the whole table.
    Without rows nothing is printed. A pipe or file has no edge, so nothing is folded there. Where there are many rows
    they are printed as they come, under columns that are as wide as the first ones need: the library would keep them
    all, and needs a second for a thousand.
    """
    left = iter(rows)
    first = list(islice(left, FITTED_ROWS))
    next_one = list(islice(left, 1))
    if not first:
        return False
    if not next_one and sys.stdout.isatty():
        console = _console(sys.stdout)
        shown = _fitting(columns, first, console.width, optional)
        console.print(_table(columns[:shown], [row[:shown] for row in first]))
        if shown < len(columns):
            left_out = ", ".join(columns[shown:])
            print_styled((f"Too narrow for: {left_out}. They are in --json.", "dim"))
        return True
    begun: list[Sequence[str]] = (
        [list(map(_line_of, row)) for row in first] if next_one else [*chain(*map(_lines_of, first))]
    )
    widths = [max(map(cell_len, column)) for column in zip(columns, *begun, strict=True)]
    rule = "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
    print(_aligned(columns, widths), rule, *(_aligned(row, widths) for row in begun), sep="\n", flush=True)
    for row in chain(next_one, left):
        print(_aligned(list(map(_line_of, row)), widths))
    return True


def _fitting(columns: Sequence[str], rows: list[Sequence[object]], width: int, optional: int) -> int:
    """Return how many columns have room without a cell being folded, the optional ones aside."""
    cells = [columns, *chain(*map(_lines_of, rows))]
    widths = (max(map(cell_len, column)) for column in zip(*cells, strict=True))
    fit = sum(taken - len(_GAP) <= width for taken in accumulate(own + len(_GAP) for own in widths))
    return max(fit, len(columns) - optional)


def _aligned(cells: Sequence[str], widths: Sequence[int], gap: str = _GAP) -> str:
    padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True))
    return gap.join(padded).rstrip()


def _lines_of(row: Sequence[object]) -> Iterator[tuple[str, ...]]:
    """Return the lines of a row some of whose cells have several."""
    return zip_longest(*(_cell(value).plain.split("\n") for value in row), fillvalue="")


def _line_of(value: object) -> str:
    return _cell(value).plain.replace("\n", "\\n")


def show_live(columns: Sequence[str], rows: Callable[[], Iterable[Sequence[object]]], pause_s: float) -> None:
    """Show rows under their column names, asked for anew after each pause, until Ctrl+C.

    The last columns are left out where a terminal is too narrow for them.
    """
    console = _console(sys.stdout)

    def look() -> Table:
        shown = _room_for(columns, console.width)
        return _table(columns[:shown], [row[:shown] for row in rows()])

    with suppress(KeyboardInterrupt), Live(look(), console=console, auto_refresh=False) as live:
        while True:
            sleep(pause_s)
            live.update(look(), refresh=True)


def _room_for(columns: Sequence[str], width: int) -> int:
    """Return for how many columns there is room, so that no word of a heading is folded."""
    widths = accumulate((3 + max(map(len, column.split())) for column in columns[1:]), initial=NAME_WIDTH)
    return max(1, sum(taken <= width for taken in widths))


class Progress:
    """A bar on standard error: how much is done, and what is at work."""

    def __init__(self, bar: ProgressBar, task: TaskID) -> None:
        self._bar = bar
        self._task = task
        self.done = 0

    def say(self, text: str) -> None:
        """Say what is at work."""
        self._bar.update(self._task, description=plain(text))

    def advance(self, number: int = 1) -> None:
        """Note that one more is done, or more than one."""
        self.done += number
        self._bar.advance(self._task, number)


@contextmanager
def shown_progress(total: int) -> Iterator[Progress]:
    """Show a bar until the block ends; without a terminal nothing is shown.

    After Ctrl+C a line shows how far it came.
    """
    console = _console(sys.stderr)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    bar = ProgressBar(*columns, console=console, transient=True, disable=not sys.stderr.isatty())
    progress = Progress(bar, bar.add_task("", total=total))
    try:
        with bar:
            yield progress
    except KeyboardInterrupt:
        stopped = f"Stopped at {progress.done} of {total}. The same command goes on from there."
        print_styled((stopped, "default"))
        raise


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    return table


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """Print names and their values; a value of several lines is a sequence."""
    rows: list[tuple[object, object]] = []
    for name, value in facts:
        lines = value if isinstance(value, list | tuple) else [value]
        rows += [(name if number == 0 else "", line) for number, line in enumerate(lines or ["–"])]
    if not sys.stdout.isatty():
        lines_of_all = [*chain(*map(_lines_of, rows))]
        width = max((cell_len(name) for name, _ in lines_of_all), default=0)
        print(*(_aligned(line, (width, 0), gap="  ") for line in lines_of_all), sep="\n", flush=True)
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*map(_cell, row))
    _console(sys.stdout).print(grid)


def print_styled(*pieces: tuple[str, str]) -> None:
    """Print one line on standard error, of texts and their styles."""
    line = Text.assemble(*((plain(text), style) for text, style in pieces))
    _console(sys.stderr).print(line, soft_wrap=True)


def _console(stream: IO[str]) -> Console:
    # Made anew each time: tests and pagers replace the standard streams.
    return Console(file=stream, highlight=False, emoji=False)


def _cell(value: object) -> Text:
    if isinstance(value, Text):
        return Text(plain(value.plain), style=value.style)
    return Text("" if value is None else plain(str(value)))
