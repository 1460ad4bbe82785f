"""`icetower table refs`, `set-ref`, `drop-ref` and `rollback`: branches and tags."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from app.cli.terminal.arguments import find_iso_ms, identifier_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, group, optional
from app.cli.terminal.output import print_json, print_line, remark
from app.cli.terminal.rendering import print_table
from app.cli.terminal.texts import exact_moment_text
from app.client.answers import RefAnswer, RefReceipt
from app.client.request_parts import given

Ref = Annotated[str, typer.Argument(metavar="REF", help="The name of the branch or tag.")]
Expected = Annotated[
    int | None,
    optional("--expect", metavar="SNAPSHOT", help="Do nothing unless it is at this snapshot now."),
]
_where = partial(optional, panel="Where to")

commands = group()


@commands.command("refs")
def show_refs(
    name: TableName,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """List the branches and tags of a table.

    For example:

    - `icetower table refs eu.sales.orders`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        found = catalog.refs.list(identifier)
    if as_json:
        print_json([ref.model_dump(by_alias=True) for ref in found])
    elif found:
        print_table(["name", "type", "snapshot", "made at", "retention"], [_ref_cells(ref) for ref in found])
    else:
        remark(f"Table {name} has no branches and tags yet.")


def _ref_cells(ref: RefAnswer) -> list[object]:
    facts = ref.model_extra or {}
    settings = ("min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")
    retention = ", ".join(f"{key} {facts[key]}" for key in settings if key in facts)
    return [ref.name, ref.type, ref.snapshot_id, exact_moment_text(facts.get("timestamp-ms")), retention]


@commands.command("set-ref")
def set_ref(
    name: TableName,
    ref: Ref,
    *,
    snapshot: Annotated[int | None, _where(help="This snapshot.")] = None,
    to: Annotated[str | None, _where(help="Where another branch or tag is.")] = None,
    fast_forward_to: Annotated[str | None, _where(help="Ahead, to a branch or tag.")] = None,
    cherry_pick: Annotated[int | None, _where(help="Ahead, by the changes of a snapshot.")] = None,
    publish: Annotated[
        str | None, _where(help="Ahead, by the changes that were staged under this wap.id.")
    ] = None,
    tag: Annotated[
        bool, typer.Option("--tag", help="Make it a tag; a new one is a branch otherwise.")
    ] = False,
    min_snapshots_to_keep: Annotated[
        int | None,
        typer.Option(show_default=False, help="How many snapshots of the branch stay at least."),
    ] = None,
    max_snapshot_age_ms: Annotated[
        int | None,
        typer.Option(
            show_default=False, help="How old snapshots of the branch become before they may expire."
        ),
    ] = None,
    max_ref_age_ms: Annotated[
        int | None,
        typer.Option(show_default=False, help="How old the branch or tag itself becomes before it may go."),
    ] = None,
    expected: Expected = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Make or move a branch or tag, or change its retention. A new one starts at the head of main.

    For example:

    - `icetower table set-ref eu.sales.orders audit`
    - `icetower table set-ref eu.sales.orders end-of-year --tag --max-ref-age-ms 31536000000`
    - `icetower table set-ref eu.sales.orders main --fast-forward-to audit`
    - `icetower table set-ref eu.sales.orders main --cherry-pick 3051729675574597004`
    """
    identifier = identifier_from(name, separator)
    where = {
        "snapshot-id": ("--snapshot", snapshot),
        "ref": ("--to", to),
        "fast-forward-to": ("--fast-forward-to", fast_forward_to),
        "cherry-pick": ("--cherry-pick", cherry_pick),
        "publish": ("--publish", publish),
    }
    places = [option for option, place in where.values() if place is not None]
    if len(places) > 1:
        raise typer.BadParameter(f"only one of {', '.join(places)} can say where to")
    body = {
        "type": "tag" if tag else None,
        **{member: place for member, (_, place) in where.items()},
        "min-snapshots-to-keep": min_snapshots_to_keep,
        "max-snapshot-age-ms": max_snapshot_age_ms,
        "max-ref-age-ms": max_ref_age_ms,
        "expected-snapshot-id": expected,
    }
    with connected(uri, warehouse) as catalog:
        receipt = catalog.refs.change(identifier, ref, given(body))
    _print_receipt(receipt, name, as_json=as_json)


@commands.command("drop-ref")
def drop_ref(
    name: TableName,
    ref: Ref,
    expected: Expected = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Drop a branch or tag. Its snapshots stay until they are expired.

    For example:

    - `icetower table drop-ref eu.sales.orders audit`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        receipt = catalog.refs.remove(identifier, ref, expected=expected)
    _print_receipt(receipt, name, as_json=as_json)


@commands.command("rollback")
def roll_back(
    name: TableName,
    *,
    to: Annotated[str | None, optional(metavar="SNAPSHOT", help="An ancestor, by id, branch or tag.")] = None,
    to_time: Annotated[
        str | None,
        optional(
            metavar="TIME",
            help="What was current then: 2025-10-09, 2025-10-09T12:00:00+02:00 "
            "(UTC without an offset), or milliseconds since 1970.",
        ),
    ] = None,
    branch: Annotated[str, typer.Option(help="Which branch.")] = "main",
    expected: Expected = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Move a branch back to where it was. Nothing is lost: the snapshots stay until they are expired.

    For example:

    - `icetower table rollback eu.sales.orders --to 1494093664485873426`
    - `icetower table rollback eu.sales.orders --to-time 2025-10-09T12:00:00`
    """
    identifier = identifier_from(name, separator)
    if (to is None) == (to_time is None):
        raise typer.BadParameter("say where to with one of --to and --to-time")
    body = {
        "rollback-to": to,
        "timestamp-ms": None if to_time is None else milliseconds_from(to_time),
        "expected-snapshot-id": expected,
    }
    with connected(uri, warehouse) as catalog:
        receipt = catalog.refs.change(identifier, branch, given(body))
    _print_receipt(receipt, name, as_json=as_json)


def milliseconds_from(text: str) -> int:
    """Read a time as ISO 8601, in UTC unless it has an offset, or as epoch milliseconds."""
    if text.isascii() and text.isdigit() and len(text) > 8:
        return int(text)
    moment_ms = find_iso_ms(text)
    if moment_ms is None:
        raise typer.BadParameter(f"{text!r} is not a time: write 2025-10-09T12:00:00")
    return moment_ms


def _print_receipt(receipt: RefReceipt, name: str, *, as_json: bool) -> None:
    if as_json:
        print_json(receipt.model_dump(by_alias=True, exclude_none=True))
        return
    before, after = receipt.snapshot_before, receipt.snapshot_after
    if not receipt.changed:
        print_line(f"Nothing to do: {receipt.ref} of table {name} is at {after} and as wanted.")
        return
    if after is None:
        what = f"Dropped {receipt.ref} of table {name}, which was at {before}"
    elif before is None:
        what = f"Made {receipt.ref} of table {name} at {after}"
    elif before == after:
        what = f"Changed {receipt.ref} of table {name}, which stays at {after}"
    else:
        what = f"Moved {receipt.ref} of table {name} from {before} to {after}"
    print_line(f"{what} (commit {receipt.sequence}).")
