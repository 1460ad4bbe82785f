"""The caller's name. The front door asks for it before any route."""

from __future__ import annotations

from collections.abc import Mapping

ANONYMOUS = "anonymous"


def principal_of(_headers: Mapping[bytes, bytes]) -> str:
    """Return the caller's name, under which changes are recorded and Idempotency-Keys are kept."""
    return ANONYMOUS
