"""`icetower table orphans`: delete files that nothing reaches, after showing which."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from app.cli.terminal.arguments import duration_from, identifier_from, moment_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, Yes, group, optional
from app.cli.terminal.output import print_json, print_line, remark
from app.cli.terminal.previews import Preview, print_answer
from app.cli.terminal.rendering import print_facts
from app.cli.terminal.texts import counted, moment_text, shortened
from app.client.answers import OrphanAnswer, OrphanRunAnswer

SHOWN = 10

commands = group()


@commands.command("orphans")
def mark_orphans(  # noqa: PLR0917 - a command has as many arguments as it has options
    name: TableName,
    older_than: Annotated[
        str | None,
        optional(
            help="Only files older than this: an age, like `7d`, or a moment, like `2025-01-31`. Unless given, 3 days."
        ),
    ] = None,
    location: Annotated[
        str | None, optional(help="A folder in the table's own places. Unless given, all of them.")
    ] = None,
    file_list: Annotated[
        str | None, optional(help="A listing in storage, in place of the server's own: see docs/orphans.md.")
    ] = None,
    grace: Annotated[
        str | None,
        optional(help="How long the files stay after that, like `1d`. Unless given, the server's setting."),
    ] = None,
    runs: Annotated[
        bool, typer.Option("--runs", help="Show what has become of files that were marked, and stop.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and stop.")] = False,
    yes: Yes = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Find files in a table's places that nothing reaches, and let them be deleted.

    They are marked now, and deleted after a waiting time if nothing reaches them then either.

    For example:

    - `icetower table orphans eu.sales.orders --dry-run`
    - `icetower table orphans eu.sales.orders --older-than 7d --yes`
    - `icetower table orphans eu.sales.orders --runs`
    """
    identifier = identifier_from(name, separator)
    asked: dict[str, Any] = {
        "older_than_ms": None if older_than is None else moment_from(older_than),
        "location": location,
        "file_list": file_list,
        "grace_period_ms": None if grace is None else duration_from(grace) * 1000,
    }
    with connected(uri, warehouse) as catalog:
        if runs:
            _show_runs(name, catalog.orphans.runs(identifier), as_json=as_json)
            return
        found = Preview(
            lambda: catalog.orphans.mark(identifier, **asked),
            _facts,
            lambda would: f"Let {counted(would.orphan_files, 'file')} of table {name} go?",
            lambda would: None if would.orphan_files else _none(name, would),
        ).shown(dry_run=dry_run, yes=yes, as_json=as_json)
        if found is not None:
            asked["older_than_ms"] = found.older_than_ms
        done = catalog.orphans.mark(identifier, dry_run=False, **asked)
        if as_json:
            print_answer(done)
        elif done.files_deleted_after_ms is None:
            remark(_none(name, done))
        else:
            after = moment_text(done.files_deleted_after_ms)
            print_line(
                f"Marked {counted(done.orphan_files, 'file')} of table {name}; they are deleted after {after}."
            )


def _none(name: str, found: OrphanAnswer) -> str:
    return f"Table {name} has no orphans among {counted(found.listed_files, 'listed file')}."


def _facts(found: OrphanAnswer) -> list[tuple[str, object]]:
    more = "" if found.is_complete else " at least"
    size = f"{found.orphan_files}{more}  {found.orphan_bytes:,} bytes"
    sample = [f"{moment_text(file.modified_ms)}  {file.location}" for file in found.sample]
    facts: list[tuple[str, object]] = [
        ("older than", moment_text(found.older_than_ms)),
        ("searched", list(found.places)),
        ("listed files", found.listed_files),
        *((f"{why.replace('-', ' ')} files", number) for why, number in found.staying_files.items()),
        ("orphans", [size, *shortened(sample, SHOWN)]),
    ]
    return facts


def _show_runs(name: str, runs: list[OrphanRunAnswer], *, as_json: bool) -> None:
    if as_json:
        print_json([run.model_dump(mode="json", by_alias=True, exclude_none=True) for run in runs])
        return
    if not runs:
        remark(f"No orphans of table {name} were marked.")
    for run in runs:
        when = "" if run.state != "queued" else f", deleted after {moment_text(run.files_deleted_after_ms)}"
        print_facts(
            [
                ("run", f"{run.run_id}  {run.state}{when}"),
                ("marked", f"{run.marked_files}  {run.marked_bytes:,} bytes  {moment_text(run.marked_ms)}"),
                ("deleted", f"{run.deleted_files}  {run.deleted_bytes:,} bytes"),
                ("kept", run.kept_files),
                *([("error", run.error)] if run.error else []),
            ]
        )
