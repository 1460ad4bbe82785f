"""`icetower table`: list, show, rename, register, unregister and drop tables."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli import history, refs, scans, validation
from app.cli.asking import confirm_or_stop
from app.cli.conflicts import check_conflicts
from app.cli.connecting import connected
from app.cli.expiring import expire_snapshots
from app.cli.metadata_facts import table_facts
from app.cli.names import identifier_from, namespace_from
from app.cli.options import AsJson, Separator, Uri, WarehouseName, Yes
from app.cli.printing import print_facts, print_json, print_line, print_table, remark

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""List, show, rename, register, unregister and drop tables.

A table is written `namespace.table`: `eu.sales.orders` is the table *orders* in the namespace `eu.sales`.
For names that contain dots choose another separator: `icetower table show eu.west/orders --separator /`.
Tables are created and written by Spark, PyIceberg, DuckDB and others.""",
)

Name = Annotated[str, typer.Argument(metavar="TABLE", help="Namespace and name joined by dots.")]


@commands.command("list")
def list_tables(
    namespace: Annotated[str, typer.Argument(help="Levels joined by dots, outermost first.")],
    uri: Uri = None,
    warehouse: WarehouseName = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """List the tables of a namespace.

    For example:

    - `icetower table list eu.sales`
    - `icetower table list eu.sales --json | jq -r '.[].name'`
    """
    within = namespace_from(namespace, separator)
    with connected(uri, warehouse) as catalog:
        found = list(catalog.tables.list(within))
    if as_json:
        print_json([{"namespace": list(table.namespace.levels), "name": table.name} for table in found])
    elif found:
        print_table(["table"], [[table.name] for table in found])
    else:
        remark(f"No tables in namespace {namespace}.")


@commands.command("show")
def show_table(
    name: Name,
    uri: Uri = None,
    warehouse: WarehouseName = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show a table: where it is, columns, partitioning, current snapshot, branches, properties.

    For example:

    - `icetower table show eu.sales.orders`
    - `icetower table show eu.sales.orders --json`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        loaded = catalog.tables.load(identifier)
    if as_json:
        print_json({"metadata-location": loaded.metadata_location, "metadata": loaded.metadata})
    else:
        print_facts(table_facts(name, loaded.metadata_location, loaded.metadata))


history.add_to(commands)
refs.add_to(commands)
scans.add_to(commands)
validation.add_to(commands)


@commands.command("rename")
def rename_table(
    name: Name,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="Namespace and name joined by dots.")],
    uri: Uri = None,
    warehouse: WarehouseName = None,
    separator: Separator = ".",
) -> None:
    """Give a table another name, in the same namespace or another. No file moves.

    For example:

    - `icetower table rename eu.sales.orders eu.archive.orders_2025`
    """
    source, destination = identifier_from(name, separator), identifier_from(new_name, separator)
    with connected(uri, warehouse) as catalog:
        catalog.tables.rename(source, destination)
    print_line(f"Renamed table {name} to {new_name}.")


@commands.command("register")
def register_table(
    name: Name,
    metadata_location: Annotated[str, typer.Argument(metavar="METADATA", help="The table's metadata file.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Let an existing table of this name point there from now on.")
    ] = False,
    uri: Uri = None,
    warehouse: WarehouseName = None,
    separator: Separator = ".",
) -> None:
    """Take a table into the catalog whose metadata file is already there.

    For example:

    - `icetower table register eu.sales.orders s3://lake/orders/metadata/00007-4f0c.metadata.json`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        loaded = catalog.tables.register(identifier, metadata_location, overwrite=overwrite)
    print_line(f"Registered table {name} at {loaded.metadata_location}.")


@commands.command("unregister")
def unregister_table(
    name: Name,
    uri: Uri = None,
    warehouse: WarehouseName = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Take a table out of the catalog, keep all its files, and print where its metadata is.

    For example:

    - `icetower table unregister eu.sales.orders`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        loaded = catalog.tables.unregister(identifier)
    if as_json:
        print_json({"metadata-location": loaded.metadata_location})
        return
    print_line(f"Unregistered table {name}. Its metadata stays at {loaded.metadata_location}.")


@commands.command("drop")
def drop_table(
    name: Name,
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete its files too. This cannot be taken back.")
    ] = False,
    yes: Yes = False,
    uri: Uri = None,
    warehouse: WarehouseName = None,
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


commands.command("conflicts")(check_conflicts)
commands.command("expire")(expire_snapshots)
