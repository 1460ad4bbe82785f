"""`icetower view`: list, show, rename and drop views."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.connecting import connected
from app.cli.metadata_facts import view_facts
from app.cli.names import identifier_from, namespace_from
from app.cli.options import AsJson, Separator, Uri, WarehouseName
from app.cli.printing import print_facts, print_json, print_line, print_table, remark

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""List, show, rename and drop views.

A view is written `namespace.view`. For names that contain dots choose another separator:
`icetower view show eu.west/orders --separator /`. Views are created by Spark, Trino, PyIceberg and others.""",
)

Name = Annotated[str, typer.Argument(metavar="VIEW", help="Namespace and name joined by dots.")]


@commands.command("list")
def list_views(
    namespace: Annotated[str, typer.Argument(help="Levels joined by dots, outermost first.")],
    uri: Uri = None,
    warehouse: WarehouseName = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """List the views of a namespace.

    For example:

    - `icetower view list eu.sales`
    """
    within = namespace_from(namespace, separator)
    with connected(uri, warehouse) as catalog:
        found = list(catalog.views.list(within))
    if as_json:
        print_json([{"namespace": list(view.namespace.levels), "name": view.name} for view in found])
    elif found:
        print_table(["view"], [[view.name] for view in found])
    else:
        remark(f"No views in namespace {namespace}.")


@commands.command("show")
def show_view(
    name: Name,
    uri: Uri = None,
    warehouse: WarehouseName = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show a view: its SQL, columns and properties.

    For example:

    - `icetower view show eu.sales.big_orders`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        loaded = catalog.views.load(identifier)
    if as_json:
        print_json({"metadata-location": loaded.metadata_location, "metadata": loaded.metadata})
    else:
        print_facts(view_facts(name, loaded.metadata_location, loaded.metadata))


@commands.command("rename")
def rename_view(
    name: Name,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="Namespace and name joined by dots.")],
    uri: Uri = None,
    warehouse: WarehouseName = None,
    separator: Separator = ".",
) -> None:
    """Give a view another name, in the same namespace or another.

    For example:

    - `icetower view rename eu.sales.big_orders eu.reports.big_orders`
    """
    source, destination = identifier_from(name, separator), identifier_from(new_name, separator)
    with connected(uri, warehouse) as catalog:
        catalog.views.rename(source, destination)
    print_line(f"Renamed view {name} to {new_name}.")


@commands.command("drop")
def drop_view(
    name: Name, uri: Uri = None, warehouse: WarehouseName = None, separator: Separator = "."
) -> None:
    """Drop a view.

    For example:

    - `icetower view drop eu.sales.big_orders`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        catalog.views.drop(identifier)
    print_line(f"Dropped view {name}.")
