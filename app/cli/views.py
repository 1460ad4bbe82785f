"""`icetower view`: list, show, rename, register, unregister and drop views."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.metadata_facts import view_facts
from app.cli.named import NamedKind, named_group
from app.cli.terminal.arguments import identifier_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import NAME_HELP, Separator, Uri, Warehouse
from app.cli.terminal.output import print_line

commands = named_group(
    NamedKind(
        noun="view",
        example="eu.sales.big_orders",
        shown="its SQL, columns and properties",
        calls=lambda catalog: catalog.views,
        facts=view_facts,
    ),
    """List, show, rename, register, unregister and drop views.

A view is written `namespace.view`. For names that contain dots choose another separator:
`icetower view show eu.west/orders --separator /`. Views are created by Spark, Trino, PyIceberg and others.""",
)


@commands.command("drop")
def drop_view(
    name: Annotated[str, typer.Argument(metavar="VIEW", help=NAME_HELP)],
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
) -> None:
    """Drop a view.

    For example:

    - `icetower view drop eu.sales.big_orders`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        catalog.views.drop(identifier)
    print_line(f"Dropped view {name}.")
