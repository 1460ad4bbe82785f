"""How healthy tables are, and the profile of their columns. An extension."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.bodies.table_health import table_health_json
from app.api.dependencies import Visit, Visited
from app.catalog.upkeep import table_health as upkeep
from app.errors import InvalidRequest

router = APIRouter()

_TABLE = "/v1/namespaces/{namespace}/tables/{table}"


@router.get(_TABLE + "/health")
def table_health(visit: Visited) -> Response:
    """Return how healthy a table is."""
    return json_answer(table_health_json(upkeep.table_health(visit.catalog, visit.table, _wanted(visit))))


def _wanted(visit: Visit) -> str | None:
    """Return the snapshot that a query asks for, by its id or by a branch or tag; None for the current one."""
    snapshot_id, ref = visit.query.get("snapshot-id"), visit.query.get("ref")
    if snapshot_id is not None and ref is not None:
        raise InvalidRequest(
            "Invalid query: it has both snapshot-id and ref, and only one of them can be meant"
        )
    if snapshot_id is None:
        return ref
    digits = snapshot_id.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        raise InvalidRequest(f"Invalid snapshot-id {snapshot_id[:100]!r}: it must be a whole number")
    return snapshot_id
