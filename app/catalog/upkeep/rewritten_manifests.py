"""Rewritten manifests: planned and stored for one state of a branch, and counted again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.catalog.commits.files.snapshot_files import SnapshotFiles
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.catalog.manifests.table_manifests import TableManifests
from app.catalog.upkeep.readable_manifests import manifests_of_head
from app.engine.appends.merging import merged_entries
from app.engine.manifest_rewrite.plan import LiveTally, RewriteGroup, plan_rewrite, take_stock
from app.engine.manifest_rewrite.wishes import RewriteRules, RewriteWish
from app.engine.model.files.entry_filters import entry_facts
from app.engine.model.files.manifests import ManifestFile
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import SnapshotId
from app.engine.model.table_metadata import TableMetadata
from app.errors import CorruptTable
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.shuffled import ShuffledManifests
from app.formats.manifests.writer import WrittenManifest


@dataclass(frozen=True, slots=True)
class RewritePlan:
    """What is to be rewritten of one state of a branch."""

    metadata: TableMetadata
    rules: RewriteRules
    listed: tuple[ManifestFile, ...]
    groups: tuple[RewriteGroup, ...]

    @property
    def replaced(self) -> tuple[ManifestFile, ...]:
        """The manifests that go."""
        return tuple(stock.manifest for group in self.groups for stock in group.replaced)

    @property
    def tally(self) -> LiveTally:
        """What is live in them."""
        return sum((group.tally for group in self.groups), LiveTally())


@dataclass(frozen=True, slots=True)
class RewrittenManifests:
    """New manifests in storage, for a plan; no list names them yet."""

    plan: RewritePlan
    added: tuple[ManifestFile, ...]


def plan_manifests(
    catalog: Catalog, identifier: TableIdentifier, metadata: TableMetadata, branch: str, wish: RewriteWish
) -> RewritePlan:
    """Return what is to be rewritten; nothing is written.

    Raises:
        InvalidRequest, NoSuchRef: the wish does not fit the table.
        NotSupported: the table or a manifest is encrypted.
        CorruptMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    rules, source = RewriteRules.of(wish, metadata), TableManifests(catalog, metadata)
    listed = manifests_of_head(catalog, identifier, metadata, branch, "rewrite manifests of")
    stocks = [
        take_stock(manifest, entry_facts(source.entries(manifest)))
        for manifest in listed
        if manifest.partition_spec_id in rules.spec_ids
    ]
    return RewritePlan(metadata, rules, listed, tuple(plan_rewrite(stocks, rules)))


def store_manifests(catalog: Catalog, plan: RewritePlan, files: StagedFiles) -> RewrittenManifests:
    """Store the new manifests of a plan.

    Raises:
        CorruptMetadata: a manifest cannot be read.
        CorruptTable: its files do not fit the table, or the new manifests are not worth the old ones.
        FileMissing, FilesUnavailable: the store does not have a file, or does not answer.
    """
    new = SnapshotFiles(catalog, files, plan.metadata)
    added: list[ManifestFile] = []
    for group in plan.groups:
        found = LiveTally()
        for written in _written(catalog, plan, group, new):
            added.append(new.store(written))
            found += take_stock(
                written.manifest, ManifestColumns(written.manifest, written.content).facts()
            ).tally
        if found != group.tally:
            raise CorruptTable(
                plan.metadata.location,
                f"rewritten manifests would have {found} instead of {group.tally}; nothing was changed",
            )
    return RewrittenManifests(plan, tuple(added))


def _written(
    catalog: Catalog, plan: RewritePlan, group: RewriteGroup, new: SnapshotFiles
) -> Iterator[WrittenManifest]:
    packer = new.packer(group.spec_id, group.partitions, group.content)
    shuffled = ShuffledManifests(packer, group.new_count, plan.rules.target_bytes)
    source = TableManifests(catalog, plan.metadata)
    try:
        for stock, ranks in zip(group.replaced, group.ranks(), strict=True):
            entries = merged_entries(source.entries(stock.manifest))
            for rank, entry in zip(ranks, entries, strict=True):
                shuffled.add(group.new_manifest_of(rank), rank, entry)
        yield from shuffled.finish()
    except ValueError as error:
        raise CorruptTable(plan.metadata.location, str(error)) from error


def listed_after(
    listed: Sequence[ManifestFile], rewritten: RewrittenManifests, snapshot_id: SnapshotId
) -> list[ManifestFile] | None:
    """Return a head's manifests with new ones for old; None if an old one has gone."""
    replaced = set(rewritten.plan.replaced)
    if not replaced <= set(listed):
        return None
    added = [replace(manifest, added_snapshot_id=snapshot_id) for manifest in rewritten.added]
    place = next(at for at, manifest in enumerate(listed) if manifest in replaced)
    kept = [manifest for manifest in listed if manifest not in replaced]
    return [*kept[:place], *added, *kept[place:]]
