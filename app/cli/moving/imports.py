"""`icetower import`: tables and views of other catalogs move in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from app.cli.moving import sources
from app.cli.moving.moves import carry_out
from app.cli.moving.options import (
    Allowed,
    DryRun,
    Identifiers,
    Maps,
    Pattern,
    Properties,
    Recheck,
    Renames,
    Report,
    Workers,
    choice_from,
    paths_from,
)
from app.cli.terminal.arguments import identifier_from, namespace_from, properties_from
from app.cli.terminal.connection import chosen_uri, chosen_warehouse, connected, place_name
from app.cli.terminal.options import NAME_HELP, AsJson, Separator, Uri, Warehouse, chosen, group, optional
from app.cli.terminal.output import print_json, print_line, warn
from app.cli.terminal.rendering import print_table, shown_progress
from app.cli.terminal.texts import counted
from app.client.http.failures import CatalogUnreachable
from app.engine.model.data_types.types import PrimitiveType, parse_primitive
from app.moving.parquet_folders import (
    AppendedFolder,
    FolderPreview,
    append_new_files,
    preview_new_files,
)
from app.moving.rest_source import RestSource
from app.moving.sources import Source
from app.moving.terms import Mode, Terms

DEFAULT_REPORT = Path("icetower-import.ndjson")

commands = group(
    """Take tables and views of other catalogs in.

No data file is read or copied: the metadata file that the other catalog names is registered here. What becomes of the
entry there is the *mode*:

- `adopt`: it is dropped there, without its files. From then on the table is here alone.
- `fence`: it stays, with `icetower.moved-to` and `gc.enabled=false`. `--recheck` finds commits there all the same.
- `look-on`: the table stays there. Here it is read-only; the same command again takes over what has changed there."""
)

ModeOption = Annotated[
    Mode,
    # Keeping it as it is would be for exports.
    chosen(
        "--mode",
        among=(Mode.ADOPT, Mode.FENCE, Mode.LOOK_ON),
        help="What becomes of the entry at the source.",
    ),
]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the options say that all sources have."""

    mode: Mode
    identifiers: list[str] | None
    pattern: str | None
    renames: list[str] | None
    maps: list[str] | None
    allowed: list[str] | None
    dry_run: bool
    recheck: bool
    report: Path
    workers: int
    uri: str | None
    warehouse: str | None
    separator: str
    as_json: bool

    def run(self, source: Source) -> None:
        """Import from a source."""
        name = place_name(chosen_uri(self.uri), chosen_warehouse(self.warehouse))
        terms = Terms(
            self.mode,
            choice_from(self.identifiers, self.pattern, self.renames, self.separator),
            paths_from(self.maps),
            frozenset(self.allowed or ()),
            self.dry_run,
            moved_to=name,
        )
        with connected(self.uri, self.warehouse) as target:
            carry_out(
                source,
                target,
                name,
                terms,
                report_file=self.report,
                workers=self.workers,
                only_recheck=self.recheck,
                as_json=self.as_json,
                separator=self.separator,
            )


