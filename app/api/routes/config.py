"""The settings that a client reads first."""

from __future__ import annotations

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import Visited
from app.api.names_in_paths import encode_prefix
from app.catalog.warehouses import load_configuration

router = APIRouter()


@router.get("/v1/config")
def get_config(visit: Visited) -> Response:
    """Return the settings of a warehouse."""
    parts = visit.parts
    named = parts.warehouses.load(visit.query.get("warehouse") or parts.default_warehouse)
    warehouse = load_configuration(visit.catalog_of(named))
    return json_answer(
        orjson.dumps(
            {
                "defaults": dict(warehouse.default_properties),
                # The prefix comes last: a warehouse's own settings must not lead its clients elsewhere.
                "overrides": {**warehouse.override_properties, "prefix": encode_prefix(warehouse.name)},
                "endpoints": parts.endpoints,
                "idempotency-key-lifetime": f"PT{parts.key_lifetime_minutes}M",
            }
        )
    )
