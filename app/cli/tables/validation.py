"""`icetower table validate` and `validate-together`: dry runs of commits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.tables.conflict_lines import conflict_lines, requirement_text, value_text
from app.cli.tables.history import difference_lines
from app.cli.terminal.arguments import identifier_from, json_from
from app.cli.terminal.connection import connected
from app.cli.terminal.exit_statuses import WOULD_FAIL
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, group
from app.cli.terminal.output import print_json, print_line
from app.cli.terminal.rendering import print_facts, print_table
from app.cli.terminal.texts import shortened
from app.client.answers import DryRunAnswer, NewSnapshotAnswer, RefusalAnswer

_SHOWN_CONFLICTS = 10

File = Annotated[
    str,
    typer.Argument(metavar="FILE", help="A JSON file, or `-` for standard input.", show_default=False),
]

commands = group()


@commands.command("validate")
def validate_commit(
    name: TableName,
    file: File,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show what a commit would do, and write nothing.

    The file holds the commit as the protocol has it: `{"requirements": […], "updates": […]}`. The exit status is 0 if
    it would land now, and 3 if it would be refused.

    For example:

    - `icetower table validate eu.sales.orders commit.json`
    - `icetower table validate eu.sales.orders - < commit.json`
    """
    identifier = identifier_from(name, separator)
    body = _object_in(file)
    with connected(uri, warehouse) as catalog:
        dry_run = catalog.validation.validate_body(identifier, body)
    if as_json:
        print_json(dry_run.model_dump(mode="json", by_alias=True, exclude_unset=True))
    else:
        _print_dry_run(name, dry_run)
    if not dry_run.would_commit:
        raise typer.Exit(WOULD_FAIL)


@commands.command("validate-together")
def validate_transaction(
    file: File, uri: Uri = None, warehouse: Warehouse = None, as_json: AsJson = False
) -> None:
    """Show what a commit to several tables would do, and write nothing.

    The file holds the transaction as the protocol has it: `{"table-changes": […]}`.

    For example:

    - `icetower table validate-together transaction.json`
    """
    body = _object_in(file)
    with connected(uri, warehouse) as catalog:
        dry_run = catalog.validation.validate_transaction_body(body)
    if as_json:
        print_json(dry_run.model_dump(mode="json", by_alias=True, exclude_unset=True))
    else:
        refusal = dry_run.error
        print_line("Would commit." if refusal is None else f"Would be refused: {_refusal_text(refusal)}")
        for table in dry_run.tables:
            print_line("")
            _print_dry_run(".".join((*table.identifier.namespace, table.identifier.name)), table)
    if not dry_run.would_commit:
        raise typer.Exit(WOULD_FAIL)


def _object_in(file: str) -> dict[str, Any]:
    where = "standard input" if file == "-" else file
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"cannot read {where}: {error.strerror or error}") from error
    value = json_from(content, where)
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{where} does not hold a JSON object")
    return value


def _print_dry_run(name: str, dry_run: DryRunAnswer) -> None:
    print_line(_headline(name, dry_run))
    for line in conflict_lines(dry_run.conflict or {}):
        print_line(line)
    if dry_run.requirements:
        print_line("")
        rows = [
            [
                requirement_text(item.requirement),
                _result_text(item.result),
                value_text(item.expected),
                value_text(item.found),
            ]
            for item in dry_run.requirements
        ]
        print_table(["requirement", "", "expected", "found"], rows)
    if dry_run.updates:
        print_line("")
        rows = [
            [
                item.action.replace("-", " "),
                _result_text(item.result),
                item.error.message if item.error else "",
            ]
            for item in dry_run.updates
        ]
        print_table(["update", "", "why"], rows)
    facts = [*_changes(dry_run), *(fact for item in dry_run.snapshots for fact in _snapshot_facts(item))]
    if dry_run.guard:
        facts.append(("the guard says", [str(item.get("message", "")) for item in dry_run.guard]))
    if facts:
        print_line("")
        print_facts(facts)


def _headline(name: str, dry_run: DryRunAnswer) -> str:
    if dry_run.error is not None:
        return f"Table {name}: would be refused: {_refusal_text(dry_run.error)}"
    if dry_run.already_committed:
        return f"Table {name}: has this commit already; sent again, it would do nothing."
    if not dry_run.changes_table:
        return f"Table {name}: would be left as it is; there is nothing to change."
    if dry_run.rebased:
        onto = value_text(dry_run.rebased[-1].get("onto"))
        return f"Table {name}: would commit; the server would rebase it onto snapshot {onto}."
    return f"Table {name}: would commit."


def _result_text(result: str) -> str:
    return result.upper() if result in {"failed", "refused"} else result.replace("-", " ")


def _refusal_text(refusal: RefusalAnswer) -> str:
    return f"{refusal.message} ({refusal.type}, HTTP status {refusal.code})"


def _changes(dry_run: DryRunAnswer) -> list[tuple[str, object]]:
    found = dry_run.difference
    if found is None:
        return []
    lines = difference_lines(found)
    for key, sign in (("snapshots-added", "+"), ("snapshots-removed", "-")):
        ids = found["metadata"].get(key)
        if ids:
            lines.append(("snapshots", [f"{sign} {snapshot_id}" for snapshot_id in ids]))
    return [(f"would change: {what}", value) for what, value in lines]


def _snapshot_facts(item: NewSnapshotAnswer) -> list[tuple[str, object]]:
    """Return the conflicts of a new snapshot."""
    what = f"snapshot {item.snapshot_id}"
    if item.ref is not None:
        what += f" on {item.ref}"
    if item.error is not None:
        return [(what, f"conflicts are not known: {item.error.message}")]
    report = item.conflicts
    if report is None:
        return [(what, "nothing to conflict with")] if item.ref is None else []
    conflicts = report.get("conflicts", [])
    if not conflicts:
        lines = ["conflicts with nothing"]
    else:
        lines = shortened(
            [f"conflicts: {conflict.get('message', '')}" for conflict in conflicts], _SHOWN_CONFLICTS
        )
    safe = "safe to re-apply" if report.get("safe-to-reapply") else "not safe to re-apply"
    lines.append(f"{safe}: {report.get('reason', '')}")
    return [(what, lines)]
