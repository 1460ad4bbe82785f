"""The tower: the traffic on tables, as this process has seen it. An extension."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.tower import busiest_json, traffic_json
from app.api.dependencies import Visit, Visited
from app.api.responses.answers import json_answer
from app.catalog import tower
from app.catalog.context.seen.traffic import MOST_TABLES
from app.errors import InvalidRequest

router = APIRouter()

DEFAULT_TABLES = 20


@router.get("/v1/tower")
def busiest_tables(visit: Visited) -> Response:
    """Return the tables with most traffic."""
    catalog = visit.catalog
    return json_answer(busiest_json(tower.busiest_tables(catalog, _most(visit))))


@router.get("/v1/namespaces/{namespace}/tables/{table}/tower")
def table_traffic(visit: Visited) -> Response:
    """Return the traffic on one table."""
    visit.parameters()
    return json_answer(traffic_json(tower.table_traffic(visit.catalog, visit.table)))


def _most(visit: Visit) -> int:
    text = visit.parameters("limit").get("limit", str(DEFAULT_TABLES))
    if not (text.isascii() and text.isdigit()) or len(text) > 3 or not 1 <= int(text) <= MOST_TABLES:
        raise InvalidRequest(f"Invalid limit {text[:100]!r}: it must be a number from 1 to {MOST_TABLES}")
    return int(text)
