"""The options of the commands that run here and call no server.

The modules behind them need the web framework, the database drivers and the settings. Importing those takes longer than
a call to a server, so a command imports its module when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.server.demo import run_demo
from app.cli.terminal.options import AsJson, Separator, Yes, group, optional

_PANEL = "Server"

ConfigFile = Annotated[
    Path | None,
    optional("--config", help="Settings file; icetower.toml or ICETOWER_CONFIG otherwise."),
]
DatabaseUrl = Annotated[
    str | None,
    optional(
        "--database-url",
        # What is in angle brackets outside of code is HTML to Markdown, and not shown.
        help="`sqlite:///<path>` or `postgresql://<user>@<host>/<database>`. "
        "Give passwords in ICETOWER_DATABASE_URL.",
    ),
]

commands = group()
config_commands = group("Look at the settings.")
commands.add_typer(config_commands, name="config", rich_help_panel=_PANEL)


@commands.command("serve", rich_help_panel=_PANEL)
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0 takes a free one.", show_default="8181")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Server processes.", show_default="1")] = None,
    database_url: DatabaseUrl = None,
    default_warehouse_location: Annotated[
        str | None,
        typer.Option(help="Folder or URI of the default warehouse.", show_default="./.icetower/warehouse"),
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(help="debug, info, warning or error.", show_default="info")
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Run the catalog server until it is stopped.

    Settings that are not options here come from ICETOWER_* variables, `.env` and icetower.toml; see
    `icetower config show`.

    For example:

    - `icetower serve`
    - `icetower serve --port 9000 --workers 4`
    - `icetower serve --database-url postgresql://tower@db/tower --default-warehouse-location s3://lake/wh`
    """
    flags = {
        "host": host,
        "port": port,
        "workers": workers,
        "database_url": database_url,
        "default_warehouse_location": default_warehouse_location,
        "log_level": log_level,
    }
    from app.cli.server.processes import run_server

    run_server(flags, config)


@commands.command("migrate", rich_help_panel=_PANEL)
def migrate(
    to: Annotated[str, typer.Option("--to", metavar="REVISION", help="Revision to go to.")] = "head",
    down: Annotated[
        bool, typer.Option("--down", help="Go down to REVISION instead of up; `base` removes every table.")
    ] = False,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Bring the database to the revision that this version of Icetower works with.

    A SQLite database is brought there by `icetower serve` itself; a Postgres database only by this command.

    For example:

    - `icetower migrate`
    - `icetower migrate --down --to 0001`
    """
    from app.cli.server.migration import run_migration

    run_migration({"database_url": database_url}, config, revision=to, is_down=down, as_json=as_json)


@config_commands.command("show")
def show_config(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Show every setting in force and where it comes from. Secrets are masked.

    For example:

    - `icetower config show`
    - `ICETOWER_PORT=9000 icetower config show --json`
    """
    from app.cli.server.configuration import print_settings

    print_settings(config, as_json=as_json)


@commands.command(
    "demo",
    rich_help_panel=_PANEL,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def demo(context: typer.Context) -> None:
    """Run the flights demo: Spark, PyIceberg and DuckDB on one catalog, step by step.

    It needs a source tree of Icetower with the `demo` extra installed, and Java 17. Options are the demo's own.
    """
    run_demo(context.args)


@commands.command("rebuild", rich_help_panel=_PANEL)
def rebuild(
    *,
    warehouse: Annotated[
        str | None,
        optional("--warehouse", help="Which warehouse; the default one of the settings otherwise."),
    ] = None,
    root: Annotated[
        str | None, optional("--root", help="Its root location, if the database does not have the warehouse.")
    ] = None,
    storage: Annotated[
        list[str] | None,
        optional("--storage", metavar="KEY=VALUE", help="How its files are reached, if it is to be created."),
    ] = None,
    export: Annotated[
        str | None,
        optional("--export", help="Where names come from; the newest export in the warehouse otherwise."),
    ] = None,
    no_export: Annotated[bool, typer.Option("--no-export", help="Take names from locations only.")] = False,
    likely: Annotated[
        bool, typer.Option("--likely", help="Also take files that are the newest only in all likelihood.")
    ] = False,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="Also bring back what was found but seems to have been dropped.")
    ] = False,
    namespace: Annotated[
        str, typer.Option("--namespace", help="For tables whose location names no namespace.")
    ] = "rebuilt",
    separator: Separator = ".",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Make names and pointers anew from a warehouse's files, for a lost or old database.

    It shows what it has found and asks before it changes anything. Pointers only move forward; it may be run again at
    any time. With `--json`, each line is one document.

    For example:

    - `icetower rebuild --dry-run`
    - `icetower rebuild --warehouse lake --root s3://lake/warehouse --storage s3.region=eu-central-1`
    - `icetower rebuild --yes --likely --json`
    """
    from app.cli.server.rebuilding import RebuildOptions, run_rebuild

    options = RebuildOptions(
        warehouse=warehouse,
        root=root,
        storage=storage or [],
        export=export,
        no_export=no_export,
        likely=likely,
        dropped=dropped,
        namespace=namespace,
        separator=separator,
        is_dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )
    run_rebuild({"database_url": database_url}, config, options)


@commands.command("backup", rich_help_panel=_PANEL)
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new file; nothing may be there yet.")],
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Copy the SQLite database to a new file while servers use it.

    The copy is one state of the database, checked and safely on disk when the command ends. A Postgres database is
    saved with pg_dump.

    For example:

    - `icetower backup /backups/icetower-monday.db`
    """
    from app.cli.server.backing_up import run_backup

    run_backup({"database_url": database_url}, config, file, as_json=as_json)
