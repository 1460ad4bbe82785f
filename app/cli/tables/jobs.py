"""`icetower table jobs`: what was done to a table's upkeep, by whom, and what came of it."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.terminal.arguments import identifier_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, group
from app.cli.terminal.output import print_json, remark
from app.cli.terminal.rendering import print_table
from app.cli.terminal.texts import moment_text

commands = group()

_APART = frozenset({"message", "seconds", "snapshot-ids"})


@commands.command("jobs")
def table_jobs(
    name: TableName,
    last: Annotated[int, typer.Option("--last", min=1, max=1000, help="How many of the newest.")] = 20,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show the jobs of upkeep that were done to a table, newest first, and what came of them.

    The history of a table names the job of each commit by its id. `--json` has options and snapshots, too.

    For example:

    - `icetower table jobs eu.sales.orders`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        found = catalog.maintenance.jobs(identifier, last)
    if as_json:
        print_json(found)
        return
    if not found:
        remark(f"No job was ever done to table {name}.")
        return
    rows = []
    for job in found:
        outcome = job["outcome"]
        figures = [f"{value} {key}" for key, value in outcome.items() if key not in _APART and value]
        rows.append(
            [
                moment_text(job["began-ms"]),
                job["job"],
                job["state"],
                outcome.get("seconds"),
                outcome.get("message") or ", ".join(figures),
                job["author"],
                job["id"],
            ]
        )
    print_table(["began", "job", "outcome", "seconds", "what came of it", "who", "id"], rows)
