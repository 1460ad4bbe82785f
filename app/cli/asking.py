"""Asking before what cannot be taken back."""

from __future__ import annotations

import sys

import typer


def confirm_or_stop(question: str) -> None:
    """Go on only if a person says yes; where there is no one to ask, `--yes` is needed."""
    if not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to ask at: add --yes if it is meant")
    typer.confirm(question, abort=True, err=True)
