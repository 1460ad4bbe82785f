"""JSON of views: create, register."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.api.bodies.json_body import Body
from app.engine.model.document import Bool
from app.engine.model.ids import Location
from app.engine.model.schema import Schema
from app.engine.model.view_metadata import ViewVersion


class CreateViewBody(Body):
    name: str
    schema_: Annotated[Schema, Field(alias="schema")]
    view_version: ViewVersion
    location: Location | None = None
    properties: dict[str, str] | None = None


class RegisterViewBody(Body):
    name: str
    metadata_location: Location
    overwrite: Bool | None = None
    read_only: Bool | None = None
    expected_metadata_location: Location | None = None
