"""openapi.yaml as the server serves it: found once, parsed for JSON or for the page."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import orjson

FILE_NAME = "openapi.yaml"
METHODS = ("get", "head", "post", "put", "patch", "delete")


@cache
def description_yaml() -> bytes:
    """Return the description as it was written."""
    here = Path(__file__).resolve().parent
    # In a wheel it lies beside this module, in a checkout at the top.
    candidates = (here / FILE_NAME, here.parent.parent / FILE_NAME)
    for candidate in candidates:
        if candidate.is_file():
            return candidate.read_bytes()
    raise FileNotFoundError(f"{FILE_NAME} is at none of {', '.join(map(str, candidates))}")


@cache
def description() -> dict[str, Any]:
    """Return the description as one JSON object, which must not be changed."""
    import yaml

    # The C parser takes a tenth of the time where the library has it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    parsed: dict[str, Any] = yaml.load(description_yaml(), Loader=loader)  # noqa: S506 - both loaders are safe ones
    return parsed


@cache
def description_json() -> bytes:
    """Return the description as JSON."""
    return orjson.dumps(description(), option=orjson.OPT_NON_STR_KEYS)
