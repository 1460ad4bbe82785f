"""`icetower table rewrite-manifests` and its like: upkeep that moves no data."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.terminal.arguments import identifier_from
from app.cli.terminal.connection import connected
from app.cli.terminal.options import AsJson, Separator, TableName, Uri, Warehouse, Yes, group, optional
from app.cli.terminal.output import print_line, remark
from app.cli.terminal.previews import Preview, print_answer
from app.cli.terminal.texts import counted
from app.client.answers import DanglingDeletesAnswer, ManifestRewriteAnswer

commands = group()

PATIENCE_S = 600.0
"""So long the server works on a request: manifests of a million files take minutes."""

Branch = Annotated[str, typer.Option(help="Which branch.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")]


@commands.command("rewrite-manifests")
def rewrite_manifests(  # noqa: PLR0917 - a command has as many arguments as it has options
    name: TableName,
    spec_id: Annotated[int | None, optional(help="Only manifests of this partition spec.")] = None,
    cluster_by: Annotated[
        str | None,
        optional(help="The partition field, or the column one is made of, whose values lead the order."),
    ] = None,
    target_size: Annotated[
        int | None,
        optional(metavar="BYTES", help="The size of new manifests. Unless given, the table's property."),
    ] = None,
    branch: Branch = "main",
    rewrite_all: Annotated[
        bool, typer.Option("--all", help="Rewrite manifests that are not worth it, too.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Rewrite manifests in the order of their partitions, so that queries read fewer of them.

    No data file is read or written. What would be done is shown first.

    For example:

    - `icetower table rewrite-manifests eu.sales.orders --dry-run`
    - `icetower table rewrite-manifests eu.sales.orders --cluster-by region --all --yes`
    """
    identifier = identifier_from(name, separator)
    nothing = f"No manifest of table {name} is worth being rewritten."
    with connected(uri, warehouse, patience_seconds=PATIENCE_S) as catalog:

        def run(*, only_shown: bool) -> ManifestRewriteAnswer:
            return catalog.upkeep.rewrite_manifests(
                identifier,
                dry_run=only_shown,
                spec_id=spec_id,
                cluster_by=cluster_by,
                target_size_bytes=target_size,
                branch=branch,
                rewrite_all=rewrite_all,
            )

        Preview(
            lambda: run(only_shown=True),
            _rewrite_facts,
            lambda would: f"Rewrite {counted(would.manifests_replaced, 'manifest')} of table {name}?",
            lambda would: None if would.manifests_replaced else nothing,
        ).shown(dry_run=dry_run, yes=yes, as_json=as_json)
        done = run(only_shown=False)
    if as_json:
        print_answer(done)
    elif done.snapshot_id is None:
        remark(nothing)
    else:
        replaced, created = (
            counted(done.manifests_replaced, "manifest"),
            counted(done.manifests_created, "new one"),
        )
        print_line(
            f"Replaced {replaced} of table {name} by {created}, with {counted(done.entries_processed, 'file')}, "
            f"as snapshot {done.snapshot_id}."
        )


@commands.command("remove-dangling-deletes")
def remove_dangling_deletes(
    name: TableName,
    branch: Branch = "main",
    dry_run: DryRun = False,
    yes: Yes = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Remove delete files that apply to no live data file any more.

    How many is shown first. Older snapshots keep them until they expire.

    For example:

    - `icetower table remove-dangling-deletes eu.sales.orders --dry-run`
    """
    identifier = identifier_from(name, separator)
    nothing = f"No delete file of table {name} is without a data file."
    with connected(uri, warehouse, patience_seconds=PATIENCE_S) as catalog:
        Preview(
            lambda: catalog.upkeep.remove_dangling_deletes(identifier, dry_run=True, branch=branch),
            _dangling_facts,
            lambda would: f"Remove {counted(would.removed_delete_files, 'delete file')} of table {name}?",
            lambda would: None if would.removed_delete_files else nothing,
        ).shown(dry_run=dry_run, yes=yes, as_json=as_json)
        done = catalog.upkeep.remove_dangling_deletes(identifier, branch=branch)
    if as_json:
        print_answer(done)
    elif done.snapshot_id is None:
        remark(nothing)
    else:
        went = counted(done.removed_delete_files, "delete file")
        print_line(f"Removed {went} of table {name} as snapshot {done.snapshot_id}.")


@commands.command("partition-statistics")
def write_partition_statistics(
    name: TableName,
    snapshot_id: Annotated[int | None, optional(help="Which snapshot; the current one unless given.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Write the statistics of a snapshot's partitions, counted from its manifests.

    How many partitions there are is shown first.

    For example:

    - `icetower table partition-statistics eu.sales.orders --yes`
    """
    identifier = identifier_from(name, separator)
    with connected(uri, warehouse, patience_seconds=PATIENCE_S) as catalog:
        Preview(
            lambda: catalog.upkeep.write_partition_statistics(
                identifier, dry_run=True, snapshot_id=snapshot_id
            ),
            lambda would: [("snapshot", would.snapshot_id), ("partitions", would.partitions)],
            lambda would: f"Write statistics of {counted(would.partitions, 'partition')} of table {name}?",
        ).shown(dry_run=dry_run, yes=yes, as_json=as_json)
        done = catalog.upkeep.write_partition_statistics(identifier, snapshot_id=snapshot_id)
    if as_json:
        print_answer(done)
    else:
        written = counted(done.partitions, "partition")
        print_line(f"Wrote statistics of {written} of table {name} to {done.statistics_path}.")


def _dangling_facts(would: DanglingDeletesAnswer) -> list[tuple[str, object]]:
    return [
        ("branch", would.branch),
        ("position delete files", would.removed_position_delete_files),
        ("deletion vectors", would.removed_dvs),
        ("equality delete files", would.removed_equality_delete_files),
    ]


def _rewrite_facts(would: ManifestRewriteAnswer) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [("branch", would.branch), ("manifests kept", would.manifests_kept)]
    for kind in would.groups:
        what = f"{counted(kind.manifests, 'manifest')}  {kind.manifest_bytes:,} bytes  {counted(kind.files, 'file')}"
        facts.append((f"{kind.content}, spec {kind.spec_id}", f"{what}  into about {kind.new_manifests}"))
    return facts
