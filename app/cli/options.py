"""Options that many commands have."""

from __future__ import annotations

from typing import Annotated

import typer

_SERVER = "Which catalog"

Uri = Annotated[
    str | None,
    typer.Option(
        "--uri",
        envvar="ICETOWER_URI",
        help="Address of the catalog server; http://127.0.0.1:8181 unless given here or in .env.",
        rich_help_panel=_SERVER,
        show_default=False,
    ),
]
WarehouseName = Annotated[
    str | None,
    typer.Option(
        "--warehouse",
        envvar="ICETOWER_WAREHOUSE",
        help="Warehouse of that server; its default one unless given here or in .env.",
        rich_help_panel=_SERVER,
        show_default=False,
    ),
]
Separator = Annotated[
    str,
    typer.Option(
        "--separator", help="What stands between the parts of a name; choose one for names with dots."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of a table for people.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
