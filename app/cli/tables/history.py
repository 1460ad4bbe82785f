"""`icetower table snapshots`, `history`, `diff` and `files`: earlier states of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain, islice
from typing import Annotated, Any

import typer
from rich.text import Text

from app.cli.tables.snapshot_graph import graph_lines
from app.cli.terminal.arguments import find_object, identifier_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, group, optional
from app.cli.terminal.output import print_json, print_json_list, remark
from app.cli.terminal.rendering import print_facts, print_table
from app.cli.terminal.texts import counted, exact_moment_text
from app.client.http.failures import CatalogRefused
from app.engine.model.refs import MAIN_BRANCH

Json = Mapping[str, Any]

SNAPSHOT_COLUMNS = (
    "", "snapshot", "branches and tags", "operation", "added", "deleted", "total", "made at",
)  # fmt: skip
STAGED = "(on no branch)"

commands = group()


@commands.command("snapshots")
def show_snapshots(
    name: TableName,
    last: Annotated[
        int, typer.Option(min=0, max=1_000_000_000, help="How many of the newest to show; 0 for all.")
    ] = 100,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Draw the snapshots of a table, newest first, with the branches and tags that name them.

    For example:

    - `icetower table snapshots eu.sales.orders`
    - `icetower table snapshots eu.sales.orders --json | jq '.[0].summary'`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        found = list(islice(catalog.history.snapshots(identifier), last or None))
    if as_json:
        print_json(found)
    elif found:
        rows = [
            [line.lanes, *(_snapshot_cells(line.snapshot) if line.snapshot else [""] * 7)]
            for line in graph_lines(found)
        ]
        print_table(SNAPSHOT_COLUMNS, rows)
    else:
        remark(f"Table {name} has no snapshots yet.")


def _snapshot_cells(snapshot: Json) -> list[object]:
    summary = snapshot.get("summary") or {}
    refs = Text(", ".join(snapshot["refs"]), style="bold")
    if not snapshot["branches"] and not snapshot["refs"]:
        staged = summary.get("wap.id")
        refs = Text(f"staged as {staged}" if staged else STAGED, style="dim")
    return [
        snapshot.get("snapshot-id"),
        refs,
        summary.get("operation"),
        summary.get("added-records"),
        summary.get("deleted-records"),
        summary.get("total-records"),
        exact_moment_text(snapshot.get("timestamp-ms")),
    ]


@commands.command("history")
def show_history(
    name: TableName,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show which snapshot was current when, and who changed the table: newest first.

    For example:

    - `icetower table history eu.sales.orders`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        found = catalog.history.history(identifier)
    if as_json:
        print_json({"current": found.current, "events": found.events})
        return
    if found.current:
        reigns = [
            [
                entry["snapshot-id"],
                exact_moment_text(entry["since-ms"]),
                exact_moment_text(entry.get("until-ms")) or "now",
            ]
            for entry in found.current
        ]
        print_table(["current snapshot", "from", "to"], reigns)
    else:
        remark(f"Table {name} has no snapshots yet.")
    events = [
        [
            event["sequence"],
            exact_moment_text(event["at-ms"]),
            event["event"],
            event["author"],
            event["request-id"],
            event.get("job", "–"),
            event.get("metadata-location-after", "").rsplit("/", 1)[-1],
        ]
        for event in found.events
    ]
    print_table(["sequence", "at", "what", "who", "request", "job", "metadata file"], events, optional=3)


@commands.command("diff")
def show_diff(
    name: TableName,
    before: Annotated[
        str | None,
        typer.Argument(
            metavar="FROM", help="Snapshot id, branch, tag, or metadata:NUMBER.", show_default=False
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Argument(metavar="TO", help="The same; the table as it is if left out.", show_default=False),
    ] = None,
    files: Annotated[bool, typer.Option("--files", help="List the files too.")] = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show what differs between two states of a table; unless given, between the last two.

    For example:

    - `icetower table diff eu.sales.orders`
    - `icetower table diff eu.sales.orders end-of-year main --files`
    - `icetower table diff eu.sales.orders metadata:3 metadata:7`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        found = catalog.history.diff(identifier, before, after)
    if as_json:
        print_json(found)
        return
    print_facts(
        [
            ("from", _state_line(found["from"])),
            ("to", f"{_state_line(found['to'])} ({found.get('relation', 'relation unknown')})"),
            ("added", _totals_line(found["added"])),
            ("removed", _totals_line(found["removed"])),
            *difference_lines(found),
        ]
    )
    if any(part["partition"] for part in found["partitions"]):
        rows = [
            [_partition_text(part["partition"]), _totals_line(part["added"]), _totals_line(part["removed"])]
            for part in found["partitions"]
        ]
        print_table(["partition", "added", "removed"], rows)
    if files and found["files"]:
        print_table(
            ["", *FILE_COLUMNS], [[_SIGNS[file["change"]], *_file_cells(file)] for file in found["files"]]
        )


_SIGNS = {"added": "+", "removed": "-"}


def _state_line(state: Json) -> str:
    snapshot = state.get("snapshot-id")
    line = (
        f"snapshot {snapshot} of {exact_moment_text(state.get('timestamp-ms'))}"
        if snapshot
        else "no snapshot"
    )
    location = state.get("metadata-location")
    return f"{location}, {line}" if location else line


def _totals_line(totals: Json) -> str:
    kinds = (("data-files", "file"), ("rows", "row"), ("bytes", "byte"))
    parts = [", ".join(counted(totals[kind], noun) for kind, noun in kinds)]
    if totals["delete-files"]:
        deletes = counted(totals["deletes"], "delete")
        parts.append(f"{counted(totals['delete-files'], 'delete file')}, {deletes}")
    return "; ".join(parts) if totals["data-files"] or totals["delete-files"] else "nothing"


def difference_lines(found: Json) -> list[tuple[str, object]]:
    """Return the differences between two states, but for files: for each a name and its lines."""
    return [*_schema_lines(found), *_metadata_lines(found.get("metadata", {}))]


def _schema_lines(found: Json) -> list[tuple[str, object]]:
    lines = []
    for change in found["schema-changes"]:
        others = {key: value for key, value in change.items() if key not in ("change", "field-id", "name")}
        details = ", ".join(f"{key} {value}" for key, value in others.items())
        lines.append(f"{change['change'].replace('-', ' ')}: {change.get('name', '')} {details}".rstrip())
    return [("schema", lines)] if lines else []


def _metadata_lines(metadata: Json) -> list[tuple[str, object]]:
    single = ("format-version", "location", "partition-spec", "sort-order")
    lines: list[tuple[str, object]] = [
        (key.replace("-", " "), _pair_text(metadata[key])) for key in single if key in metadata
    ]
    lines.extend(
        (key, [f"{item}: {_pair_text(pair)}" for item, pair in metadata[key].items()])
        for key in ("properties", "refs")
        if key in metadata
    )
    return lines


def _pair_text(pair: Json) -> str:
    before, after = (_value_text(pair.get(key)) for key in ("from", "to"))
    return f"{before} → {after}"


def _value_text(value: object) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _partition_text(partition: Json) -> str:
    return "/".join(f"{field}={_value_text(value)}" for field, value in partition.items())


FILE_COLUMNS = ("content", "partition", "rows", "bytes", "sequence", "path")


@commands.command("files")
def show_files(
    name: TableName,
    snapshot: Annotated[str, typer.Option(help="Snapshot id, branch or tag.")] = MAIN_BRANCH,
    filter_json: Annotated[
        str | None,
        optional("--filter", help="Leave out files that certainly hold no row that matches."),
    ] = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """List the live files of a snapshot.

    For example:

    - `icetower table files eu.sales.orders`
    - `icetower table files eu.sales.orders --snapshot audit --json | jq -r '.[]."file-path"'`
    - `icetower table files eu.sales.orders --filter '{"type":"eq","term":"day","value":"2025-10-09"}'`
    """
    identifier = identifier_from(name, separator)
    wanted = find_object(filter_json, "the filter")
    with connected(uri, warehouse) as catalog:
        found = catalog.history.files(identifier, snapshot, wanted)
        try:
            first = list(islice(found, 1))
        except CatalogRefused as refused:
            # A table that has no snapshot yet has no main either.
            if snapshot != MAIN_BRANCH or refused.type != "NoSuchSnapshotException":
                raise
            first = []
        files = chain(first, found)
        if as_json:
            print_json_list(files)
        elif not print_table(FILE_COLUMNS, map(_file_cells, files)):
            remark(f"No files in {snapshot} of table {name}{' that may match' if wanted else ''}.")


def _file_cells(file: Json) -> list[object]:
    return [
        file["content"],
        _partition_text(file["partition"]),
        file["record-count"],
        file["file-size-in-bytes"],
        file.get("sequence-number"),
        file["file-path"],
    ]
