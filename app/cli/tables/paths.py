"""`icetower table rewrite-paths`: a copy of a table's metadata for another place."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from app.cli.terminal.arguments import identifier_from, properties_from
from app.cli.terminal.connection import chosen_uri, chosen_warehouse, connected
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, group, optional
from app.cli.terminal.output import print_json, print_line, warn
from app.cli.terminal.rendering import print_facts
from app.engine.model.ids import Location
from app.errors import IcetowerError
from app.maintenance.path_rewrite import RewrittenPaths, rewrite_paths
from app.maintenance.spark.mounted_catalogs import rest_properties
from app.maintenance.spark.procedures import JobRefused
from app.maintenance.spark.spark_failures import SparkFailure
from app.maintenance.spark.spark_runtime import SparkMissing
from app.maintenance.spark.spark_sessions import SparkSessions
from app.maintenance.spark_jobs import settings_apart
from app.maintenance.staged_copies import PathChange

commands = group()


@commands.command("rewrite-paths")
def rewrite_table_paths(  # noqa: PLR0917 - a command has as many arguments as it has options
    name: TableName,
    to: Annotated[str, typer.Option("--to", metavar="PREFIX", help="Where its files will be.")],
    spark: Annotated[
        str,
        typer.Option("--spark", metavar="URL", help="Where Spark is: `local[*]`, `spark://…` or `sc://…`."),
    ],
    source: Annotated[
        str | None,
        optional("--from", metavar="PREFIX", help="Where they are. Unless given, the table's location."),
    ] = None,
    staging: Annotated[
        str | None,
        optional(
            "--staging", metavar="PLACE", help="Where the copy is written. Unless given, beside its metadata."
        ),
    ] = None,
    since: Annotated[
        list[str] | None,
        optional(
            "--since",
            metavar="LIST",
            help="The list of files of an earlier run, if all of them are copied: only what came since is listed. "
            "Repeatable.",
        ),
    ] = None,
    spark_conf: Annotated[
        list[str] | None,
        optional(
            "--spark-conf",
            metavar="KEY=VALUE",
            help="A setting of Spark, or catalog.KEY=VALUE: a property of its catalog. Repeatable.",
        ),
    ] = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Write a copy of a table's metadata with other paths, and a list of the files to copy.

    The table is not changed, and no data is copied: that and the registration are yours to do. What was written is
    compared with the table; the exit status is 1 if it says something else.

    For example:

    - `icetower table rewrite-paths eu.sales.orders --to s3://new/sales/orders --spark 'local[*]'`
    - `icetower table rewrite-paths eu.sales.orders --to s3://new/sales/orders --spark 'local[*]' --since s3://old/…/file-list-mended`
    """
    identifier = identifier_from(name, separator)
    of_spark, of_catalog = settings_apart(properties_from(spark_conf))
    mounted_at = rest_properties(chosen_uri(uri), chosen_warehouse(warehouse), of_catalog)
    with connected(uri, warehouse) as catalog, closing(SparkSessions(spark, of_spark)) as sessions:
        location = source or str(catalog.tables.load(identifier).metadata["location"])
        change = PathChange(location.rstrip("/"), to.rstrip("/"))
        chosen = None if staging is None else Location(staging)
        try:
            found = rewrite_paths(
                catalog,
                sessions.open,
                identifier,
                change,
                staging=chosen,
                copied=[Location(each) for each in since or ()],
                spark_catalog=mounted_at,
            )
        except (JobRefused, SparkMissing) as refused:
            warn(str(refused))
            raise typer.Exit(1) from refused
        except IcetowerError as unread:
            warn(f"What was staged could not be read, and must not be used: {unread}")
            raise typer.Exit(1) from unread
    if isinstance(found, SparkFailure):
        warn(f"Spark could not do it: {found.message}")
        raise typer.Exit(1)
    _show(found, change, as_json=as_json)
    if found.copy.flaws:
        raise typer.Exit(1)


def _show(found: RewrittenPaths, change: PathChange, *, as_json: bool) -> None:
    copy = found.copy
    if as_json:
        print_json(
            {
                "file-list": copy.file_list,
                "files": copy.files,
                "metadata-location": found.metadata_location,
                "mended-manifest-lists": copy.mended,
                "iceberg-version": found.iceberg_version,
                "flaws": list(copy.flaws),
            }
        )
        return
    for flaw in copy.flaws:
        warn(f"WRONG: {flaw}")
    if copy.flaws:
        warn("THE COPY DOES NOT SAY WHAT THE TABLE SAYS. DO NOT USE IT.")
        return
    print_facts(
        [
            ("files to copy", copy.files),
            ("listed as from,to in", copy.file_list),
            ("manifest lists mended", copy.mended),
            ("then register", found.metadata_location),
        ]
    )
    print_line(
        f"Paths below {change.source} have become those below {change.target}; the table is as it was."
    )
