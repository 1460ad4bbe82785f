"""Format versions: what each version of the table format has and requires. A new version is one more row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.engine.model.ids import NO_SNAPSHOT, SnapshotId


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatVersion:
    """What tables of one format version have, and what they must have.

    Spec: #appendix-e-format-version-changes
    """

    number: int
    required_fields: tuple[str, ...] = ()
    """Fields of the metadata that may not be missing, beyond those that every version needs."""
    has_single_schema_and_spec: bool = False
    """The metadata also has the current schema and the default spec as fields of their own."""
    requires_manifest_lists: bool = True
    """A snapshot names a manifest list; it cannot list its manifests itself."""
    tracks_partition_field_ids: bool = True
    """Where they are not tracked, the fields of every spec are numbered from 1000 without gaps."""
    no_snapshot_id: SnapshotId | None = NO_SNAPSHOT
    """The current snapshot's id in a table that has no current snapshot."""
    has_sequence_numbers: bool = True
    inherits_snapshot_ids: bool = True
    """A manifest's entries may leave their snapshot id to the commit."""
    requires_manifest_counts: bool = True
    """A manifest list has the numbers of files and rows of each manifest."""
    has_delete_files: bool = True
    has_deletion_vectors: bool = False
    has_row_lineage: bool = False
    has_default_values: bool = False
    has_encryption_keys: bool = False


_V1 = FormatVersion(
    number=1,
    has_single_schema_and_spec=True,
    requires_manifest_lists=False,
    tracks_partition_field_ids=False,
    has_sequence_numbers=False,
    inherits_snapshot_ids=False,
    requires_manifest_counts=False,
    has_delete_files=False,
)
_V2 = FormatVersion(
    number=2,
    required_fields=(
        "table_uuid",
        "last_sequence_number",
        "last_partition_id",
        "schemas",
        "partition_specs",
        "sort_orders",
    ),
)
_V3 = replace(
    _V2,
    number=3,
    required_fields=(*_V2.required_fields, "next_row_id"),
    no_snapshot_id=None,
    has_deletion_vectors=True,
    has_row_lineage=True,
    has_default_values=True,
    has_encryption_keys=True,
)
FORMAT_VERSIONS = {version.number: version for version in (_V1, _V2, _V3)}
"""The versions that this build reads and writes."""
MIN_FORMAT_VERSION = min(FORMAT_VERSIONS)
MAX_FORMAT_VERSION = max(FORMAT_VERSIONS)
DEFAULT_FORMAT_VERSION = 2
