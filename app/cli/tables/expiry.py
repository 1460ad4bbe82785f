"""`icetower table expire`: expire old snapshots, after showing which."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from app.cli.terminal.arguments import duration_from, identifier_from, moment_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, Yes, group, optional
from app.cli.terminal.output import print_line, remark
from app.cli.terminal.previews import Preview, print_answer
from app.cli.terminal.texts import counted, moment_text, shortened
from app.client.answers import ExpiredSnapshots

SHOWN = 10


commands = group()


@commands.command("expire")
def expire_snapshots(  # noqa: PLR0917 - a command has as many arguments as it has options
    name: TableName,
    older_than: Annotated[
        str | None,
        optional(
            help="An age, like `7d` or `12h`, or a moment, like `2025-01-31` or "
            "`2025-01-31T12:00:00+01:00`. Unless given, what the table's properties say.",
        ),
    ] = None,
    retain_last: Annotated[int | None, optional(min=1, help="How many snapshots each branch keeps.")] = None,
    snapshot_id: Annotated[
        list[int] | None, optional(help="A snapshot that goes whatever its age. May be given repeatedly.")
    ] = None,
    clean_expired_metadata: Annotated[
        bool,
        typer.Option("--clean-expired-metadata", help="Remove specs and schemas that nothing uses, too."),
    ] = False,
    cleanup: Annotated[
        str, typer.Option(help="Which files are deleted: `all`, `metadata-only` or `none`.")
    ] = "all",
    grace: Annotated[
        str | None,
        optional(
            help="How long the files stay after that, like `0s` or `1d`. Unless given, the server's setting."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and stop.")] = False,
    yes: Yes = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Expire old snapshots, and delete the files that only they reached.

    What would go is shown first. Branches and tags keep their snapshots until they reach their own maximum age.

    For example:

    - `icetower table expire eu.sales.orders --dry-run`
    - `icetower table expire eu.sales.orders --older-than 7d --retain-last 5`
    """
    identifier = identifier_from(name, separator)
    asked: dict[str, Any] = {
        "older_than_ms": None if older_than is None else moment_from(older_than),
        "retain_last": retain_last,
        "snapshot_ids": snapshot_id or [],
        "clean_expired_metadata": clean_expired_metadata,
        "cleanup": _cleanup_from(cleanup),
        "grace_period_ms": None if grace is None else duration_from(grace) * 1000,
    }
    with connected(uri, warehouse) as catalog:

        def would_expire() -> ExpiredSnapshots:
            would = catalog.tables.expire(identifier, dry_run=True, **asked)
            _name_absent(name, asked, would)
            return would

        shown = Preview(
            would_expire,
            _facts,
            lambda would: f"Let {counted(len(would.snapshots), 'snapshot')} of table {name} go?",
            lambda would: f"Nothing of table {name} is to expire." if would.is_empty else None,
        ).shown(dry_run=dry_run, yes=yes, as_json=as_json)
        if shown is not None:
            # While a person thinks, more becomes old enough.
            asked["as_of_ms"] = shown.as_of_ms
        done = catalog.tables.expire(identifier, **asked)
        if shown is None:
            _name_absent(name, asked, done)
        _show(done, name, as_json=as_json)


def _name_absent(name: str, asked: dict[str, Any], expired: ExpiredSnapshots) -> None:
    """Name the snapshots that were asked for and do not go: the table has not got them."""
    absent = sorted({*asked["snapshot_ids"]} - {item.snapshot_id for item in expired.snapshots})
    if absent:
        they = "it" if len(absent) == 1 else "they"
        listed = ", ".join(shortened([str(each) for each in absent], SHOWN))
        remark(f"Table {name} has no snapshot {listed}: {they} may have expired before.")


def _show(done: ExpiredSnapshots, name: str, *, as_json: bool) -> None:
    if as_json:
        print_answer(done)
    elif done.is_empty:
        remark(f"Nothing of table {name} is to expire.")
    else:
        after = done.files_deleted_after_ms
        files = "no file is deleted" if after is None else f"files are deleted after {moment_text(after)}"
        refs = f" and {counted(len(done.refs), 'ref')}" if done.refs else ""
        print_line(f"Expired {counted(len(done.snapshots), 'snapshot')}{refs} of table {name}; {files}.")


def _facts(preview: ExpiredSnapshots) -> list[tuple[str, object]]:
    snapshots = [f"{item.snapshot_id}  {moment_text(item.timestamp_ms)}" for item in preview.snapshots]
    facts: list[tuple[str, object]] = [("snapshots", [str(len(snapshots)), *shortened(snapshots, SHOWN)])]
    for title, values in (
        ("refs", preview.refs),
        ("partition specs", preview.partition_spec_ids),
        ("schemas", preview.schema_ids),
    ):
        if values:
            facts.append((title, ", ".join(map(str, values))))
    for kind, found in (preview.files or {}).items():
        size = "" if not found.size_bytes else f"  {found.size_bytes:,} bytes"
        facts.append((kind.replace("-", " "), f"{found.count}{size}"))
    facts += [("unreadable", location) for location in preview.unreadable[:SHOWN]]
    if preview.obstacle is not None:
        facts.append(("no file is deleted", preview.obstacle))
    return facts


def _cleanup_from(text: str) -> Literal["all", "metadata-only", "none"]:
    match text:
        case "all" | "metadata-only" | "none":
            return text
    raise typer.BadParameter(f"{text!r} is not one of all, metadata-only, none")
