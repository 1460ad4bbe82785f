"""JSON of a table's properties as they are in force."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from app.api.bodies.json_answer import present
from app.engine.properties.lookup import EffectiveProperty


def properties_json(found: Sequence[EffectiveProperty]) -> bytes:
    """Return the properties, with what is known of each."""
    return orjson.dumps({"properties": [_property(item) for item in found]})


def _property(item: EffectiveProperty) -> dict[str, Any]:
    known = item.known
    return {
        "name": item.name,
        "origin": item.origin,
        "known": known is not None,
        **present({"value": item.value, "flaw": item.flaw}),
        **(
            {}
            if known is None
            else {
                "type": known.kind.name,
                "group": known.group,
                "meaning": known.meaning,
                **present({"default": known.default}),
            }
        ),
    }
