"""JSON of answers: members without a value are left out, and pages name the next one."""

from __future__ import annotations

from typing import Any

import orjson

from app.engine.model.document import MAX_LONG


def present(members: dict[str, Any]) -> dict[str, Any]:
    """Return the members that have a value."""
    return {name: value for name, value in members.items() if value is not None}


def as_long(value: Any) -> Any:
    """Return a number as one of 64 bits; anything else as it is.

    Writers may claim any sizes and counts, so that sums of them can be larger than clients can read.
    """
    return max(-MAX_LONG, min(MAX_LONG, value)) if isinstance(value, int) else value


def page_json(members: dict[str, Any], next_page_token: str | None) -> bytes:
    """Return one page of a listing."""
    if next_page_token is not None:
        members["next-page-token"] = next_page_token
    return orjson.dumps(members)
