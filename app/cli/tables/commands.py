"""`icetower table`: its group, and the commands that register, adopt and drop tables."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.metadata_facts import table_facts
from app.cli.named import NamedKind, named_group
from app.cli.tables import (
    appends,
    conflicts,
    expiry,
    health,
    history,
    jobs,
    orphans,
    paths,
    properties,
    refs,
    scans,
    upkeep,
    validation,
)
from app.cli.terminal.arguments import identifier_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, Yes
from app.cli.terminal.output import confirm_or_stop, print_json, print_line

commands = named_group(
    NamedKind(
        noun="table",
        example="eu.sales.orders",
        shown="where it is, columns, partitioning, current snapshot, branches, properties",
        calls=lambda catalog: catalog.tables,
        facts=table_facts,
    ),
    """List, show, rename, register, unregister and drop tables.

A table is written `namespace.table`: `eu.sales.orders` is the table *orders* in the namespace `eu.sales`.
For names that contain dots choose another separator: `icetower table show eu.west/orders --separator /`.
Tables are created and written by Spark, PyIceberg, DuckDB and others.""",
)
for part in (
    appends,
    history,
    refs,
    scans,
    conflicts,
    validation,
    expiry,
    health,
    properties,
    upkeep,
    orphans,
    jobs,
    paths,
):
    commands.add_typer(part.commands)


@commands.command("adopt")
def adopt_table(
    name: TableName,
    location: Annotated[
        str,
        typer.Argument(metavar="FOLDER", help="The table's folder, in which metadata/v<N>.metadata.json is."),
    ],
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Make a file-system table (of a hadoop catalog) a table of the catalog.

    Its newest version is registered where it is. Nothing can keep writers of the old catalog from going on in the
    folder: stop them first. What they add is reported here, and by `icetower table health`.

    For example:

    - `icetower table adopt eu.sales.orders file:///lake/tables/sales/orders`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        adopted = catalog.tables.adopt(identifier, location)
    if as_json:
        print_json(adopted.model_dump(by_alias=True))
        return
    print_line(f"Adopted table {name} from version {adopted.version} at {adopted.metadata_location}.")
    for later in adopted.later_versions:
        print_line(f"A writer has added a later version, which is not in the table: {later}")


@commands.command("drop")
def drop_table(
    name: TableName,
    purge: Annotated[
        bool,
        typer.Option(
            "--purge",
            help="Delete its files too. It cannot come back then, unless the warehouse lets purges wait.",
        ),
    ] = False,
    yes: Yes = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
) -> None:
    """Drop a table. Its files stay, unless `--purge` is given.

    For example:

    - `icetower table drop eu.sales.orders`
    - `icetower table drop eu.sales.orders --purge --yes`
    """
    identifier = identifier_from(name, separator)
    if purge and not yes:
        confirm_or_stop(f"Drop table {name} and delete all its files?")
    with connected(uri, warehouse) as catalog:
        catalog.tables.drop(identifier, purge=purge)
    print_line(f"Dropped table {name}{'; its files will be deleted' if purge else '; its files stay'}.")
