"""Commands that first show what they would do, ask, and then do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import typer

from app.cli.terminal.output import confirm_or_stop, print_json, remark
from app.cli.terminal.rendering import print_facts
from app.client.answers import ServerAnswer

A = TypeVar("A", bound=ServerAnswer)


@dataclass(frozen=True, slots=True)
class Preview(Generic[A]):
    """What a command would do, and how it is said."""

    would: Callable[[], A]
    """Asks the server; nothing is changed."""
    facts: Callable[[A], Sequence[tuple[str, object]]]
    question: Callable[[A], str]
    nothing: Callable[[A], str | None] = lambda _would: None
    """What is said if there is nothing to do; None if there is."""

    def shown(self, *, dry_run: bool, yes: bool, as_json: bool) -> A | None:
        """Show what would be done and ask; return it, or None if it is not to be shown.

        Raises:
            typer.Exit: only this was wanted, or there is nothing to do.
        """
        if yes and not dry_run:
            return None
        would = self.would()
        if dry_run and as_json:
            print_answer(would)
            raise typer.Exit
        nothing = self.nothing(would)
        if nothing is not None:
            remark(nothing)
            raise typer.Exit
        if not as_json:
            print_facts(self.facts(would))
        if dry_run:
            raise typer.Exit
        confirm_or_stop(self.question(would))
        return would


def print_answer(answer: ServerAnswer) -> None:
    """Print what the server has answered, as JSON."""
    print_json(answer.model_dump(mode="json", by_alias=True, exclude_none=True))
