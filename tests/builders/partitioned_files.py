"""A partitioned table whose files are only named: commits write manifests, as engines do, and no data."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from app.catalog import named
from app.catalog.commits.files.snapshot_files import SnapshotFiles
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.catalog.manifests.table_manifests import TableManifests
from app.catalog.tables import NewTable
from app.engine.branches.heads import head_of
from app.engine.branches.picked_changes import without_files
from app.engine.change.summaries import added_counts, totals_after
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    FileKey,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    Partition,
)
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import FieldId, Location, SpecId
from app.engine.model.partition_spec import PartitionField, PartitionSpec, UnboundPartitionSpec
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from tests.builders.commits import commit_table
from tests.builders.tables import DEPARTURES, SCHEMA, append, load_table, namespace_in

BY_CARRIER = PartitionSpec(
    spec_id=SpecId(0),
    fields=(
        PartitionField(name="carrier", transform="identity", source_id=FieldId(2), field_id=FieldId(1000)),
        PartitionField(name="id_bucket", transform="bucket[4]", source_id=FieldId(1), field_id=FieldId(1001)),
    ),
)


@dataclass
class PartitionedFiles:
    """Commits to one table."""

    catalog: Catalog
    location: Location
    identifier: TableIdentifier = DEPARTURES
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    @classmethod
    def made(
        cls, catalog: Catalog, version: int = 2, spec: PartitionSpec = BY_CARRIER, **properties: str
    ) -> PartitionedFiles:
        """Make the table: by carrier and a bucket of the id, unless another spec is given."""
        namespace_in(catalog, DEPARTURES.namespace)
        wanted = {"format-version": str(version), **{k.replace("_", "-"): v for k, v in properties.items()}}
        unbound = UnboundPartitionSpec.from_object(spec.to_object())
        made = named.create(catalog, NewTable(DEPARTURES, SCHEMA, unbound, None, None, wanted))
        return cls(catalog, made.metadata.location)

    @property
    def metadata(self) -> TableMetadata:
        return load_table(self.catalog, self.identifier).metadata

    def head(self, branch: str = "main") -> Snapshot:
        found = head_of(self.metadata, branch)
        assert found is not None
        return found

    def manifests(self, branch: str = "main") -> Sequence[ManifestFile]:
        return TableManifests(self.catalog, self.metadata).manifests(self.head(branch))

    def entries(self, branch: str = "main") -> dict[FileKey, ManifestEntry]:
        """Return the live entries by file, all as existing ones."""
        source = TableManifests(self.catalog, self.metadata)
        live = [
            replace(entry, status=EntryStatus.EXISTING)
            for manifest in self.manifests(branch)
            for entry in source.entries(manifest)
            if entry.is_live
        ]
        found = {entry.file.key: entry for entry in live}
        assert len(found) == len(live), "a file is there twice"
        return found

    def file(self, partition: Partition = ("XX", 0), **facts: Any) -> DataFile:
        """Return a data file that no commit has yet."""
        number = next(self.numbers)
        name = f"{self.location}/data/{number:08}.parquet"
        metrics = {1: 10, 2: 10}
        # Bounds of real files differ too, so manifests do not shrink to nothing.
        bounds = {1: sha256(str(number).encode()).digest()[:8], 2: b"AA"}
        made = DataFile(
            FileContent.DATA,
            Location(name),
            "parquet",
            SpecId(0),
            partition,
            10,
            1_000,
            metrics,
            metrics,
            {1: 0, 2: 1},
            None,
            bounds,
            bounds,
        )
        return replace(made, **facts)

    def commit(
        self,
        added: Iterable[DataFile] = (),
        removed: Iterable[DataFile] = (),
        *,
        branch: str = "main",
        age: int | None = None,
    ) -> Snapshot:
        """Add files, one manifest for each content and spec, and remove others from their manifests.

        Args:
            added: the files that come.
            removed: the files that go.
            branch: which branch.
            age: the data sequence number of added files; as a rule they inherit the snapshot's.
        """
        metadata, gone = self.metadata, {file.key for file in removed}
        files = StagedFiles(self.catalog)
        new, source, head = (
            SnapshotFiles(self.catalog, files, metadata),
            TableManifests(self.catalog, metadata),
            None,
        )
        head, snapshot_id = head_of(metadata, branch), new.new_id()
        kinds: dict[tuple[SpecId, ManifestContent], list[ManifestEntry]] = {}
        for file in added:
            content = ManifestContent.DATA if file.content is FileContent.DATA else ManifestContent.DELETES
            entry = ManifestEntry(EntryStatus.ADDED, None, age, None, file)
            kinds.setdefault((file.spec_id, content), []).append(entry)
        manifests = [
            new.write_manifest(spec_id, snapshot_id, entries, content)
            for (spec_id, content), entries in kinds.items()
        ]
        for manifest in source.manifests(head) if head else ():
            entries = list(source.entries(manifest))
            if gone & {entry.file.key for entry in entries if entry.is_live}:
                kept = without_files(entries, gone, snapshot_id)
                manifest = new.write_manifest(  # noqa: PLW2901 - the manifest that takes its place
                    manifest.partition_spec_id, snapshot_id, kept, manifest.content
                )
            manifests.append(manifest)
        data = [entry.file for (_, content), entries in kinds.items() if not content for entry in entries]
        live = list(removed)
        summary = {"operation": "overwrite", **added_counts(data)} | totals_after(
            head, [entry.file for entries in kinds.values() for entry in entries], live
        )
        snapshot = new.write_snapshot(head, snapshot_id, manifests, summary)
        files.settle()
        commit_table(self.catalog, self.identifier, [], append(snapshot, branch))
        return snapshot

    def fill(self, commits: int, carriers: Sequence[str] = ("AA", "BA", "LH"), each: int = 2) -> None:
        """Append to several partitions in each of some commits."""
        for _ in range(commits):
            self.commit(self.file((carrier, bucket)) for carrier in carriers for bucket in range(each))
