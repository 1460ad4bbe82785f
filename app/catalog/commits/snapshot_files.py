"""Manifests and manifest lists of snapshots that the server makes itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.catalog.commits.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.manifests import ManifestContent, ManifestEntry, ManifestFile
from app.engine.model.partition_values import schema_with_sources
from app.engine.model.table_metadata import TableMetadata
from app.errors import CorruptMetadata
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.writer import write_manifest
from app.formats.metadata.names import metadata_folder


@dataclass(frozen=True, slots=True)
class StagedList:
    """A manifest list that was written for one attempt, and the numbers that it gives."""

    location: Location
    manifests: tuple[ManifestFile, ...]
    """What readers find in it."""
    sequence_number: int
    """The snapshot's; 0 where the format version has none."""
    first_row_id: int | None
    added_rows: int | None


class SnapshotFiles:
    """Writes manifests and manifest lists to the files of one attempt."""

    def __init__(self, catalog: Catalog, files: StagedFiles) -> None:
        self._catalog = catalog
        self._files = files

    def write_manifest(
        self,
        base: TableMetadata,
        spec_id: SpecId,
        snapshot_id: SnapshotId,
        entries: Sequence[ManifestEntry],
        content: ManifestContent = ManifestContent.DATA,
    ) -> ManifestFile:
        """Write a manifest, and return it as a list names it before it has numbers.

        Raises:
            CorruptMetadata: the table has not the partition spec.
            FilesUnavailable: the store does not answer, or refuses.
        """
        spec = base.find_spec(spec_id)
        if spec is None:
            raise CorruptMetadata(
                base.location, f"a manifest has partition spec {spec_id}, which the table has not"
            )
        written = write_manifest(
            entries,
            schema=schema_with_sources(base, spec),
            spec=spec,
            format_version=base.format_version,
            content=content,
            snapshot_id=snapshot_id,
        )
        location = Location(
            f"{metadata_folder(base.location, base.properties)}/{self._catalog.server.new_uuid()}-m0.avro"
        )
        self._files.write(location, written.content)
        return written.at(location)

    def write_list(
        self,
        base: TableMetadata,
        snapshot_id: SnapshotId,
        parent_id: SnapshotId | None,
        manifests: Sequence[ManifestFile],
    ) -> StagedList:
        """Write the manifest list of a snapshot that is the table's next one.

        It is stored when the files are settled, which is before a pointer moves.
        """
        sequence_number = base.last_sequence + 1 if base.format.has_sequence_numbers else 0
        first_row_id = (base.next_row_id or 0) if base.format.has_row_lineage else None
        numbered, next_row_id = assign_numbers(
            manifests, sequence_number=sequence_number, first_row_id=first_row_id
        )
        content = write_manifest_list(
            numbered,
            format_version=base.format_version,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number,
            first_row_id=first_row_id,
            lines=self._catalog.server.packed_lines,
        )
        location = Location(
            f"{metadata_folder(base.location, base.properties)}/"
            f"snap-{snapshot_id}-1-{self._catalog.server.new_uuid()}.avro"
        )
        self._files.write_soon(location, content)
        added_rows = None if first_row_id is None else (next_row_id or first_row_id) - first_row_id
        return StagedList(location, numbered, sequence_number, first_row_id, added_rows)
