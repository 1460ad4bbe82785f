"""Snapshots: the state of a table at one commit."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from app.engine.model.document import FIRST_ERROR, INT, LONG, Document, Long, Text
from app.engine.model.ids import Location, SchemaId, SnapshotId

REPLACE_PARTITIONS = "replace-partitions"


class Snapshot(Document):
    """A snapshot; `manifests` instead of `manifest-list` is a v1 legacy form.

    Spec: #snapshots
    """

    snapshot_id: Annotated[SnapshotId, LONG]
    parent_snapshot_id: Annotated[SnapshotId, LONG] | None = None
    sequence_number: Annotated[Long, Field(ge=0)] | None = None
    timestamp_ms: Annotated[Long, Field(ge=0)]
    manifest_list: Location | None = None
    manifests: Annotated[tuple[str, ...], FIRST_ERROR] | None = None
    summary: Annotated[dict[str, Text], FIRST_ERROR] | None = None
    schema_id: Annotated[SchemaId, INT] | None = None
    first_row_id: Annotated[Long, Field(ge=0)] | None = None
    added_rows: Annotated[Long, Field(ge=0)] | None = None
    key_id: str | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.manifest_list is None and self.manifests is None:
            raise ValueError("a snapshot needs a manifest-list")
        if self.first_row_id is not None and self.added_rows is None:
            raise ValueError("a snapshot with first-row-id needs added-rows")
        if self.manifest_list is not None and self.manifests is not None:
            # There must be none beside a list, and readers take the list.
            self.__dict__["manifests"] = None
            self.model_fields_set.discard("manifests")
        return self

    @property
    def sequence(self) -> int:
        """The sequence number; 0 if a v1 writer left it out."""
        return self.sequence_number or 0

    @property
    def operation(self) -> str | None:
        """What its writer calls the change; None where a v1 writer left it out."""
        return (self.summary or {}).get("operation")

    @property
    def replaces_partitions(self) -> bool:
        """Whether it is a dynamic overwrite, which replaces whole partitions."""
        is_marked = (self.summary or {}).get(REPLACE_PARTITIONS, "").lower() == "true"
        return is_marked and self.operation == "overwrite"


class SnapshotLogEntry(Document):
    """When a snapshot became the current one."""

    timestamp_ms: Long
    snapshot_id: Annotated[SnapshotId, LONG]


class MetadataLogEntry(Document):
    """An earlier metadata file and when it stopped being the current one."""

    timestamp_ms: Long
    metadata_file: Location
