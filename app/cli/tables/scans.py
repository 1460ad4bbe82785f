"""`icetower table plan`: which files a query would read, and how the work would be split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from app.cli.terminal.arguments import identifier_from, json_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, group, optional
from app.cli.terminal.output import print_json_list
from app.cli.terminal.rendering import print_facts
from app.cli.terminal.texts import counted
from app.client.request_parts import given
from app.client.table.scans import ScanFile, ServerPlan
from app.engine.expressions.expressions import ALWAYS_TRUE
from app.engine.model.document import find_count
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.ids import Location, SpecId
from app.engine.scan.scan_planner import PlannedFile
from app.engine.scan.scan_splits import Split, SplitSettings, combined
from app.errors import InvalidUpdate

Json = Mapping[str, Any]

commands = group()


@commands.command("plan")
def plan_scan(
    name: TableName,
    filter_json: Annotated[str | None, optional("--filter", help="Which rows are wanted, as JSON.")] = None,
    select: Annotated[str | None, optional(help="Columns, joined by commas.")] = None,
    snapshot: Annotated[str | None, optional(help="Snapshot id, branch or tag; main if left out.")] = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show which files a query has to read, their deletes, and how the work is split.

    For example:

    - `icetower table plan eu.sales.orders`
    - `icetower table plan eu.sales.orders --filter '{"type":"eq","term":"day","value":"2025-10-09"}'`
    - `icetower table plan eu.sales.orders --snapshot end-of-year --select id,amount --json`
    """
    identifier = identifier_from(name, separator)
    request = given({"filter": json_from(filter_json, "the filter")})
    if select is not None:
        request["select"] = [column.strip() for column in select.split(",") if column.strip()]
    with connected(uri, warehouse) as catalog:
        metadata = catalog.tables.load(identifier).metadata
        request |= _state(metadata, snapshot)
        plan = catalog.scans.plan(identifier, request)
        if as_json:
            print_json_list(map(_as_task, plan.files))
            return
        facts = _facts(metadata, request, plan)
    print_facts(facts)


def _as_task(found: ScanFile) -> dict[str, Any]:
    return {"data-file": found.file, "deletes": found.deletes, "residual-filter": found.residual}


def _state(metadata: Json, wanted: str | None) -> dict[str, Any]:
    """Return the snapshot to ask for. Time travel reads with its columns, a branch with the current ones."""
    if wanted is None:
        return {}
    ref = metadata.get("refs", {}).get(wanted)
    if ref is not None:
        return {"snapshot-id": ref["snapshot-id"], "use-snapshot-schema": ref.get("type") == "tag"}
    if not (wanted.isascii() and wanted.isdigit() and len(wanted) < 20):
        raise typer.BadParameter(f"there is no branch or tag called {wanted}")
    return {"snapshot-id": int(wanted), "use-snapshot-schema": True}


@dataclass(slots=True)
class _Tally:
    """What is counted of planned files while they pass: a table may have millions."""

    files: int = 0
    rows: int = 0
    size: int = 0
    unsure: int = 0
    """Files of which not every row is known to match."""
    touched: int = 0
    """Files with deletes."""
    deletes: dict[str, set[tuple[str, int | None]]] = field(default_factory=dict)
    """The places of deletes, by their kind."""

    def noted(self, files: Iterable[ScanFile]) -> Iterator[PlannedFile]:
        """Yield files as the engine has them, and count them."""
        for found in files:
            self.files += 1
            self.rows += found.file["record-count"]
            self.size += found.file["file-size-in-bytes"]
            self.unsure += found.residual is not True
            self.touched += bool(found.deletes)
            for delete in found.deletes:
                is_vector = delete["file-format"] == "puffin"
                kind = "deletion vectors" if is_vector else delete["content"].replace("-", " ")
                place = delete["file-path"], delete.get("content-offset")
                self.deletes.setdefault(kind, set()).add(place)
            yield _planned(found)


def _facts(metadata: Json, request: Json, plan: ServerPlan) -> list[tuple[str, object]]:
    tally = _Tally()
    pieces = _pieces_text(metadata, tally.noted(plan.files))
    kept = tally.files
    snapshot_id = request.get("snapshot-id", metadata.get("current-snapshot-id"))
    total = _total_files(metadata, snapshot_id)
    left_out = "" if total is None else f", {total - kept} of {total} left out"
    unsure = counted(tally.unsure, "file")
    return [
        ("snapshot", "none" if total == 0 and not kept and snapshot_id in (None, -1) else snapshot_id),
        ("files to read", f"{kept}{left_out}"),
        ("in them", f"{counted(tally.rows, 'row')}, {counted(tally.size, 'byte')}"),
        ("still to be asked", f"the rows of {unsure}; in the others every row matches"),
        ("deletes", _deletes_line(tally)),
        ("pieces of work", pieces),
        ("planned in", counted(plan.answers, "answer")),
    ]


def _total_files(metadata: Json, snapshot_id: int | None) -> int | None:
    if snapshot_id in (None, -1):
        return 0
    for snapshot in metadata.get("snapshots", ()):
        if snapshot.get("snapshot-id") == snapshot_id:
            return find_count((snapshot.get("summary") or {}).get("total-data-files"))
    return None


def _deletes_line(tally: _Tally) -> str:
    counts = ", ".join(f"{len(places)} {kind}" for kind, places in sorted(tally.deletes.items()))
    return f"{counts}, for {tally.touched} of the files" if counts else "none"


def _pieces_text(metadata: Json, files: Iterator[PlannedFile]) -> str:
    """Return the pieces of work that files make; all of these have passed then."""
    try:
        settings = SplitSettings.of(metadata.get("properties", {}))
    except InvalidUpdate as flaw:  # A table that was registered brings such properties along.
        for _ in files:
            pass
        return f"not known: {flaw}"
    return _pieces_line(combined(files, settings))


def _pieces_line(pieces: Iterable[Sequence[Split]]) -> str:
    number, least, most = 0, 0, 0
    for piece in pieces:
        size = sum(split.length for split in piece)
        number, least, most = number + 1, min(least, size) if number else size, max(most, size)
    return f"{number}, of {least} to {most} bytes" if number else "none"


def _planned(found: ScanFile) -> PlannedFile:
    return PlannedFile(
        _content_file(found.file), [_content_file(each) for each in found.deletes], ALWAYS_TRUE
    )


def _content_file(file: Json) -> DataFile:
    offsets = file.get("split-offsets")
    return DataFile(
        FileContent[file["content"].replace("-", "_").upper()],
        Location(file["file-path"]),
        file["file-format"],
        SpecId(file["spec-id"]),
        (),
        file["record-count"],
        file["file-size-in-bytes"],
        split_offsets=None if offsets is None else tuple(offsets),
        content_size_in_bytes=file.get("content-size-in-bytes"),
    )
