"""Extension: the warehouses of this server."""

from __future__ import annotations

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.json_answer import present
from app.api.bodies.warehouses import (
    CreateWarehouseBody,
    UpdateWarehouseBody,
    warehouse_object,
)
from app.api.dependencies import Visited
from app.api.names_in_paths import warehouse_in_path
from app.api.responses.answers import json_answer, no_content
from app.api.responses.paging import PAGING, next_page_token, page_in_query
from app.catalog import warehouses
from app.catalog.context.rows import Warehouse

router = APIRouter()
_LISTING = "warehouses"


@router.get("/management/v1/warehouses")
def list_warehouses(visit: Visited) -> Response:
    """List the warehouses."""
    page = page_in_query(visit.parameters(*PAGING), _LISTING)
    found = warehouses.list_warehouses(visit.parts.server, visit.caller(), page)
    answer = {
        "warehouses": [warehouse_object(item) for item in found.items],
        "next-page-token": next_page_token(found.next_after, _LISTING),
    }
    return json_answer(orjson.dumps(present(answer)))


@router.post("/management/v1/warehouses")
def create_warehouse(visit: Visited) -> Response:
    """Create a warehouse."""
    body = visit.extension_body(CreateWarehouseBody)
    created = warehouses.create_warehouse(
        visit.parts.server,
        visit.caller(),
        body.name,
        body.root_location,
        body.default_properties or {},
        body.override_properties or {},
        body.storage or {},
        body.layout,
    )
    return _shown(created)


@router.get("/management/v1/warehouses/{warehouse}")
def load_warehouse(visit: Visited) -> Response:
    """Show a warehouse."""
    visit.parameters()
    name = warehouse_in_path(visit.warehouse_piece)
    return _shown(warehouses.load_warehouse(visit.parts.server, visit.caller(), name))


@router.patch("/management/v1/warehouses/{warehouse}")
def update_warehouse(visit: Visited) -> Response:
    """Change those settings of a warehouse that are given."""
    name = warehouse_in_path(visit.warehouse_piece)
    change = visit.extension_body(UpdateWarehouseBody).change()
    updated = warehouses.update_warehouse(visit.parts.server, visit.caller(), name, change)
    visit.parts.warehouses.forget()
    return _shown(updated)


@router.delete("/management/v1/warehouses/{warehouse}")
def drop_warehouse(visit: Visited) -> Response:
    """Drop an empty warehouse."""
    visit.parameters()
    warehouses.drop_warehouse(visit.parts.server, visit.caller(), warehouse_in_path(visit.warehouse_piece))
    visit.parts.warehouses.forget()
    return no_content()


def _shown(warehouse: Warehouse) -> Response:
    return json_answer(orjson.dumps(warehouse_object(warehouse)))
