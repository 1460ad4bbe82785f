"""`icetower tower`: the busiest tables, live."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Uri, Warehouse
from app.cli.terminal.output import print_json, print_table, remark, show_live
from app.client.request_parts import JsonObject

COLUMNS = {
    "landed/min": "landed-last-minute",
    "refused/min": "refused-last-minute",
    "landed": "landed",
    "together": "most-together",
    "races lost": "races-lost",
    "rebased": "rebased",
}
"""The columns after the name, and what the server calls them; a terminal of 80 has no room for more."""
_HEADINGS = ("table", *COLUMNS)


def show_tower(
    most: Annotated[int, typer.Option("--tables", min=1, max=200, help="How many tables.")] = 20,
    every: Annotated[
        float, typer.Option("--every", min=0.1, metavar="SECONDS", help="How often to ask anew.")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show it once, and end.")] = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    as_json: AsJson = False,
) -> None:
    """Show the tables with most commits, and how these fare, until Ctrl+C.

    The numbers are those of the server process that answers. Without a terminal they are shown once.

    For example:

    - `icetower tower`
    - `icetower tower --tables 5 --once`
    """
    with connected(uri, warehouse) as catalog:
        if as_json:
            print_json(catalog.tower.busiest(most))
        elif once or not sys.stdout.isatty():
            found = _rows(catalog.tower.busiest(most))
            if found:
                print_table(_HEADINGS, found)
            else:
                remark("No commits yet.")
        else:
            show_live(_HEADINGS, lambda: _rows(catalog.tower.busiest(most)), every)


def _rows(answer: JsonObject) -> list[list[object]]:
    return [
        [
            ".".join([*table["namespace"], table["table"]]),
            *(table.get(name, 0) for name in COLUMNS.values()),
        ]
        for table in answer["tables"]
    ]
