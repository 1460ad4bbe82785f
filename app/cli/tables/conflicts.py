"""`icetower table conflicts`: checks an operation for conflicts with concurrent commits."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from app.cli.terminal.arguments import find_object, identifier_from, json_from
from app.cli.terminal.connection import connected
from app.cli.terminal.exit_statuses import WOULD_FAIL
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, group, optional
from app.cli.terminal.output import print_json, print_line
from app.cli.terminal.rendering import print_table
from app.cli.terminal.texts import counted, moment_text
from app.client.table.conflicts import ConflictAnswer

SHOWN = 20
_ABOUT = "The operation"
_about = partial(optional, panel=_ABOUT)

commands = group()


@commands.command("conflicts")
def check_conflicts(  # noqa: PLR0917 - a command has as many arguments as it has options
    name: TableName,
    kind: Annotated[
        str,
        typer.Option(
            help="`append`, `delete`, `overwrite`, `replace-partitions`, `row-delta`, `rewrite-files`, "
            "`rewrite-manifests`, `cherry-pick`, `schema`, `partition-spec` or `properties`.",
            rich_help_panel=_ABOUT,
        ),
    ],
    base: Annotated[
        int | None,
        optional(
            metavar="SNAPSHOT", help="The snapshot that it has read; leave out if the branch was empty."
        ),
    ] = None,
    branch: Annotated[str, typer.Option(help="Which branch it is for.")] = "main",
    isolation: Annotated[str | None, _about(help="`serializable`, `snapshot` or `none`.")] = None,
    filter_json: Annotated[
        str | None, _about("--filter", help="Which rows it has read, as JSON; all if left out.")
    ] = None,
    row_filter: Annotated[str | None, _about(help="Which rows it overwrites or deletes, as JSON.")] = None,
    removes: Annotated[
        list[str] | None, _about(help="A data file that it removes. May be given repeatedly.")
    ] = None,
    refers_to: Annotated[
        list[str] | None, _about(help="A data file whose rows it deletes. May be given repeatedly.")
    ] = None,
    partition: Annotated[
        list[str] | None,
        _about(
            help='A partition that it replaces, as JSON: `{"day": "2025-10-09"}`. May be given repeatedly.'
        ),
    ] = None,
    snapshot: Annotated[int | None, _about(help="The snapshot to pick.")] = None,
    more: Annotated[
        str | None,
        _about("--operation", help="Anything else, as a JSON object in the words of docs/conflicts.md."),
    ] = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Check whether an operation would conflict with what has happened since it began. Nothing is changed.

    Exit status: 0 it would not, 3 it would, 1 refused or failed, 2 wrong usage.

    For example:

    - `icetower table conflicts eu.sales.orders --kind overwrite --base 3051729675574597004 --removes s3://…/1.parquet`
    - `icetower table conflicts eu.sales.orders --kind replace-partitions --base 3051729675574597004
      --partition '{"day": "2025-10-09"}' --isolation snapshot`
    """
    identifier = identifier_from(name, separator)
    operation: dict[str, Any] = {
        "kind": kind,
        "isolation": isolation,
        "filter": json_from(filter_json, "--filter"),
        "row-filter": json_from(row_filter, "--row-filter"),
        "removed-data-files": removes,
        "referenced-data-files": refers_to,
        "partitions": [{"partition": json_from(text, "--partition")} for text in partition or ()],
        "snapshot-id": snapshot,
    }
    operation = {key: value for key, value in operation.items() if value not in (None, [])}
    others = find_object(more, "--operation") or {}
    with connected(uri, warehouse) as catalog:
        report = catalog.conflicts.check(identifier, base, {**operation, **others}, ref=branch)
    if as_json:
        print_json(report.model_dump(by_alias=True, exclude_none=True))
    else:
        _print_report(report)
    if report.would_conflict:
        raise typer.Exit(WOULD_FAIL)


def _print_report(report: ConflictAnswer) -> None:
    if not report.would_conflict:
        safe = (
            "It can be committed" if report.safe_to_reapply else "It is not known whether it can be committed"
        )
        print_line(f"No conflict. {safe} on top of {report.ref}.")
        print_line(report.reason)
        return
    least = "" if report.is_complete else "At least "
    print_line(f"{least}{counted(len(report.conflicts), 'conflict')}: it cannot be committed as it is.")
    print_line(report.reason)
    made = {item["snapshot-id"]: item for item in report.snapshots_since}
    rows = [
        [
            conflict["kind"].replace("-", " "),
            conflict.get("snapshot-id"),
            made.get(conflict.get("snapshot-id"), {}).get("operation"),
            moment_text(made.get(conflict.get("snapshot-id"), {}).get("timestamp-ms")),
            conflict.get("file-path") or conflict["message"],
        ]
        for conflict in report.conflicts[:SHOWN]
    ]
    print_table(["conflict", "with snapshot", "operation", "made at", "file"], rows)
    if len(report.conflicts) > SHOWN:
        print_line(f"… and {len(report.conflicts) - SHOWN} more; --json shows more of them.")