@commands.command("rest")
def import_rest(  # noqa: PLR0917 - a command has as many arguments as it has options
    source_uri: Annotated[str, typer.Argument(metavar="URI", help="Address of the other catalog.")],
    source_warehouse: Annotated[str | None, optional("--from-warehouse", help="Its warehouse.")] = None,
    properties: Properties = None,
    mode: ModeOption = Mode.ADOPT,
    identifiers: Identifiers = None,
    pattern: Pattern = None,
    renames: Renames = None,
    maps: Maps = None,
    allowed: Allowed = None,
    dry_run: DryRun = False,
    recheck: Recheck = False,
    report: Report = DEFAULT_REPORT,
    workers: Workers = 4,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Take in tables of another REST catalog.

    For example:

    - `icetower import rest http://old:8181 --from-warehouse lake --dry-run`
    - `icetower import rest https://old/catalog -p token=env:OLD_TOKEN --mode fence --regex 'sales[.].*'`
    """
    wanted = _Wanted(
        mode, identifiers, pattern, renames, maps, allowed, dry_run, recheck, report, workers, uri, warehouse,
        separator, as_json,
    )  # fmt: skip
    with sources.rest_catalog(source_uri, source_warehouse, properties_from(properties)) as catalog:
        wanted.run(RestSource(catalog, place_name(source_uri, source_warehouse)))


@commands.command("sql")
def import_sql(  # noqa: PLR0917 - as above
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="`sqlite:///…`, `postgresql://…`, what Java has after `jdbc:`, or `env:NAME`."
        ),
    ],
    catalog_name: Annotated[
        str | None, optional("--catalog", help="What its clients call it, if the database has several.")
    ] = None,
    mode: ModeOption = Mode.ADOPT,
    identifiers: Identifiers = None,
    pattern: Pattern = None,
    renames: Renames = None,
    maps: Maps = None,
    allowed: Allowed = None,
    dry_run: DryRun = False,
    recheck: Recheck = False,
    report: Report = DEFAULT_REPORT,
    workers: Workers = 4,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Take in tables of a SQL catalog: Java's JdbcCatalog, PyIceberg's or iceberg-rust's.

    For example:

    - `icetower import sql sqlite:///catalog.db --dry-run`
    - `icetower import sql env:CATALOG_URL --catalog prod --map s3a://lake=s3://lake`
    """
    wanted = _Wanted(
        mode, identifiers, pattern, renames, maps, allowed, dry_run, recheck, report, workers, uri, warehouse,
        separator, as_json,
    )  # fmt: skip
    with sources.sql_source(url, catalog_name) as source:
        wanted.run(source)


@commands.command("spark")
def import_spark(  # noqa: PLR0917 - as above
    catalog: Annotated[str, typer.Argument(metavar="CATALOG", help="What the catalog is called in Spark.")],
    spark: Annotated[
        str, typer.Option(help="Where Spark is: `local[*]`, `spark://…` or `sc://…`.")
    ] = "local[*]",
    confs: Annotated[
        list[str] | None,
        optional(
            "--spark-conf", metavar="KEY=VALUE", help="A setting of Spark or of the catalog; may be repeated."
        ),
    ] = None,
    mode: ModeOption = Mode.ADOPT,
    identifiers: Identifiers = None,
    pattern: Pattern = None,
    renames: Renames = None,
    maps: Maps = None,
    allowed: Allowed = None,
    dry_run: DryRun = False,
    recheck: Recheck = False,
    report: Report = DEFAULT_REPORT,
    workers: Workers = 4,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Take in tables of any catalog that Spark can mount: Hive, Glue, JDBC, hadoop and others.

    For example:

    - `icetower import spark old --spark-conf spark.sql.catalog.old.type=hive
      --spark-conf spark.sql.catalog.old.uri=thrift://metastore:9083`
    """
    wanted = _Wanted(
        mode, identifiers, pattern, renames, maps, allowed, dry_run, recheck, report, workers, uri, warehouse,
        separator, as_json,
    )  # fmt: skip
    with sources.spark_source(spark, catalog, properties_from(confs)) as source:
        wanted.run(source)


@commands.command("folder")
def import_folder(  # noqa: PLR0917 - as above
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="A table's folder, or one around those of several.")
    ],
    within: Annotated[
        str | None, optional("--namespace", help="The namespace of what lies directly in the folder.")
    ] = None,
    storage: Annotated[
        list[str] | None,
        optional(
            "--storage", metavar="KEY=VALUE", help="A storage setting, as warehouses have; may be repeated."
        ),
    ] = None,
    mode: ModeOption = Mode.ADOPT,
    identifiers: Identifiers = None,
    pattern: Pattern = None,
    renames: Renames = None,
    maps: Maps = None,
    allowed: Allowed = None,
    dry_run: DryRun = False,
    recheck: Recheck = False,
    report: Report = DEFAULT_REPORT,
    workers: Workers = 4,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Take in tables that only their metadata files are left of.

    For example:

    - `icetower import folder s3://lake/sales/orders --namespace sales --storage s3.region=eu-central-1`
    - `icetower import folder /data/hadoop-warehouse --dry-run`
    """
    wanted = _Wanted(
        mode, identifiers, pattern, renames, maps, allowed, dry_run, recheck, report, workers, uri, warehouse,
        separator, as_json,
    )  # fmt: skip
    place = None if within is None else namespace_from(within, separator)
    wanted.run(sources.folder_source(folder, properties_from(storage), place))


@commands.command("parquet")
def import_parquet(  # noqa: PLR0917 - as above
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER", help="A folder of Parquet files, or `@FILE` with one location a line."
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="TABLE", help=NAME_HELP)],
    partition_types: Annotated[
        list[str] | None,
        optional(
            "--partition-type", metavar="COLUMN=TYPE", help="The type of a column whose values are in paths."
        ),
    ] = None,
    location: Annotated[
        str | None, optional("--location", help="Where new files of the table go; the server chooses.")
    ] = None,
    storage: Annotated[
        list[str] | None,
        optional(
            "--storage", metavar="KEY=VALUE", help="A storage setting, as warehouses have; may be repeated."
        ),
    ] = None,
    dry_run: DryRun = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Make a table of Parquet files, also below folders like `day=2025-10-09`.

    The files stay where they are and belong to the table from then on: do not append them to a second one. The same
    command again appends what has come since; what the table had and let go is left out.

    For example:

    - `icetower import parquet s3://lake/raw/events lake.events --dry-run`
    - `icetower import parquet /data/events lake.events --partition-type code=string`
    """
    identifier, types = identifier_from(name, separator), _types_from(properties_from(partition_types))
    files, look = sources.parquet_files(folder, properties_from(storage), types)
    if dry_run:
        try:
            with connected(uri, warehouse) as catalog:
                preview = preview_new_files(catalog, identifier, files, look)
        except CatalogUnreachable as failure:
            warn(f"{failure}. Whether table {name} is there is not known")
            preview = FolderPreview(look(list(files)), is_there=None, left=AppendedFolder())
        _show_preview(name, len(files), preview, as_json=as_json)
        return
    with connected(uri, warehouse) as catalog, shown_progress(len(files)) as progress:
        done = append_new_files(
            catalog, identifier, files, look, location=location, listener=progress.advance
        )
    if as_json:
        counts = {"appended": done.appended, "let-go": len(done.let_go), "unsure": len(done.unsure)}
        print_json({"table": name, "files": len(files), **counts})
    else:
        print_line(f"Appended {counted(done.appended, 'file')} of {len(files)} to table {name}.")
    _warn_of_left(done)


def _show_preview(name: str, files: int, preview: FolderPreview, *, as_json: bool) -> None:
    found, left = preview.folder, preview.left
    number, shape, columns = 0, {}, list[list[str]]()
    if found is not None:
        number = len(found.files)
        shape = {"schema": found.schema.to_object(), "partitions": [*found.partitions]}
        columns = [
            [column.name, str(column.type), "yes" if column.name in found.partitions else "no"]
            for column in found.schema.fields
        ]
    if as_json:
        counts = {"let-go": len(left.let_go), "unsure": len(left.unsure)}
        print_json({"files": number, **shape, "is-there": preview.is_there, **counts})
    else:
        print_table(["column", "type", "in paths"], columns)
        of_all = f"of {files} would be appended to table {name}, which is there."
        print_line(
            f"{counted(number, 'file')} {of_all if preview.is_there else f'would become table {name}.'}"
        )
    _warn_of_left(left)


def _warn_of_left(done: AppendedFolder) -> None:
    for left, why in (
        (
            done.let_go,
            "the table has them on another branch, or staged, or had them and deleted or rewrote their rows",
        ),
        (done.unsure, "the table may have had them before, in a snapshot that has expired"),
    ):
        if left:
            warn(
                f"{counted(len(left), 'file')} left out, such as {left[0]}: {why}. "
                "`icetower table append` takes what is to be in it all the same"
            )


def _types_from(texts: dict[str, str]) -> dict[str, PrimitiveType]:
    try:
        return {name: parse_primitive(text) for name, text in texts.items()}
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
