"""`icetower export`: tables and views become tables and views of another REST catalog."""

from __future__ import annotations

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
from app.cli.terminal.arguments import properties_from
from app.cli.terminal.connection import chosen_uri, chosen_warehouse, connected, place_name
from app.cli.terminal.options import AsJson, Separator, Uri, Warehouse, optional
from app.cli.terminal.output import warn
from app.moving.rest_source import RestSource
from app.moving.terms import Mode, Terms

DEFAULT_REPORT = Path("icetower-export.ndjson")


def export(  # noqa: PLR0917 - a command has as many arguments as it has options
    target_uri: Annotated[str, typer.Argument(metavar="URI", help="Address of the other catalog.")],
    target_warehouse: Annotated[str | None, optional("--to-warehouse", help="Its warehouse.")] = None,
    properties: Properties = None,
    unregister: Annotated[
        bool, typer.Option("--unregister", help="Let each table go here, once it is registered there.")
    ] = False,
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
    """Register tables and views in another REST catalog; no data file is read or copied.

    Without `--unregister` both catalogs have them afterwards: commits to both would undo each other, and
    either would delete files of the other one's.

    For example:

    - `icetower export http://new:8181 --to-warehouse lake --dry-run`
    - `icetower export https://new/catalog -p token=env:NEW_TOKEN --regex 'sales[.].*' --unregister`
    """
    terms = Terms(
        Mode.ADOPT if unregister else Mode.KEEP,
        choice_from(identifiers, pattern, renames, separator),
        paths_from(maps),
        frozenset(allowed or ()),
        dry_run,
    )
    if not unregister and not recheck:
        warn(
            "Both catalogs have the tables afterwards: commit to them, expire and purge them in one of them only, or "
            "use --unregister"
        )
    source_name = place_name(chosen_uri(uri), chosen_warehouse(warehouse))
    target_name = place_name(target_uri, target_warehouse)
    with (
        connected(uri, warehouse) as catalog,
        sources.rest_catalog(target_uri, target_warehouse, properties_from(properties)) as target,
    ):
        carry_out(
            RestSource(catalog, source_name),
            target,
            target_name,
            terms,
            report_file=report,
            workers=workers,
            only_recheck=recheck,
            as_json=as_json,
            separator=separator,
        )
