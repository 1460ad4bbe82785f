"""`icetower namespace`: list, create, show, set and drop namespaces."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.terminal.arguments import namespace_from, properties_from, written
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, Uri, Warehouse, group
from app.cli.terminal.output import print_json, print_json_list, print_line, remark
from app.cli.terminal.rendering import print_facts, print_table
from app.cli.terminal.texts import property_lines

commands = group(
    """List, create, show, change and drop namespaces.

A dot separates the levels of a namespace: `eu.sales` is the namespace *sales* within *eu*.
For names that contain dots choose another separator: `icetower namespace show eu.west/sales --separator /`."""
)

Name = Annotated[str, typer.Argument(metavar="NAMESPACE", help="Levels joined by dots, outermost first.")]


@commands.command("list")
def list_namespaces(
    parent: Annotated[
        str | None,
        typer.Argument(metavar="PARENT", help="List the namespaces within this one.", show_default=False),
    ] = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """List the outermost namespaces, or those within one.

    For example:

    - `icetower namespace list`
    - `icetower namespace list eu --json`
    """
    within = None if parent is None else namespace_from(parent, separator)
    with connected(uri, warehouse) as catalog:
        found = catalog.namespaces.list(within)
        if as_json:
            print_json_list(list(namespace.levels) for namespace in found)
        elif not print_table(["namespace"], ([written(namespace, separator)] for namespace in found)):
            remark(f"No namespaces within {parent}." if parent else "No namespaces yet.")


@commands.command("create")
def create_namespace(
    name: Name,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-p", metavar="KEY=VALUE", help="A property of it; may be repeated."),
    ] = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
) -> None:
    """Create a namespace.

    For example:

    - `icetower namespace create eu.sales -p owner=anna -p location=s3://lake/eu/sales`
    """
    namespace, wanted = namespace_from(name, separator), properties_from(properties)
    with connected(uri, warehouse) as catalog:
        catalog.namespaces.create(namespace, wanted)
    print_line(f"Created namespace {name}.")


@commands.command("show")
def show_namespace(
    name: Name,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show the properties of a namespace.

    For example:

    - `icetower namespace show eu.sales`
    """
    namespace = namespace_from(name, separator)
    with connected(uri, warehouse) as catalog:
        properties = catalog.namespaces.load(namespace)
    if as_json:
        print_json({"namespace": list(namespace.levels), "properties": properties})
    else:
        print_facts([("namespace", name), ("properties", property_lines(properties))])


@commands.command("set")
def set_properties(
    name: Name,
    properties: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="What to set.", show_default=False)
    ] = None,
    removals: Annotated[
        list[str] | None,
        typer.Option("--remove", "-r", metavar="KEY", help="What to remove; may be repeated."),
    ] = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Set and remove properties of a namespace.

    For example:

    - `icetower namespace set eu.sales owner=bert team=lake --remove comment`
    """
    namespace, updates = namespace_from(name, separator), properties_from(properties)
    if not updates and not removals:
        raise typer.BadParameter("nothing to set (KEY=VALUE) or to remove (--remove KEY)")
    with connected(uri, warehouse) as catalog:
        changes = catalog.namespaces.update_properties(namespace, updates, removals or [])
    if as_json:
        print_json(changes.model_dump())
        return
    print_line(
        f"Set {', '.join(changes.updated) or 'nothing'}; removed {', '.join(changes.removed) or 'nothing'}."
    )
    if changes.missing:
        remark(f"Not there to be removed: {', '.join(changes.missing)}.")


@commands.command("drop")
def drop_namespace(
    name: Name, uri: Uri = None, warehouse: Warehouse = None, separator: Separator = "."
) -> None:
    """Drop an empty namespace.

    For example:

    - `icetower namespace drop eu.sales`
    """
    namespace = namespace_from(name, separator)
    with connected(uri, warehouse) as catalog:
        catalog.namespaces.drop(namespace)
    print_line(f"Dropped namespace {name}.")
