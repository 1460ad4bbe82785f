"""`icetower warehouse`: list, create, show, update and drop warehouses, and their health."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Annotated

import typer

from app.cli.health_lines import OVERVIEW_COLUMNS, overview_row, severities_line, urgency, waiting_line
from app.cli.terminal.arguments import properties_from
from app.cli.terminal.connection import connected, management
from app.cli.terminal.options import AsJson, Uri, group
from app.cli.terminal.output import print_json, print_json_list, print_line, remark, warn
from app.cli.terminal.rendering import print_facts, print_table
from app.cli.terminal.texts import property_lines
from app.client.request_parts import JsonObject
from app.client.warehouses import SettingKind, WarehouseAnswer

commands = group(
    """List, create, show, update and drop warehouses.

A warehouse is a root location with its own namespaces and tables. Clients choose one by its name
(`warehouse=<name>` in Spark, PyIceberg, DuckDB); without a name they get the server's default one."""
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The warehouse's name.")]
_pairs = partial(typer.Option, metavar="KEY=VALUE")
_removed = partial(typer.Option, metavar="KEY", help="A key to remove; may be repeated.")
Defaults = Annotated[
    list[str] | None, _pairs("--default", help="What clients receive unless they set it themselves.")
]
Overrides = Annotated[
    list[str] | None, _pairs("--override", help="What clients receive whatever they set themselves.")
]
Storage = Annotated[
    list[str] | None,
    _pairs(
        "--storage",
        help="How the server reaches the files; a value env:NAME is read from the server's environment.",
    ),
]


@commands.command("list")
def list_warehouses(uri: Uri = None, as_json: AsJson = False) -> None:
    """List all warehouses.

    For example:

    - `icetower warehouse list`
    """
    with management(uri) as warehouses:
        found = warehouses.list()
        if as_json:
            print_json_list(warehouse.model_dump(by_alias=True) for warehouse in found)
        else:
            print_table(["warehouse", "location"], ([item.name, item.root_location] for item in found))


@commands.command("create")
def create_warehouse(
    name: Name,
    location: Annotated[
        str,
        typer.Argument(
            metavar="LOCATION",
            help="Its root: s3://bucket/path, gs://…, abfss://…, or a folder of the server, /path.",
        ),
    ],
    defaults: Defaults = None,
    overrides: Overrides = None,
    storage: Storage = None,
    layout: Annotated[
        str | None,
        typer.Option(
            help="hadoop: its tables are the folders below its root, as Spark's hadoop catalog has them."
        ),
    ] = None,
    uri: Uri = None,
) -> None:
    """Create a warehouse.

    For example:

    - `icetower warehouse create files /lake/tables --layout hadoop`

    - `icetower warehouse create lake s3://lake/warehouse --default s3.endpoint=http://store:9000
      --storage s3.endpoint=http://store:9000 --storage s3.access-key-id=env:ICETOWER_SECRET_KEY
      --storage s3.secret-access-key=env:ICETOWER_SECRET_STORE`
    """
    with management(uri) as warehouses:
        made = warehouses.create(
            name,
            # As the server does with its own default: to Hadoop readers a bare path means another file system.
            f"file://{location}" if location.startswith("/") else location,
            default_properties=properties_from(defaults),
            override_properties=properties_from(overrides),
            storage=properties_from(storage),
            layout=layout,
        )
    print_line(f"Created warehouse {made.name} at {made.root_location}.")


@commands.command("show")
def show_warehouse(name: Name, uri: Uri = None, as_json: AsJson = False) -> None:
    """Show a warehouse; secrets are masked.

    For example:

    - `icetower warehouse show lake`
    """
    with management(uri) as warehouses:
        found = warehouses.load(name)
    if as_json:
        print_json(found.model_dump(by_alias=True))
    else:
        print_facts(_facts(found))


@commands.command("update")
def update_warehouse(
    name: Name,
    defaults: Defaults = None,
    overrides: Overrides = None,
    storage: Storage = None,
    default_removals: Annotated[list[str] | None, _removed("--remove-default")] = None,
    override_removals: Annotated[list[str] | None, _removed("--remove-override")] = None,
    storage_removals: Annotated[list[str] | None, _removed("--remove-storage")] = None,
    uri: Uri = None,
) -> None:
    """Set and remove single properties and storage settings of a warehouse; all others stay.

    For example:

    - `icetower warehouse update lake --default icetower.protected=true`

    - `icetower warehouse update lake --default s3.endpoint=https://store.example --remove-override clients`
    """
    updates: dict[SettingKind, dict[str, str]] = {
        "default-properties": properties_from(defaults),
        "override-properties": properties_from(overrides),
        "storage": properties_from(storage),
    }
    removals: dict[SettingKind, list[str]] = {
        "default-properties": default_removals or [],
        "override-properties": override_removals or [],
        "storage": storage_removals or [],
    }
    if not any(updates.values()) and not any(removals.values()):
        raise typer.BadParameter(
            "nothing to change: give --default, --override or --storage KEY=VALUE, or --remove-default, "
            "--remove-override or --remove-storage KEY"
        )
    with management(uri) as warehouses:
        updated = warehouses.update(name, updates=updates, removals=removals)
    print_facts(_facts(updated))


@commands.command("drop")
def drop_warehouse(name: Name, uri: Uri = None) -> None:
    """Drop an empty warehouse.

    For example:

    - `icetower warehouse drop lake`
    """
    with management(uri) as warehouses:
        warehouses.drop(name)
    print_line(f"Dropped warehouse {name}.")


@commands.command("health")
def warehouse_health(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            envvar="ICETOWER_WAREHOUSE",
            show_envvar=False,
            help="The warehouse; that of ICETOWER_WAREHOUSE, or the server's default one, if left out.",
        ),
    ] = None,
    most: Annotated[int, typer.Option("--tables", min=1, help="How many tables are shown.")] = 50,
    uri: Uri = None,
    as_json: AsJson = False,
) -> None:
    """Show how healthy the tables of a warehouse are, the worst first.

    Only metadata files and manifest lists are read. `icetower table health` says more of one table.

    For example:

    - `icetower warehouse health`
    - `icetower warehouse health lake --tables 10`
    """
    worst: list[JsonObject] = []
    waiting: list[JsonObject] = []
    numbers = Counter[str]()
    with connected(uri, name) as catalog:
        for page in catalog.health.warehouse():
            # Only what is shown is kept: a warehouse may have very many tables.
            worst = sorted([*worst, *page.tables], key=urgency)[:most]
            waiting += page.waiting_deletions
            numbers.update(table["severity"] for table in page.tables)
    if as_json:
        print_json({"tables": worst, **({"waiting-deletions": waiting} if waiting else {})})
        return
    for deletion in waiting:
        warn(waiting_line(deletion))
    if not worst:
        remark("No tables yet.")
        return
    print_table(OVERVIEW_COLUMNS, [overview_row(table) for table in worst])
    remark(severities_line(numbers))


def _facts(warehouse: WarehouseAnswer) -> list[tuple[str, object]]:
    return [
        ("warehouse", warehouse.name),
        ("location", warehouse.root_location),
        ("layout", warehouse.layout),
        ("defaults", property_lines(warehouse.default_properties)),
        ("overrides", property_lines(warehouse.override_properties)),
        ("storage", property_lines(warehouse.storage)),
    ]
