"""The settings that a client reads first."""

from __future__ import annotations

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import Visit
from app.api.names_in_paths import encode_prefix
from app.catalog.warehouses import load_configuration


async def get_config(request: Request) -> Response:
    """Return the settings of a warehouse; on the event loop, as every client asks for it first."""
    visit = Visit(request.scope, b"")
    parts = visit.parts
    name = visit.query.get("warehouse") or parts.default_warehouse
    named = parts.warehouses.find_kept(name)
    if named is None:
        named = await run_in_threadpool(parts.warehouses.load, name)
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
