"""The settings that a client reads first."""

from __future__ import annotations

from dataclasses import replace

import orjson
from starlette.requests import Request
from starlette.responses import Response

from app.api.dependencies import Visit
from app.api.names_in_paths import encode_prefix
from app.api.responses.answers import json_answer
from app.catalog.context.past.moments import split_name
from app.catalog.warehouses import load_configuration


async def get_config(request: Request) -> Response:
    """Return the settings of a warehouse; on the event loop, as every client asks for it first."""
    visit = Visit(request.scope, b"")
    parts = visit.parts
    name, moment = split_name(visit.query.get("warehouse") or parts.default_warehouse)
    named = parts.warehouses.find_kept(name)
    if named is None:
        named = await visit.in_thread(lambda: parts.warehouses.load(name))
    catalog = replace(visit.catalog_of(named), as_of_ms=visit.as_of_ms(moment))
    defaults, overrides = load_configuration(catalog)
    return json_answer(
        orjson.dumps(
            {
                "defaults": dict(defaults),
                # The prefix comes last: a warehouse's own settings must not lead its clients elsewhere.
                "overrides": {**overrides, "prefix": encode_prefix(catalog.name)},
                "endpoints": parts.endpoints if moment is None else parts.endpoints_of_the_past,
                "idempotency-key-lifetime": f"PT{parts.key_lifetime_minutes}M",
            }
        )
    )
