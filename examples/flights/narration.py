"""What the demo prints: numbered steps with their time, the statements they ran, and checks that held."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from textwrap import dedent, indent

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

_LONGEST_COUNT = 10**12
"""What is larger is an id."""


class Unexpected(Exception):
    """A number is not what the step before says it must be."""


@dataclass
class Narrator:
    """Prints one step after the other."""

    console: Console
    steps: int
    _number: int = field(default=0, init=False)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print a step's title, then what happens in it, then how long it took."""
        self._number += 1
        started = time.monotonic()
        self.console.print(f"\n[bold cyan]{self._number:>2}/{self.steps}[/]  [bold]{title}[/]")
        with self.console.status("[dim]working[/]", spinner="dots"):
            yield
        self.console.print(f"       [green]done[/] [dim]in {time.monotonic() - started:.1f} s[/]")

    def say(self, text: str) -> None:
        """Print one line of what was seen."""
        self.console.print(f"       {text}")

    def show(self, statement: str) -> None:
        """Print an SQL statement as it is sent to Spark."""
        text = indent(dedent(statement).strip(), " " * 7)
        code = Syntax(text, "sql", theme="ansi_dark", background_color="default").highlight(text)
        self.console.print(code, end="")

    def command(self, text: str) -> None:
        """Print a shell command as it could be typed."""
        self.console.print(Text(indent(text, " " * 7), style="cyan"), soft_wrap=True)

    def check(self, claim: str, found: object, expected: object) -> None:
        """Print a claim that holds.

        Raises:
            Unexpected: it does not.
        """
        if found != expected:
            raise Unexpected(f"{claim}: expected {expected}, found {found}")
        if isinstance(found, bool):
            shown = "yes" if found else "no"
        else:
            shown = f"{found:,}" if isinstance(found, int) and found < _LONGEST_COUNT else str(found)
        self.console.print(Text.assemble(("     ✓ ", "green"), claim, ": ", (shown, "bold")))
