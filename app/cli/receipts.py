"""`icetower commit`: what became of a request that changes something."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Uri, Warehouse, group, optional
from app.cli.terminal.output import print_json, print_line
from app.cli.terminal.rendering import print_facts
from app.cli.terminal.texts import moment_text
from app.client.request_parts import JsonObject

commands = group(
    """Find out what became of a commit, or of any other change.

The answer to each change has a commit id, in its header `X-Icetower-Commit-Id`. If the answer was lost, ask by the
`Idempotency-Key` or the `X-Request-Id` that the request was sent with."""
)


@commands.command("show")
def show_receipt(
    commit_id: Annotated[str, typer.Argument(metavar="COMMIT", help="The commit id of the answer.")],
    uri: Uri = None,
    warehouse: Warehouse = None,
    as_json: AsJson = False,
) -> None:
    """Show what became of a change, by its commit id.

    For example:

    - `icetower commit show 01a204ad7f62360f1f0c5515d02b9184`
    """
    with connected(uri, warehouse) as catalog:
        receipt = catalog.receipts.show(commit_id)
    if as_json:
        print_json(receipt)
    else:
        _print(receipt)


@commands.command("find")
def find_receipts(
    key: Annotated[
        str | None, optional("--key", metavar="KEY", help="The Idempotency-Key of the request.")
    ] = None,
    request_id: Annotated[
        str | None, optional("--request-id", metavar="ID", help="The X-Request-Id of the request.")
    ] = None,
    job: Annotated[
        str | None, optional("--job", metavar="ID", help="The job of upkeep that sent the requests.")
    ] = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    as_json: AsJson = False,
) -> None:
    """Show what became of changes whose answers were lost.

    For example:

    - `icetower commit find --key 0193b2b4-0000-7000-8000-000000000001`
    """
    if [key, request_id, job].count(None) != 2:
        raise typer.BadParameter("ask by --key, --request-id or --job: exactly one of them")
    with connected(uri, warehouse) as catalog:
        found = catalog.receipts.find(key=key, request_id=request_id, job=job)
    if as_json:
        print_json(found)
        return
    for number, receipt in enumerate(found):
        if number:
            print_line("")
        _print(receipt)


def _print(receipt: JsonObject) -> None:
    facts: list[tuple[str, object]] = [
        ("commit", receipt["commit-id"]),
        ("outcome", receipt["outcome"]),
        ("operation", receipt["operation"]),
        ("by", receipt["author"]),
        ("began", moment_text(receipt["began-ms"])),
    ]
    if "idempotency-key" in receipt:
        facts.append(("key", receipt["idempotency-key"]))
    if "request-id" in receipt:
        facts.append(("request", receipt["request-id"]))
    facts += [(change["event"], _change_lines(change)) for change in receipt.get("changes", [])]
    if receipt.get("rebased"):
        facts.append(("rebased", "yes"))
    if receipt.get("landed-together", 1) > 1:
        facts.append(("together", f"{receipt['landed-together']} requests"))
    if "error" in receipt:
        facts.append(("error", f"{receipt['error']['message']} ({receipt['error']['type']})"))
    print_facts(facts)


def _change_lines(change: JsonObject) -> list[str]:
    name = ".".join([*change.get("namespace", []), *([change["name"]] if "name" in change else [])])
    lines = [f"{change['kind']} {name}"]
    if "metadata-location-after" in change:
        lines.append(str(change["metadata-location-after"]))
    if "snapshot-ids" in change:
        lines.append(f"snapshots {', '.join(map(str, change['snapshot-ids']))}")
    return lines
