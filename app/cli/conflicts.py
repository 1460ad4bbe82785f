"""`icetower table conflicts`: would an operation collide with what has happened since it was begun."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from app.cli.connecting import connected
from app.cli.names import identifier_from
from app.cli.options import AsJson, Separator, Uri, WarehouseName
from app.cli.printing import moment, print_json, print_line, print_table
from app.client.conflicts import ConflictReport

WOULD_CONFLICT = 3
"""The exit status of an answer that is yes: neither done, nor refused, nor wrong usage."""
SHOWN = 20
_ABOUT = "The operation"


def check_conflicts(  # noqa: PLR0917 - a command has as many arguments as it has options
    name: Annotated[str, typer.Argument(metavar="TABLE", help="Namespace and name joined by dots.")],
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            help="`append`, `delete`, `overwrite`, `replace-partitions`, `row-delta`, `rewrite-files`, "
            "`rewrite-manifests`, `cherry-pick`, `schema`, `partition-spec` or `properties`.",
            rich_help_panel=_ABOUT,
        ),
    ],
    base: Annotated[
        int | None,
        typer.Option(
            "--base",
            metavar="SNAPSHOT",
            help="What it has read; leave out if the branch was empty.",
            show_default=False,
        ),
    ] = None,
    branch: Annotated[str, typer.Option("--branch", help="Which branch it is for.")] = "main",
    isolation: Annotated[
        str | None,
        typer.Option(
            "--isolation",
            help="`serializable`, `snapshot` or `none`.",
            rich_help_panel=_ABOUT,
            show_default=False,
        ),
    ] = None,
    filter_json: Annotated[
        str | None,
        typer.Option(
            "--filter",
            help="Which rows it has read, as JSON; all if left out.",
            rich_help_panel=_ABOUT,
            show_default=False,
        ),
    ] = None,
    row_filter: Annotated[
        str | None,
        typer.Option(
            "--row-filter",
            help="Which rows it overwrites or deletes, as JSON.",
            rich_help_panel=_ABOUT,
            show_default=False,
        ),
    ] = None,
    removes: Annotated[
        list[str] | None,
        typer.Option(
            "--removes", help="A data file that it removes. May be given repeatedly.", rich_help_panel=_ABOUT
        ),
    ] = None,
    refers_to: Annotated[
        list[str] | None,
        typer.Option(
            "--refers-to",
            help="A data file whose rows it deletes. May be given repeatedly.",
            rich_help_panel=_ABOUT,
        ),
    ] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(
            "--partition",
            help='A partition that it replaces, as JSON: `{"day": "2025-10-09"}`. May be given repeatedly.',
            rich_help_panel=_ABOUT,
        ),
    ] = None,
    snapshot: Annotated[
        int | None,
        typer.Option("--snapshot", help="The snapshot to pick.", rich_help_panel=_ABOUT, show_default=False),
    ] = None,
    more: Annotated[
        str | None,
        typer.Option(
            "--operation",
            help="Anything else about it, as a JSON object in the words of docs/conflicts.md.",
            rich_help_panel=_ABOUT,
            show_default=False,
        ),
    ] = None,
    uri: Uri = None,
    warehouse: WarehouseName = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Tell whether an operation would collide with what has happened since it was begun. Nothing is changed.

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
        "filter": _json_from(filter_json, "--filter"),
        "row-filter": _json_from(row_filter, "--row-filter"),
        "removed-data-files": removes,
        "referenced-data-files": refers_to,
        "partitions": [{"partition": _json_from(text, "--partition")} for text in partition or ()],
        "snapshot-id": snapshot,
    }
    operation = {key: value for key, value in operation.items() if value not in (None, [])}
    others = _json_from(more, "--operation")
    if others is not None and not isinstance(others, dict):
        raise typer.BadParameter("--operation is not a JSON object")
    with connected(uri, warehouse) as catalog:
        report = catalog.conflicts.check(identifier, base, {**operation, **(others or {})}, ref=branch)
    if as_json:
        print_json(report.model_dump(by_alias=True, exclude_none=True))
    else:
        _tell(report)
    if report.would_conflict:
        raise typer.Exit(WOULD_CONFLICT)


def _json_from(text: str | None, option: str) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option} is not JSON: {error}") from error


def _tell(report: ConflictReport) -> None:
    if not report.would_conflict:
        safe = "It can be committed" if report.safe_to_reapply else "Nobody knows whether it can be committed"
        print_line(f"No conflict. {safe} on top of {report.ref}.")
        print_line(report.reason)
        return
    count = f"{len(report.conflicts)} conflicts" if len(report.conflicts) > 1 else "1 conflict"
    print_line(f"{'At least ' if not report.is_complete else ''}{count}: it cannot be committed as it is.")
    print_line(report.reason)
    made = {item["snapshot-id"]: item for item in report.snapshots_since}
    rows = [
        [
            conflict["kind"].replace("-", " "),
            conflict.get("snapshot-id"),
            made.get(conflict.get("snapshot-id"), {}).get("operation"),
            moment(made.get(conflict.get("snapshot-id"), {}).get("timestamp-ms")),
            conflict.get("file-path") or conflict["message"],
        ]
        for conflict in report.conflicts[:SHOWN]
    ]
    print_table(["conflict", "with snapshot", "operation", "made at", "file"], rows)
    if len(report.conflicts) > SHOWN:
        print_line(f"… and {len(report.conflicts) - SHOWN} more; --json shows more of them.")
