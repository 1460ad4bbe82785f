"""A table's properties as they are in force: an extension."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.table.table_properties import properties_json
from app.api.dependencies import Visited
from app.api.responses.answers import json_answer
from app.catalog.upkeep.table_properties import table_properties

router = APIRouter()


@router.get("/v1/namespaces/{namespace}/tables/{table}/properties")
def effective_properties(visit: Visited) -> Response:
    """Return each known property, and each other one that the table has."""
    visit.parameters()
    return json_answer(properties_json(table_properties(visit.catalog, visit.table)))
