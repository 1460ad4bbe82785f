"""`icetower table health` and `profile`: facts about files, metadata and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from app.cli.health_lines import (
    PROFILE_COLUMNS,
    finding_lines,
    histogram_lines,
    profile_row,
    severity_text,
    size_text,
)
from app.cli.terminal.arguments import identifier_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, group, optional
from app.cli.terminal.output import print_json, print_line, remark
from app.cli.terminal.rendering import print_facts, print_table
from app.cli.terminal.texts import counted, moment_text

Json = Mapping[str, Any]

Ref = Annotated[str | None, optional("--ref", help="A branch or tag; main if left out.")]
Snapshot = Annotated[int | None, optional("--snapshot-id", help="A snapshot, by its id.")]

commands = group()


@commands.command("health")
def table_health(
    name: TableName,
    ref: Ref = None,
    snapshot_id: Snapshot = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show how healthy a table is: its files, manifests, snapshots, and what to do about them.

    For example:

    - `icetower table health eu.sales.orders`
    - `icetower table health eu.sales.orders --ref audit --json`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        found = catalog.health.table(identifier, snapshot_id=snapshot_id, ref=ref)
    if as_json:
        print_json(found)
        return
    print_facts([("health", severity_text(found["severity"])), *_facts(found)])
    if found["findings"]:
        print_line("")
        print_table(["severity", "finding", "what mends it"], finding_lines(found["findings"]))


@commands.command("profile")
def table_profile(
    name: TableName,
    ref: Ref = None,
    snapshot_id: Snapshot = None,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Show what the manifests say of each column: bounds, nulls, NaNs, bytes. No data file is read.

    `~` marks bounds that may be cut, and a number with `of` files is known in these files only.

    For example:

    - `icetower table profile eu.sales.orders`
    - `icetower table profile eu.sales.orders --ref end-of-year --json`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse) as catalog:
        found = catalog.health.profile(identifier, snapshot_id=snapshot_id, ref=ref)
    if as_json:
        print_json(found)
        return
    print_table(PROFILE_COLUMNS, [profile_row(column, found["data-files"]) for column in found["columns"]])
    remark(f"{found['rows']} rows in {counted(found['data-files'], 'data file')}.")
    if found["delete-files"]:
        deletes = counted(found["delete-files"], "delete file")
        remark(f"There are {deletes}: counts and bounds are of the rows before deletes.")


def _facts(found: Json) -> list[tuple[str, object]]:
    metadata, manifests, activity = found["metadata"], found["manifests"], found["activity"]
    return [
        ("snapshot", found.get("snapshot-id", "none")),
        *_file_facts(found.get("files"), metadata["target-file-bytes"]),
        ("manifests", _manifests_line(manifests)),
        ("clustered", _clustered_line(manifests)),
        ("snapshots", _snapshots_line(metadata)),
        (
            "metadata",
            _metadata_line(metadata),
        ),
        (
            "statistics",
            f"{metadata['statistics']['state']}, of partitions {metadata['partition-statistics']['state']}",
        ),
        ("commits", _commits_line(activity)),
        ("last write", moment_text(metadata["last-write-ms"])),
        (
            "last read",
            moment_text(activity.get("last-read-ms")) or f"not seen by server process {activity['process']}",
        ),
        ("last upkeep", moment_text(activity.get("last-upkeep-ms")) or "none"),
    ]


def _file_facts(files: Json | None, target_bytes: int) -> list[tuple[str, object]]:
    if files is None:
        return [("data files", "cannot be counted")]
    return [
        (
            "data files",
            f"{files['data-files']} with {size_text(files['data-bytes'])} and {counted(files['rows'], 'row')}",
        ),
        (
            "file sizes",
            [
                _sizes_line(files, target_bytes),
                *histogram_lines(files["size-histogram"]),
            ],
        ),
        (
            "small files",
            _small_line(files),
        ),
        ("delete files", _deletes_line(files)),
        ("partitions", _partitions_line(files)),
    ]


def _sizes_line(files: Json, target_bytes: int) -> str:
    return (
        f"{size_text(files['average-bytes'])} on average, median {size_text(files['median-bytes'])}; "
        f"writers aim at {size_text(target_bytes)}"
    )


def _small_line(files: Json) -> str:
    share = f"{100 * files['small-share']:.0f} %"
    return f"{files['small-files']} ({share}) below {size_text(files['small-below-bytes'])}"


def _metadata_line(metadata: Json) -> str:
    return (
        f"format version {metadata['format-version']}, {size_text(metadata['metadata-bytes'])}, "
        f"{counted(metadata['schemas'], 'schema')}, {counted(metadata['partition-specs'], 'spec')}, "
        f"log of {metadata['metadata-log-entries']}"
    )


def _deletes_line(files: Json) -> str:
    if not files["delete-files"]:
        return "none"
    kinds = (
        (files["position-delete-files"], "of positions"),
        (files["equality-delete-files"], "of equality"),
        (files["deletion-vectors"], "deletion vectors"),
    )
    numbers = ", ".join(f"{number} {kind}" for number, kind in kinds if number)
    dangling = f", {files['dangling-deletes']} dangling" if files["dangling-deletes"] else ""
    return f"{numbers}: {files['deletes-per-data-file']:.2f} for each data file{dangling}"


def _partitions_line(files: Json) -> str:
    line = (
        f"{files['partitions']}, the largest {size_text(files['largest-partition-bytes'])}, "
        f"{files['partition-skew']:.1f} times the median"
    )
    for old, what in ((files["old-spec-files"], "old specs"), (files["old-order-files"], "old orders")):
        line += f"; {counted(old, 'file')} of {what}" if old else ""
    return line


def _manifests_line(manifests: Json) -> str:
    number = manifests["data-manifests"] + manifests["delete-manifests"]
    return (
        f"{number} ({manifests['delete-manifests']} of deletes), {size_text(manifests['average-bytes'])} on average, "
        f"{manifests['small-manifests']} below half of {size_text(manifests['target-bytes'])}"
    )


def _clustered_line(manifests: Json) -> str:
    overlap = manifests.get("average-overlap")
    if overlap is None:
        return "not known: no partition field has bounds"
    return f"{overlap:.1f} of {manifests['data-manifests']} data manifests for each partition value"


def _snapshots_line(metadata: Json) -> str:
    oldest = moment_text(metadata.get("oldest-snapshot-ms"))
    refs = f"{_branches(metadata['branches'])}, {counted(metadata['tags'], 'tag')}"
    return f"{metadata['snapshots']}{f', the oldest of {oldest}' if oldest else ''}; {refs}"


def _commits_line(activity: Json) -> str:
    attempts = activity.get("attempts-a-commit")
    line = f"{activity['commits-a-day']:.1f} a day"
    if attempts is None:
        return line
    since = moment_text(activity["attempts-since-ms"])
    return f"{line}, {attempts:.1f} attempts for each of those at server process {activity['process']} since {since}"


def _branches(number: int) -> str:
    return "1 branch" if number == 1 else f"{number} branches"
