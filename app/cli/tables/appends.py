"""`icetower table append`: data files that are in storage become a part of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.terminal.arguments import find_object, identifier_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, group, optional
from app.cli.terminal.output import print_json, print_line
from app.cli.terminal.texts import counted

commands = group()


@commands.command("append")
def append_files(  # noqa: PLR0917 - a command has as many arguments as it has options
    name: TableName,
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Locations of Parquet files.")],
    branch: Annotated[str, typer.Option(help="Which branch.")] = "main",
    partition: Annotated[
        str | None,
        optional(metavar="JSON", help="Partition values of all the files; what is left out is derived."),
    ] = None,
    partition_from_path: Annotated[
        bool, typer.Option("--partition-from-path", help="Read them from folders like `day=2025-10-09`.")
    ] = False,
    allow_duplicates: Annotated[
        bool, typer.Option("--allow-duplicates", help="Append files that the branch has already, too.")
    ] = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Append Parquet files that are in storage already, in one commit.

    For example:

    - `icetower table append eu.sales.orders s3://lake/orders/in/1.parquet s3://lake/orders/in/2.parquet`
    - `icetower table append eu.sales.orders s3://lake/orders/in/3.parquet --partition '{"region":"eu"}'`
    """
    identifier = identifier_from(name, separator)
    values = find_object(partition, "the partition")
    wanted = [{"file-path": file, "partition": values} if values else {"file-path": file} for file in files]
    with connected(uri, warehouse) as catalog:
        added = catalog.appends.append(
            identifier,
            wanted,
            branch=branch,
            allow_duplicates=allow_duplicates,
            partition_from_path=partition_from_path,
        )
    if as_json:
        print_json(added.model_dump(by_alias=True))
        return
    what = counted(added.added_data_files, "file")
    rows = counted(added.added_records, "row")
    print_line(
        f"Appended {what} with {rows} to {added.branch} of table {name} as snapshot {added.snapshot_id}."
    )
