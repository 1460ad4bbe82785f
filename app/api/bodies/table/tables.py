"""JSON of tables: create, register, load, metrics reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import orjson
from pydantic import Field

from app.api.bodies.json_body import Body, ExtensionBody
from app.engine.model.document import Bool
from app.engine.model.ids import Location
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.settings.properties import SCAN_PLANNING_MODE
from app.engine.model.sort_order import SortOrder


class CreateTableBody(Body):
    name: str
    schema_: Annotated[Schema, Field(alias="schema")]
    location: Location | None = None
    partition_spec: UnboundPartitionSpec | None = None
    write_order: SortOrder | None = None
    stage_create: Bool | None = None
    properties: dict[str, str] | None = None


class RegisterTableBody(Body):
    name: str
    metadata_location: Location
    overwrite: Bool | None = None
    read_only: Bool | None = None
    expected_metadata_location: Location | None = None


class CheckRegistrationBody(ExtensionBody):
    name: str
    metadata_location: Location
    type: Literal["table", "view"] = "table"
    overwrite: Bool | None = None


class AdoptTableBody(ExtensionBody):
    name: str
    location: Location


class MetricsBody(Body):
    report_type: str


def table_config(properties: Mapping[str, str]) -> dict[str, str]:
    """Return what a table's properties say to the clients that load it."""
    return config_of(properties.get(SCAN_PLANNING_MODE))


def config_of(scan_planning_mode: str | None) -> dict[str, str]:
    """Return what a table's property of this name says to the clients that load it."""
    return {} if scan_planning_mode is None else {SCAN_PLANNING_MODE: scan_planning_mode}


def loaded_json(location: str | None, metadata: bytes, config: Mapping[str, str]) -> bytes:
    """Return a table or view around its metadata, which is JSON already."""
    return b"".join(loaded_parts(location, metadata, config))


def loaded_parts(
    location: str | None, metadata: bytes, config: Mapping[str, str]
) -> tuple[bytes, bytes, bytes]:
    """Return the JSON of a table or view in three parts; the second is its metadata."""
    head = b'"metadata-location":' + orjson.dumps(location) + b"," if location else b""
    tail = b',"config":' + orjson.dumps(dict(config)) if config else b""
    return b"{" + head + b'"metadata":', metadata, tail + b"}"
