"""`icetower table validate` and `validate-together`: what a commit would do, before it is tried."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.collisions import collision_lines, requirement_text, value_text
from app.cli.connecting import connected
from app.cli.history import difference_lines
from app.cli.names import identifier_from
from app.cli.options import AsJson, Separator, Uri, WarehouseName
from app.cli.printing import print_facts, print_json, print_line, print_table
from app.client.answers import CommitVerdict, NewSnapshotAnswer, RefusalAnswer

WOULD_BE_REFUSED = 3
"""Exit status; 1 says that the question itself was refused."""
_SHOWN_CONFLICTS = 10

File = Annotated[
    str,
    typer.Argument(metavar="FILE", help="A JSON file, or `-` for standard input.", show_default=False),
]


def add_to(commands: typer.Typer) -> None:
    """Put these commands among those of `icetower table`."""
    commands.command("validate")(validate_commit)
    commands.command("validate-together")(validate_transaction)


def validate_commit(
    name: Annotated[str, typer.Argument(metavar="TABLE", help="Namespace and name joined by dots.")],
    file: File,
    uri: Uri = None,
    warehouse: WarehouseName = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Tell what a commit would do, and write nothing.

    The file holds the commit as the protocol has it: `{"requirements": […], "updates": […]}`. The exit status is 0 if
    it would land now, and 3 if it would be refused.

    For example:

    - `icetower table validate eu.sales.orders commit.json`
    - `jq '.requirements = []' commit.json | icetower table validate eu.sales.orders -`
    """
    identifier = identifier_from(name, separator)
    body = _object_in(file)
    with connected(uri, warehouse) as catalog:
        verdict = catalog.validation.validate_body(identifier, body)
    if as_json:
        print_json(_as_sent(verdict))
    else:
        _print_verdict(name, verdict)
    _leave(would_commit=verdict.would_commit)


def validate_transaction(
    file: File,
    uri: Uri = None,
    warehouse: WarehouseName = None,
    as_json: AsJson = False,
) -> None:
    """Tell what a commit to several tables would do, and write nothing.

    The file holds the transaction as the protocol has it: `{"table-changes": […]}`.

    For example:

    - `icetower table validate-together transaction.json`
    """
    body = _object_in(file)
    with connected(uri, warehouse) as catalog:
        verdict = catalog.validation.validate_transaction_body(body)
    if as_json:
        print_json(_as_sent(verdict))
    else:
        refusal = verdict.error
        print_line("Would commit." if refusal is None else f"Would be refused: {_refusal_text(refusal)}")
        for table in verdict.tables:
            print_line("")
            _print_verdict(".".join((*table.identifier.namespace, table.identifier.name)), table)
    _leave(would_commit=verdict.would_commit)


def _leave(*, would_commit: bool) -> None:
    if not would_commit:
        raise typer.Exit(WOULD_BE_REFUSED)


def _object_in(file: str) -> dict[str, Any]:
    where = "standard input" if file == "-" else file
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        value = json.loads(content)
    except OSError as error:
        raise typer.BadParameter(f"cannot read {where}: {error.strerror or error}") from error
    except ValueError as error:
        raise typer.BadParameter(f"{where} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{where} does not hold a JSON object")
    return value


def _as_sent(verdict: CommitVerdict | Any) -> dict[str, Any]:
    sent: dict[str, Any] = verdict.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return sent


def _print_verdict(name: str, verdict: CommitVerdict) -> None:
    print_line(_headline(name, verdict))
    for line in collision_lines(verdict.conflict or {}):
        print_line(line)
    if verdict.requirements:
        print_line("")
        print_table(
            ["requirement", "", "expected", "found"],
            [
                [
                    requirement_text(item.requirement),
                    item.result.upper() if item.result == "failed" else item.result.replace("-", " "),
                    value_text(item.expected),
                    value_text(item.found),
                ]
                for item in verdict.requirements
            ],
        )
    if verdict.updates:
        print_line("")
        print_table(
            ["update", "", "why"],
            [
                [
                    item.action.replace("-", " "),
                    item.result.upper() if item.result == "refused" else item.result.replace("-", " "),
                    item.error.message if item.error else "",
                ]
                for item in verdict.updates
            ],
        )
    facts = [*_changes(verdict), *(fact for item in verdict.snapshots for fact in _snapshot_facts(item))]
    if verdict.guard:
        facts.append(("the guard says", [str(item.get("message", "")) for item in verdict.guard]))
    if facts:
        print_line("")
        print_facts(facts)


def _headline(name: str, verdict: CommitVerdict) -> str:
    if verdict.error is not None:
        return f"Table {name}: would be refused: {_refusal_text(verdict.error)}"
    if verdict.already_committed:
        return f"Table {name}: has this commit already; sent again, it would do nothing."
    if not verdict.changes_table:
        return f"Table {name}: would be left as it is; there is nothing to change."
    return f"Table {name}: would commit."


def _refusal_text(refusal: RefusalAnswer) -> str:
    return f"{refusal.message} ({refusal.type}, HTTP status {refusal.code})"


def _changes(verdict: CommitVerdict) -> list[tuple[str, object]]:
    found = verdict.difference
    if found is None:
        return []
    lines = difference_lines(found)
    for key, sign in (("snapshots-added", "+"), ("snapshots-removed", "-")):
        ids = found["metadata"].get(key)
        if ids:
            lines.append(("snapshots", [f"{sign} {snapshot_id}" for snapshot_id in ids]))
    return [(f"would change: {what}", value) for what, value in lines]


def _snapshot_facts(item: NewSnapshotAnswer) -> list[tuple[str, object]]:
    """Return what a new snapshot collides with."""
    what = f"snapshot {item.snapshot_id}"
    if item.ref is not None:
        what += f" on {item.ref}"
    if item.error is not None:
        return [(what, f"conflicts cannot be told: {item.error.message}")]
    report = item.conflicts
    if report is None:
        return [(what, "nothing to collide with")] if item.ref is None else []
    conflicts = report.get("conflicts", [])
    if not conflicts:
        lines = ["collides with nothing"]
    else:
        lines = [f"collides: {conflict.get('message', '')}" for conflict in conflicts[:_SHOWN_CONFLICTS]]
        if len(conflicts) > _SHOWN_CONFLICTS:
            lines.append(f"… and {len(conflicts) - _SHOWN_CONFLICTS} more")
    safe = "safe to re-apply" if report.get("safe-to-reapply") else "not safe to re-apply"
    lines.append(f"{safe}: {report.get('reason', '')}")
    return [(what, lines)]
