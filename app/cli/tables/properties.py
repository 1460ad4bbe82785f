"""`icetower table properties`: the properties of a table as they are in force."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.terminal.arguments import identifier_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, group
from app.cli.terminal.output import print_json, remark, warn
from app.cli.terminal.rendering import print_table

commands = group()


@commands.command("properties")
def show_properties(
    name: TableName,
    every: Annotated[
        bool, typer.Option("--all", help="Show also those that are not set, with their defaults.")
    ] = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show the properties of a table that are in force, and where each comes from.

    For example:

    - `icetower table properties eu.sales.orders`
    - `icetower table properties eu.sales.orders --all`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        found = catalog.tables.properties(identifier)
    shown = [item for item in found if every or item["origin"] != "default"]
    if as_json:
        print_json(shown)
        return
    if not shown:
        remark(f"Nothing is set for table {name}: --all shows the defaults.")
        return
    rows = [
        [item["name"], item.get("value", "–"), item["origin"], item.get("meaning", "unknown to Icetower")]
        for item in shown
    ]
    print_table(["name", "value", "from", "meaning"], rows)
    for item in shown:
        if "flaw" in item:
            warn(f"{item['name']} {item['flaw']}; it is ignored, or clients fail on it")
