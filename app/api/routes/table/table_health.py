"""How healthy tables are, and the profile of their columns. An extension."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.table.table_health import profile_json, table_health_json, warehouse_health_json
from app.api.dependencies import Visit, Visited
from app.api.responses.answers import json_answer
from app.api.responses.paging import DEFAULT_PAGE_SIZE, PAGING, next_page_token, page_in_query
from app.catalog.context.listings import Page
from app.catalog.upkeep import profile
from app.catalog.upkeep import table_health as one
from app.catalog.upkeep import warehouse_health as many
from app.errors import InvalidRequest

router = APIRouter()

_TABLE = "/v1/namespaces/{namespace}/tables/{table}"


@router.get(_TABLE + "/health")
def table_health(visit: Visited) -> Response:
    """Return how healthy a table is."""
    found = one.table_health(visit.catalog, visit.table, _wanted(visit))
    return json_answer(table_health_json(found, visit.warehouse.name))


@router.get(_TABLE + "/profile")
def load_profile(visit: Visited) -> Response:
    """Return what manifests say of a table's columns."""
    return json_answer(profile_json(profile.load_profile(visit.catalog, visit.table, _wanted(visit))))


@router.get("/v1/health")
def warehouse_health(visit: Visited) -> Response:
    """Return how healthy the tables of a warehouse are."""
    listing = f"health {visit.warehouse.id}"
    page = page_in_query(visit.parameters(*PAGING), listing)
    found = many.warehouse_health(visit.catalog, Page(page.after, page.limit or DEFAULT_PAGE_SIZE))
    waiting = many.waiting_deletions(visit.catalog) if page.after is None else ()
    return json_answer(
        warehouse_health_json(
            found.items, visit.warehouse.name, next_page_token(found.next_after, listing), waiting
        )
    )


def _wanted(visit: Visit) -> str | None:
    """Return the snapshot that a query names by id, branch or tag; None for the current one."""
    query = visit.parameters("snapshot-id", "ref")
    snapshot_id, ref = query.get("snapshot-id"), query.get("ref")
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
