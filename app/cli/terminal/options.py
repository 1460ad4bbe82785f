"""Declarations of commands: groups, and arguments and options that many commands have."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer


def group(help_text: str | None = None) -> typer.Typer:
    """Return a group to which a module adds its commands. Its parent adds it with `add_typer`."""
    return typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help=help_text)


def optional(*names: str, panel: str | None = None, **settings: Any) -> Any:
    """Describe an option that may be left out; its `help` says what happens then."""
    return typer.Option(*names, rich_help_panel=panel, show_default=False, **settings)


def chosen(*names: str, among: Sequence[StrEnum], panel: str | None = None, **settings: Any) -> Any:
    """Describe an option whose value is one of a few words."""

    def chosen_from(text: str) -> StrEnum:
        for word in among:
            if word == text.lower():
                return word
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(among)}")

    return typer.Option(
        *names, parser=chosen_from, metavar=f"<{'|'.join(among)}>", rich_help_panel=panel, **settings
    )


NAME_HELP = "Namespace and name joined by dots."
_SERVER = "Which catalog"

TableName = Annotated[str, typer.Argument(metavar="TABLE", help=NAME_HELP)]
Uri = Annotated[
    str | None,
    optional(
        "--uri",
        envvar="ICETOWER_URI",
        help="Address of the catalog server; http://127.0.0.1:8181 unless given here or in .env.",
        panel=_SERVER,
    ),
]
Warehouse = Annotated[
    str | None,
    optional(
        "--warehouse",
        envvar="ICETOWER_WAREHOUSE",
        help="Warehouse of that server; its default one unless given here or in .env.",
        panel=_SERVER,
    ),
]
Separator = Annotated[
    str,
    typer.Option(
        "--separator", help="The separator between the parts of a name; choose another for names with dots."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of a table for people.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
