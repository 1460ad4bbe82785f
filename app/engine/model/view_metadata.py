"""View metadata: versions of a view's queries, their schemas and history."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from app.engine.model.document import FIRST_ERROR, INT, UUID, Document, Int, Long, Text
from app.engine.model.ids import Location, SchemaId, TableUuid
from app.engine.model.schema import Schema
from app.errors import InvalidMetadata

VIEW_FORMAT_VERSION = 1
_DEFINITION = {"summary", "representations", "default_catalog", "default_namespace", "schema_id"}


class SqlRepresentation(Document):
    """A query in one SQL dialect; other representations are kept as they are.

    Spec: view-spec.md #representations
    """

    type: str
    sql: str | None = None
    dialect: str | None = None


class ViewVersion(Document):
    """One definition of a view.

    Spec: view-spec.md #versions
    """

    version_id: Int
    timestamp_ms: Annotated[Long, Field(ge=0)]
    schema_id: Annotated[SchemaId, INT]
    summary: Annotated[dict[str, Text], FIRST_ERROR]
    default_catalog: str | None = None
    default_namespace: Annotated[tuple[str, ...], FIRST_ERROR]
    representations: Annotated[tuple[SqlRepresentation, ...], FIRST_ERROR]

    @property
    def dialects(self) -> frozenset[str]:
        return frozenset(item.dialect.lower() for item in self.representations if item.dialect)

    @cached_property
    def meaning(self) -> str:
        """What versions that define the same view have in common: all but ids and times."""
        return json.dumps(self.model_dump(include=_DEFINITION), sort_keys=True)


class VersionLogEntry(Document):
    """When a version became the current one."""

    timestamp_ms: Long
    version_id: Int


class ViewMetadata(Document):
    """A view's state at one commit.

    Spec: view-spec.md #view-metadata
    """

    view_uuid: Annotated[TableUuid, UUID]
    format_version: Annotated[Int, Field(ge=VIEW_FORMAT_VERSION, le=VIEW_FORMAT_VERSION)]
    location: Location
    schemas: Annotated[tuple[Schema, ...], FIRST_ERROR]
    current_version_id: Int
    versions: Annotated[tuple[ViewVersion, ...], FIRST_ERROR]
    version_log: Annotated[tuple[VersionLogEntry, ...], FIRST_ERROR]
    properties: Annotated[dict[str, Text], FIRST_ERROR] = Field(default_factory=dict)

    @property
    def uuid(self) -> TableUuid:
        return self.view_uuid

    @cached_property
    def versions_by_id(self) -> dict[int, ViewVersion]:
        return {version.version_id: version for version in self.versions}

    @property
    def current_version(self) -> ViewVersion:
        return self.versions_by_id[self.current_version_id]


class _OfTable(BaseModel):
    """What only the metadata of a table has."""

    last_column_id: Annotated[Int, Field(alias="last-column-id")]


def _check_kind_of(content: bytes) -> None:
    """Raise an error if a document is that of a table: it explains all other faults."""
    try:
        _OfTable.model_validate_json(content)
    except ValidationError:
        return
    raise InvalidMetadata("It is the metadata of a table, not of a view")


def read_view_metadata(content: bytes) -> ViewMetadata:
    """Parse a view metadata document.

    Raises:
        InvalidMetadata: names the field that is missing or wrong.
    """
    try:
        metadata = ViewMetadata.from_json(content)
    except InvalidMetadata:
        _check_kind_of(content)
        raise
    if len(metadata.versions_by_id) != len(metadata.versions):
        raise InvalidMetadata("Two view versions have the same version-id")
    if metadata.current_version_id not in metadata.versions_by_id:
        raise InvalidMetadata(f"Cannot find current version {metadata.current_version_id} in view versions")
    known = {schema.schema_id for schema in metadata.schemas}
    if len(known) != len(metadata.schemas):
        raise InvalidMetadata("Two schemas of the view have the same schema-id")
    for version in metadata.versions:
        if version.schema_id not in known:
            raise InvalidMetadata(
                f"Cannot find schema {version.schema_id} of view version {version.version_id} in schemas"
            )
    return metadata
